/* Shared by the programs: messages, exit codes, option values, progress. */
#ifndef FLP_CLI_CONSOLE_H
#define FLP_CLI_CONSOLE_H
#include <argp.h>
#include <jansson.h>
#include <stdint.h>
#include "fusedlogp.h"

/* Exit codes; the man pages explain them. */
enum {
    FLP_EXIT_OK = 0,
    FLP_EXIT_FAILED = 1,    /* at run time: a file that cannot be read or written, memory, a driver call, a compilation */
    FLP_EXIT_USAGE = 2,     /* a wrong command line, or one file named for two purposes */
    FLP_EXIT_NO_DEVICE = 3, /* no device, driver, NVRTC or kernel for what was asked */
    FLP_EXIT_BAD_INPUT = 4, /* a malformed file, tensors that do not fit together, a target outside the vocabulary, NaN under --strict */
    FLP_EXIT_MISSING = 5    /* fusedlogp-gen --check: a kernel is missing */
};

/* To be called once at the start of main, before any file is opened. Opens the standard streams that are closed, so that no other file takes their numbers;
 * reading and printing still fail there. Sets the program's name for messages and --version, prints the library's warnings to stderr, makes usage errors
 * exit with FLP_EXIT_USAGE, and makes the process exit with FLP_EXIT_FAILED, wherever it ends, if standard output could not be written completely. program: a
 * static string. */
void flp_console_start(const char *program);
/* To be called last in main, for its exit code: FLP_EXIT_FAILED if code is FLP_EXIT_OK and standard output could not be written, else code. */
int flp_console_finish(int code);

/* "program: message" to stderr. */
void flp_console_error(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Reports flp_error_message; returns the exit code that fits. */
int flp_console_fail(flp_status status);
int flp_console_exit_code(flp_status status);

/* For signal handlers: prints "program: message" to stderr and exits with FLP_EXIT_FAILED at once, without flushing or freeing anything. */
_Noreturn void flp_console_end(const char *message);

/* Adds -h, the same as --help: the `children` of each program's struct argp. */
extern const struct argp_child flp_console_help[];

/* Shows a progress line in place of the last one, if stderr is a terminal; "" removes it. Thread-safe. */
void flp_console_progress(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* A progress line for work that began `seconds` ago and of which `done` of `total` (in units of `what`) is done: percentage, rate and time left. */
void flp_console_progress_of(int64_t done, int64_t total, const char *what, double seconds);

/* Prints value as JSON and takes its reference; NULL means that it could not be made. Returns FLP_EXIT_OK or FLP_EXIT_FAILED. */
int flp_console_print_json(json_t *value);
/* A JSON number; null for NaN and infinities, which JSON lacks. */
json_t *flp_console_json_number(double value);
/* A JSON string; bytes that are not UTF-8 are replaced by '?'. */
json_t *flp_console_json_string(const char *text);

/* Parse the value of an option. A wrong value ends the program by argp_error, which names the option, the text and what was wanted. */
int64_t flp_console_integer(struct argp_state *state, const char *option, const char *text, int64_t least, int64_t most);
/* Above 0, and from least to most, which are powers of two; most 0: of any size. */
double flp_console_positive(struct argp_state *state, const char *option, const char *text, double least, double most);
/* The index of text in names (ends with NULL). */
int flp_console_choice(struct argp_state *state, const char *option, const char *text, const char *const *names);

#endif
