/* The command line of fusedlogp records, and its actions that print records. */
#include "base/text.h"
#include "cli/commands.h"
#include "cli/records.h"
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/console.h"
#include "cli/options.h"

/* 1 where one of the words is part of the record's problem, architecture, device or name, or where there are no words. */
static int is_chosen(const flp_records_command *command, const flp_record_file *file)
{
    flp_record record;
    if (file->fault || flp_record_parse(file->text, &record) != FLP_OK)
        return 0;
    for (int i = 0; i < command->count; i++)
        if (strstr(record.identity.problem, command->words[i]) || strstr(record.identity.arch, command->words[i]) ||
            strstr(record.environment.device, command->words[i]) || strstr(file->name, command->words[i]))
            return 1;
    return command->count == 0;
}

static void print_line(const flp_record_file *file)
{
    flp_record r;
    if (flp_record_parse(file->text, &r) == FLP_OK)
        printf("%.8s  %-6.4f %-9s  %s  %s  %s  %s\n", file->name, r.ratio, flp_regime_names[r.regime], r.identity.problem, r.identity.arch,
               r.environment.device, r.tuning[0] ? r.tuning : "default");
}

static void print_whole(const flp_record_file *file)
{
    printf("# %s/%s\n%s\n", file->place, file->name, file->text);
}

static int print_chosen(const flp_records_command *command, void (*print)(const flp_record_file *))
{
    const flp_record_files *files = NULL;
    flp_records *records;
    int code = flp_records_open(command, FLP_RECORDS_SHOWN, &records, &files);
    size_t shown = 0;
    json_t *list = command->json ? json_array() : NULL;
    for (size_t i = 0; code == FLP_EXIT_OK && i < files->count; i++) {
        if (!is_chosen(command, &files->files[i]))
            continue;
        shown++;
        if (command->json)
            json_array_append_new(list, flp_records_pack(&files->files[i]));
        else
            print(&files->files[i]);
    }
    if (code == FLP_EXIT_OK && command->json)
        code = flp_console_print_json(json_pack("{s:o, s:o}", "directory", flp_console_json_string(flp_records_directory(records)), "records", list));
    else if (code == FLP_EXIT_OK && !command->quiet && print == print_line)
        printf("%zu record%s; %s\n", shown, flp_text_plural(shown),
               flp_records_directory(records)[0] ? flp_records_directory(records) : "no directory of this user's");
    if (code == FLP_EXIT_OK && print == print_whole && !shown) {
        flp_console_error("no record is known here%s", command->count ? " with such a word in its problem, architecture, device or name" : "");
        code = FLP_EXIT_FAILED;
    }
    flp_records_destroy(records);
    return code;
}

static int list_records(const flp_records_command *command)
{
    return print_chosen(command, print_line);
}

static int show_records(const flp_records_command *command)
{
    return print_chosen(command, print_whole);
}

typedef struct {
    const char *name, *words; /* words: what it takes, for messages */
    int least, most;          /* numbers of words */
    int (*run)(const flp_records_command *command);
} action;

enum { LIST, SHOW, EXPORT, IMPORT, LINT, DIFF, PRUNE, ACTIONS };

static const action actions[ACTIONS] = {
    [LIST] = { "list", "words", 0, INT32_MAX, list_records },
    [SHOW] = { "show", "words", 0, INT32_MAX, show_records },
    [EXPORT] = { "export", "nothing more", 0, 0, flp_records_export },
    [IMPORT] = { "import", "files", 1, INT32_MAX, flp_records_import },
    [LINT] = { "lint", "directories and files", 0, INT32_MAX, flp_records_lint },
    [DIFF] = { "diff", "one or two directories or files", 1, 2, flp_records_diff },
    [PRUNE] = { "prune", "nothing more", 0, 0, flp_records_prune },
};

typedef struct {
    flp_records_command command;
    const action *chosen;
} choice;

#define AT(field) offsetof(choice, command.field)
#define OF(action) FLP_OPTION_OF(action)

