/* What the programs share: messages, exit codes, option values, progress. */
#ifndef FLP_CLI_CONSOLE_H
#define FLP_CLI_CONSOLE_H
#include <argp.h>
#include <jansson.h>
#include <stdint.h>
#include "fusedlogp.h"

/* The man pages explain them. */
enum {
    FLP_EXIT_OK = 0,
    FLP_EXIT_FAILED = 1,    /* at run time: a file that cannot be read or written, memory, a driver call, a compilation */
    FLP_EXIT_USAGE = 2,     /* the command line, also one file for two things */
    FLP_EXIT_NO_DEVICE = 3, /* no device, driver, NVRTC or kernel for what was asked */
    FLP_EXIT_BAD_INPUT = 4, /* a malformed file, tensors that do not fit together, a target outside the vocabulary, NaN under --strict */
    FLP_EXIT_MISSING = 5    /* what was to be looked for is not all there */
};

/* Once at the start of main: the program's name for messages and --version, warnings of the library to stderr, usage
 * errors to FLP_EXIT_USAGE, and FLP_EXIT_FAILED for a process that ends, in whatever place, with a standard output that could
 * not be written whole. program: static. */
void flp_console_start(const char *program);
/* Last in main: FLP_EXIT_FAILED where standard output could not be written, else code. */
int flp_console_finish(int code);

/* "program: message" to stderr. */
void flp_console_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports flp_error_message; returns the exit code that fits. */
int flp_console_fail(flp_status status);
int flp_console_exit_code(flp_status status);

/* "program: message" to stderr and FLP_EXIT_FAILED at once, with nothing flushed or freed: for signal handlers. */
_Noreturn void flp_console_end(const char *message);

/* -h, as --help; the children of each program's struct argp. */
extern const struct argp_child flp_console_help[];

/* One line that overwrites itself, only where stderr is a terminal; "" ends it. Thread-safe. */
void flp_console_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The same for work of `total` that began `seconds` ago: percentage, rate and time left. */
void flp_console_progress_of(int64_t done, int64_t total, const char *what, double seconds);

/* Prints value as JSON and takes its reference. FLP_EXIT_OK or FLP_EXIT_FAILED. */
int flp_console_print_json(json_t *value);
/* A JSON number; null for NaN and infinities, which JSON lacks. */
json_t *flp_console_json_number(double value);
/* A JSON string; bytes that are not UTF-8 are replaced by '?'. */
json_t *flp_console_json_string(const char *text);

/* Values of options; argp_error, which exits, names option, text and what was wanted. */
int64_t flp_console_integer(struct argp_state *state, const char *option, const char *text, int64_t least, int64_t most);
double flp_console_positive(struct argp_state *state, const char *option, const char *text);
/* The index of text in names (ends with NULL). */
int flp_console_choice(struct argp_state *state, const char *option, const char *text, const char *const *names);

double flp_console_seconds(void); /* monotonic */
#endif
