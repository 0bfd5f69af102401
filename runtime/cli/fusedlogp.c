/* The program fusedlogp: runs the command that its first argument names. */
#include <string.h>
#include "cli/commands.h"
#include "cli/console.h"

typedef struct {
    const char *name;
    char *full_name; /* for messages */
    int (*run)(int argc, char **argv);
} command;

typedef struct {
    const command *chosen;
    int argc;
    char **argv;
} choice;

static char score_name[] = "fusedlogp score", merge_name[] = "fusedlogp merge", tune_name[] = "fusedlogp tune", records_name[] = "fusedlogp records",
            info_name[] = "fusedlogp info";
static const command commands[] = { { "score", score_name, flp_score_main },
                                    { "merge", merge_name, flp_merge_main },
                                    { "tune", tune_name, flp_tune_main },
                                    { "records", records_name, flp_records_main },
                                    { "info", info_name, flp_info_main } };

static error_t parse(int key, char *argument, struct argp_state *state)
{
    choice *picked = state->input;
    if (key == ARGP_KEY_NO_ARGS)
        argp_error(state, "wanted a command: score, merge, tune, records or info");
    if (key != ARGP_KEY_ARG)
        return ARGP_ERR_UNKNOWN;
    for (size_t i = 0; i < sizeof commands / sizeof commands[0]; i++) {
        if (strcmp(argument, commands[i].name) != 0)
            continue;
        picked->chosen = &commands[i];
        picked->argc = state->argc - state->next + 1;
        picked->argv = state->argv + state->next - 1;
        state->next = state->argc; /* the rest belongs to the command */
        return 0;
    }
    argp_error(state, "no command '%s'; wanted score, merge, tune, records or info", argument);
    return 0;
}

int main(int argc, char **argv)
{
    static const struct argp arguments = { NULL,
                                           parse,
                                           "COMMAND [OPTION...]",
                                           "Log-probabilities under a language-model head, without storing the logits.\v"
                                           "Commands:\n"
                                           "  score    log-probabilities of tokens, from files of tensors\n"
                                           "  merge    the parts that many processes scored, into one result\n"
                                           "  tune     finds the fastest kernels for problems on this machine\n"
                                           "  records  what tunings found\n"
                                           "  info     devices, libraries, cache and versions\n\n"
                                           "fusedlogp COMMAND --help shows a command's options.\n"
                                           "Exit status: 0 success, 1 failure at run time, 2 usage, 3 no device or kernel, 4 unacceptable input.",
                                           flp_console_help,
                                           0,
                                           0 };
    choice picked = { 0 };
    flp_console_start("fusedlogp");
    argp_parse(&arguments, argc, argv, ARGP_IN_ORDER, NULL, &picked);
    picked.argv[0] = picked.chosen->full_name;
    return flp_console_finish(picked.chosen->run(picked.argc, picked.argv));
}
