/* Shared by the programs: messages, exit codes, option values, progress. */
#include "cli/console.h"
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *program_name = "";
static pthread_mutex_t terminal = PTHREAD_MUTEX_INITIALIZER;
static int progress_shown;

static void print_version(FILE *stream, struct argp_state *state)
{
    (void)state;
    fprintf(stream, "%s %s\n", program_name, flp_version());
}

static void print_log(void *data, flp_log_level level, const char *message)
{
    (void)data;
    if (level == FLP_LOG_WARNING)
        flp_console_error("warning: %s", message);
}

/* Closes standard output; 0 if everything that was printed has been written. Closes, not only flushes, because a network file system may report a failed
 * write only then. A standard output that was closed from the start is no error if nothing was printed. */
static int close_output(void)
{
    static int closed;
    if (closed)
        return 0;
    closed = 1;
    errno = 0;
    int failed = ferror(stdout) != 0;
    failed |= fflush(stdout) != 0;
    if (failed || (fclose(stdout) != 0 && errno != EBADF)) {
        flp_console_error("standard output cannot be written: %s", errno ? strerror(errno) : "a part was lost");
        return 1;
    }
    return 0;
}

/* For atexit, because --help and --version exit inside argp and never reach flp_console_finish. */
static void end_output(void)
{
    if (close_output() != 0)
        _exit(FLP_EXIT_FAILED);
}

/* Opens the standard streams that the program was started without. Otherwise a file that is opened later would get such a descriptor, and take what is
 * printed, or be what a result's name stands for. Nobody writes to what stands for standard input or reads what stands for standard output, so that using
 * them still fails. Standard output is a pipe, because /dev/null may be given as a name for results. */
static void open_standard_streams(void)
{
    int ends[2];
    if (fcntl(STDIN_FILENO, F_GETFD) < 0 && open("/dev/null", O_WRONLY) < 0)
        return;
    if (fcntl(STDOUT_FILENO, F_GETFD) < 0 && (pipe(ends) != 0 || close(ends[1]) != 0))
        return;
    if (fcntl(STDERR_FILENO, F_GETFD) < 0 && open("/dev/null", O_WRONLY) < 0)
        return;
}

void flp_console_start(const char *program)
{
    open_standard_streams();
    program_name = program;
    argp_program_version_hook = print_version;
    argp_err_exit_status = FLP_EXIT_USAGE;
    flp_log_set_callback(print_log, NULL);
    atexit(end_output);
}

static error_t parse_help(int key, char *argument, struct argp_state *state)
{
    (void)argument;
    if (key != 'h')
        return ARGP_ERR_UNKNOWN;
    argp_state_help(state, state->out_stream, ARGP_HELP_STD_HELP);
    return 0;
}

static const struct argp_option help_options[] = { { NULL, 'h', 0, 0, "the same as --help", -1 }, { 0 } };
static const struct argp help_arguments = { help_options, parse_help, 0, 0, 0, 0, 0 };
const struct argp_child flp_console_help[] = { { &help_arguments, 0, NULL, -1 }, { 0 } };

int flp_console_finish(int code)
{
    int failed = close_output();
    return failed && code == FLP_EXIT_OK ? FLP_EXIT_FAILED : code;
}

void flp_console_end(const char *message)
{
    const char *const parts[] = { progress_shown ? "\r\033[K" : "", program_name, ": ", message, "\n" };
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        if (write(STDERR_FILENO, parts[i], strlen(parts[i])) < 0)
            break;
    _exit(FLP_EXIT_FAILED);
}

/* The caller holds `terminal`. */
static void clear_progress(void)
{
    if (progress_shown)
        fputs("\r\033[K", stderr);
    progress_shown = 0;
}

void flp_console_error(const char *format, ...)
{
    va_list values;
    va_start(values, format);
    pthread_mutex_lock(&terminal);
    clear_progress();
    fprintf(stderr, "%s: ", program_name);
    vfprintf(stderr, format, values);
    fputc('\n', stderr);
    pthread_mutex_unlock(&terminal);
    va_end(values);
}

