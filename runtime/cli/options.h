/* Command lines as tables: each option, how its value is read and where it is stored. */
#ifndef FLP_CLI_OPTIONS_H
#define FLP_CLI_OPTIONS_H
#include <argp.h>
#include <stddef.h>
#include <stdint.h>

typedef enum {
    FLP_OPTION_TEXT,     /* const char *: the argument itself */
    FLP_OPTION_RESULT,   /* the same, a name that flp_result_file_accepts */
    FLP_OPTION_LIST,     /* char * and size_t: argz, of an option that may be given several times */
    FLP_OPTION_POSITIVE, /* double: above 0, and from .. to where `to` is not 0 */
    FLP_OPTION_INT64,    /* int64_t: least .. most */
    FLP_OPTION_INT,      /* int: least .. most */
    FLP_OPTION_CHOICE,   /* int: the index among words */
    FLP_OPTION_FLAG,     /* int: `least`, or 1 */
    FLP_OPTION_OWN       /* any type: `read` reads it */
} flp_option_kind;

/* A row of the table. Without a name it is a heading of the help. */
typedef struct flp_option {
    const char *name, *value, *text;
    flp_option_kind kind;
    size_t at;                /* offset of the value in the program's options */
    int64_t least, most;      /* range of a number; of a flag, least is its value */
    double from, to;          /* range of a positive number; both are powers of two */
    int group;                /* of the help */
    const char *const *words; /* of a choice; NULL ends them */
    size_t bytes_at;          /* of a list: offset of its size_t */
    unsigned actions;         /* FLP_OPTION_OF each action that takes the option; 0: all actions take it */
    void (*read)(struct argp_state *state, void *options, const struct flp_option *option, const char *text);
} flp_option;
#define FLP_OPTION_OF(action) (1u << (action))

typedef struct {
    const flp_option *table;   /* at most FLP_OPTIONS rows; one without name and text ends them */
    const char *words, *about; /* struct argp's args_doc and doc */
    /* Takes a word that is not an option; NULL: such a word is a usage error. */
    void (*take_word)(struct argp_state *state, void *options, char *word);
    /* Checks the options once all have been read; NULL: there is nothing to check. */
    void (*finish)(struct argp_state *state, void *options);
} flp_command_line;
enum { FLP_OPTIONS = 64 };

/* Fills in options, which holds the defaults. Exits on usage errors. */
void flp_options_parse(const flp_command_line *line, int argc, char **argv, void *options);

/* For `finish` of a program with actions: an option that was given though this action would ignore it is an error. name: of an action, NULL behind the last. */
void flp_options_check_action(struct argp_state *state, int action, const char *(*name)(int action));
#endif
