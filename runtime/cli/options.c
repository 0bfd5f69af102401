/* Parses command lines that tables describe. */
#include "cli/options.h"
#include <argz.h>
#include <stdio.h>
#include <string.h>
#include "cli/console.h"
#include "cli/result_file.h"

enum { FIRST_KEY = 256 /* above every character */ };

typedef struct {
    const flp_command_line *line;
    void *options;
    char given[FLP_OPTIONS]; /* 1: that option of the table was */
} parsing;

static int read_int(struct argp_state *state, const flp_option *option, const char *text)
{
    if (option->kind == FLP_OPTION_CHOICE)
        return flp_console_choice(state, option->name, text, option->words);
    if (option->kind == FLP_OPTION_FLAG)
        return option->least ? (int)option->least : 1;
    return (int)flp_console_integer(state, option->name, text, option->least, option->most);
}

static void read_value(struct argp_state *state, void *options, const flp_option *option, const char *text)
{
    void *to = (char *)options + option->at;
    switch (option->kind) {
    case FLP_OPTION_OWN:
        option->read(state, options, option, text);
        break;
    case FLP_OPTION_RESULT:
        if (!flp_result_file_accepts(text))
            argp_error(state, "--%s: got '%s', wanted a name that ends in .npy, .csv or .json, or -", option->name, text);
        *(const char **)to = text;
        break;
    case FLP_OPTION_TEXT:
        *(const char **)to = text;
        break;
    case FLP_OPTION_LIST:
        if (argz_add(to, (size_t *)(void *)((char *)options + option->bytes_at), text) != 0)
            argp_failure(state, FLP_EXIT_FAILED, 0, "out of memory");
        break;
    case FLP_OPTION_POSITIVE:
        *(double *)to = flp_console_positive(state, option->name, text, option->from, option->to);
        break;
    case FLP_OPTION_INT64:
        *(int64_t *)to = flp_console_integer(state, option->name, text, option->least, option->most);
        break;
    default:
        *(int *)to = read_int(state, option, text);
        break;
    }
}

static void refuse_option(struct argp_state *state, const flp_option *option, int action, const char *(*name)(int action))
{
    char names[256] = "";
    for (int i = 0; name(i) != NULL; i++) {
        const size_t used = strlen(names);
        if (option->actions & FLP_OPTION_OF(i))
            snprintf(names + used, sizeof names - used, "%s%s", used ? ", " : "", name(i));
    }
    argp_error(state, "--%s: got it with %s, wanted only with %s", option->name, name(action), names);
}

void flp_options_check_action(struct argp_state *state, int action, const char *(*name)(int action))
{
    const parsing *of = state->input;
    for (int i = 0; i < FLP_OPTIONS; i++)
        if (of->given[i] && of->line->table[i].actions && !(of->line->table[i].actions & FLP_OPTION_OF(action)))
            refuse_option(state, &of->line->table[i], action, name);
}

static error_t parse(int key, char *argument, struct argp_state *state)
{
    parsing *of = state->input;
    const flp_command_line *line = of->line;
    if (key >= FIRST_KEY && key < FIRST_KEY + FLP_OPTIONS) {
        read_value(state, of->options, &line->table[key - FIRST_KEY], argument);
        of->given[key - FIRST_KEY] = 1;
    } else if (key == ARGP_KEY_ARG) {
        if (line->take_word == NULL)
            argp_error(state, "'%s': wanted options only", argument);
        line->take_word(state, of->options, argument);
    } else if (key == ARGP_KEY_END) {
        if (line->finish != NULL)
            line->finish(state, of->options);
    } else {
        return ARGP_ERR_UNKNOWN;
    }
    return 0;
}

void flp_options_parse(const flp_command_line *line, int argc, char **argv, void *options)
{
    struct argp_option table[FLP_OPTIONS + 1] = { { 0 } };
    const struct argp arguments = { table, parse, line->words, line->about, flp_console_help, 0, 0 };
    parsing input = { line, options, { 0 } };
    for (int i = 0; i < FLP_OPTIONS && line->table[i].text != NULL; i++) {
        const flp_option *option = &line->table[i];
        table[i] = (struct argp_option){ option->name, option->name ? FIRST_KEY + i : 0, option->value, 0, option->text, option->group };
    }
    argp_parse(&arguments, argc, argv, 0, NULL, &input);
}