void flp_console_progress(const char *format, ...)
{
    if (!isatty(STDERR_FILENO))
        return;
    va_list values;
    va_start(values, format);
    pthread_mutex_lock(&terminal);
    clear_progress();
    if (*format) {
        vfprintf(stderr, format, values);
        progress_shown = 1;
    }
    fflush(stderr);
    pthread_mutex_unlock(&terminal);
    va_end(values);
}

void flp_console_progress_of(int64_t done, int64_t total, const char *what, double seconds)
{
    double rate = seconds > 0 ? (double)done / seconds : 0;
    int percent = total > 0 ? (int)(100.0 * (double)done / (double)total) : 100;
    if (rate <= 0) {
        flp_console_progress("%3d %%  %" PRId64 " of %" PRId64 " %s", percent, done, total, what);
        return;
    }
    int64_t left = (int64_t)ceil((double)(total - done) / rate);
    flp_console_progress("%3d %%  %" PRId64 " of %" PRId64 " %s, %.3g a second, %" PRId64 ":%02d left", percent, done, total, what, rate, left / 60,
                         (int)(left % 60));
}

int flp_console_exit_code(flp_status status)
{
    switch (status) {
    case FLP_OK:
        return FLP_EXIT_OK;
    case FLP_NO_VARIANT:
    case FLP_NO_DRIVER:
    case FLP_NO_NVRTC:
        return FLP_EXIT_NO_DEVICE;
    case FLP_BAD_ARGUMENT:
    case FLP_BAD_TARGET:
        return FLP_EXIT_BAD_INPUT;
    default:
        return FLP_EXIT_FAILED;
    }
}

int flp_console_fail(flp_status status)
{
    const char *message = flp_error_message();
    flp_console_error("%s", *message ? message : flp_status_text(status));
    return flp_console_exit_code(status);
}

int flp_console_print_json(json_t *value)
{
    int failed = value == NULL || json_dumpf(value, stdout, JSON_INDENT(2)) != 0;
    json_decref(value);
    if (failed) {
        flp_console_error("the JSON output could not be made: out of memory, or standard output cannot be written");
        return FLP_EXIT_FAILED;
    }
    putchar('\n');
    return FLP_EXIT_OK;
}

json_t *flp_console_json_number(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

json_t *flp_console_json_string(const char *text)
{
    json_t *value = json_string(text);
    if (value != NULL)
        return value;
    char *plain = strdup(text);
    for (char *at = plain; at != NULL && *at; at++)
        if (*at & 0x80)
            *at = '?';
    value = plain ? json_string(plain) : NULL;
    free(plain);
    return value;
}

int64_t flp_console_integer(struct argp_state *state, const char *option, const char *text, int64_t least, int64_t most)
{
    char *end;
    errno = 0;
    long long value = strtoll(text, &end, 10);
    if (end == text || *end || errno || value < least || value > most)
        argp_error(state, "--%s: got '%s', wanted a whole number from %" PRId64 " to %" PRId64, option, text, least, most);
    return value;
}

double flp_console_positive(struct argp_state *state, const char *option, const char *text, double least, double most)
{
    char *end;
    double value = strtod(text, &end);
    const int is_positive = end != text && !*end && isfinite(value) && value > 0;
    if (most > 0 && !(is_positive && value >= least && value <= most))
        argp_error(state, "--%s: got '%s', wanted a number from 2^%d to 2^%d", option, text, ilogb(least), ilogb(most));
    if (!is_positive)
        argp_error(state, "--%s: got '%s', wanted a finite number above 0", option, text);
    return value;
}

int flp_console_choice(struct argp_state *state, const char *option, const char *text, const char *const *names)
{
    char list[256] = "";
    for (int i = 0; names[i] != NULL; i++) {
        if (strcmp(names[i], text) == 0)
            return i;
        size_t used = strlen(list);
        snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "", names[i]);
    }
    argp_error(state, "--%s: got '%s', wanted one of %s", option, text, list);
    return -1;
}