static const flp_option table[] = {
    { "directory", "DIR", "the user's records (default: FUSEDLOGP_RECORDS_DIR, or in the data directory)", FLP_OPTION_TEXT, .at = AT(directory), .group = 1 },
    { "all", NULL, "export: those of the system too", FLP_OPTION_FLAG, .at = AT(all), .group = 1, .actions = OF(EXPORT) },
    { "out", "FILE", "export: write to FILE", FLP_OPTION_TEXT, .at = AT(out), .group = 1, .actions = OF(EXPORT) },
    { "other-library", NULL, "prune: also those that another version of the library timed", FLP_OPTION_FLAG, .at = AT(other_library), .group = 2,
      .actions = OF(PRUNE) },
    { "older-than", "DAYS", "prune: also those that are older", FLP_OPTION_INT, .at = AT(older_than_days), 1, 36500, .group = 2, .actions = OF(PRUNE) },
    { "dry-run", NULL, "import, prune: say what would be done, and do nothing", FLP_OPTION_FLAG, .at = AT(dry_run), .group = 2,
      .actions = OF(IMPORT) | OF(PRUNE) },
    { "json", NULL, "print JSON (all but export)", FLP_OPTION_FLAG, .at = AT(json), .group = 3, .actions = ~OF(EXPORT) },
    { "quiet", NULL, "print nothing but errors and what list, show and export are asked for", FLP_OPTION_FLAG, .at = AT(quiet), .group = 3 },
    { 0 }
};

static void take_word(struct argp_state *state, void *options, char *word)
{
    choice *picked = options;
    if (picked->chosen != NULL) {
        picked->command.words[picked->command.count++] = word;
        return;
    }
    for (int i = 0; i < ACTIONS; i++)
        if (strcmp(word, actions[i].name) == 0)
            picked->chosen = &actions[i];
    if (picked->chosen == NULL)
        argp_error(state, "no action '%s'; wanted list, show, export, import, lint, diff or prune", word);
}

static const char *name_action(int number)
{
    return number < ACTIONS ? actions[number].name : NULL;
}

static void check_words(struct argp_state *state, void *options)
{
    const choice *picked = options;
    if (picked->chosen == NULL)
        argp_error(state, "wanted an action: list, show, export, import, lint, diff or prune");
    flp_options_check_action(state, (int)(picked->chosen - actions), name_action);
    if (picked->command.count < picked->chosen->least || picked->command.count > picked->chosen->most)
        argp_error(state, "%s: got %d words, wanted %s", picked->chosen->name, picked->command.count, picked->chosen->words);
    /* What lint and diff are given is read instead of the user's records. */
    const int most = picked->chosen == &actions[LINT] ? 0 : picked->chosen == &actions[DIFF] ? 1 : INT32_MAX;
    if (picked->command.directory && picked->command.count > most)
        argp_error(state, "--directory: got it with %s and %d words, wanted at most %d words beside it", picked->chosen->name, picked->command.count, most);
}

int flp_records_main(int argc, char **argv)
{
    static const flp_command_line line = { table, "list [WORD...]\nshow [WORD...]\nexport\nimport FILE...\nlint [DIR|FILE...]\ndiff DIR|FILE [DIR|FILE]\nprune",
                                           "Shows, moves and checks records of tunings.\v"
                                           "list and show take those with a WORD in their problem, architecture, device or name. An export is all records "
                                           "in one text, in order; FILE is one, or - for standard input. diff compares two of them, or one with what is "
                                           "known here, and exits with 1 where they differ. prune removes what is damaged.",
                                           take_word, check_words };
    choice picked = { .command = { .words = malloc((size_t)argc * sizeof(char *)) } };
    if (picked.command.words == NULL) {
        flp_console_error("out of memory");
        return FLP_EXIT_FAILED;
    }
    flp_options_parse(&line, argc, argv, &picked);
    int code = picked.chosen->run(&picked.command);
    free(picked.command.words);
    return code;
}
