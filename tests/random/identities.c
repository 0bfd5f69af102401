/* Fixed problems: run, their outputs digested, held against the lines of the path. */
#include "random/identities.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "random/suite.h"
#include "runtime/assertions.h"

enum { MOST_LINES = 64, LINE_BYTES = 4096, MESSAGE_BYTES = 4096, FIRST_OUTPUT = FLP_RANDOM_LOSS, LAST_OUTPUT = FLP_RANDOM_GRAD_BIAS };

typedef struct {
    char text[LINE_BYTES];
    const char *path, *problem, *identity, *digest;
} line;

static struct {
    const flp_random_machine *machine;
    line lines[MOST_LINES + 1];
    int count;
    char identity[LINE_BYTES], digest[FLP_DIGEST_TEXT_BYTES]; /* of the last execution */
} seen;

void flp_random_identities_begin(void)
{
    setenv("FUSEDLOGP_HOST_CXXFLAGS", "-Og -g1 -ffp-contract=off", 1);
}

/* The digest of the digests of all outputs, in the order of their roles. */
static void look(const flp_plan *plan, const flp_random_memory *memory)
{
    char digests[FLP_RANDOM_ROLES][FLP_DIGEST_TEXT_BYTES];
    int count = 0;

    for (int role = FIRST_OUTPUT; role <= LAST_OUTPUT; role++) {
        const flp_random_buffer *buffer = &memory->buffer[role];
        if (buffer->base)
            flp_digest_format(buffer->base + buffer->offset, buffer->data_bytes, digests[count++]);
    }
    flp_digest_format(digests, (size_t)count * sizeof(digests[0]), seen.digest);
    snprintf(seen.identity, sizeof(seen.identity), "%s", flp_plan_numerics(plan));
}

static void run(const line *l)
{
    char message[MESSAGE_BYTES] = "";
    flp_random_problem problem;
    void *state;
    int right;

    if (!flp_random_problem_parse(l->problem, &problem))
        fail_msg("'%s' is no problem", l->problem);
    flp_random_problem_settle(&problem);
    seen.identity[0] = 0;
    state = flp_random_family_of(&problem)->make(&problem);
    right = flp_random_family_of(&problem)->run(state, seen.machine, message, sizeof(message));
    flp_random_family_of(&problem)->free(state);
    if (!right)
        fail_msg("%s", message);
    assert_true(seen.identity[0]);
}

static void bits_are_those_of_the_identity(void **state)
{
    const line *l = *state;

    run(l);
    if (strcmp(seen.identity, l->identity) != 0)
        fail_msg("the identity is %s, and the line's %s: print the lines anew", seen.identity, l->identity);
    if (strcmp(seen.digest, l->digest) != 0)
        fail_msg("other bits (%s) under the same identity, %s: a change of arithmetic steps it", seen.digest, seen.identity);
}

static int split(line *l)
{
    char *at = l->text;

    at[strcspn(at, "\n")] = 0;
    l->path = strsep(&at, "\t");
    l->problem = strsep(&at, "\t");
    l->identity = strsep(&at, "\t");
    l->digest = strsep(&at, "\t");
    return l->digest && !at;
}

/* 0, and said why, where the file is not all there or holds what is no line: none is passed over. */
static int read_lines(void)
{
    const char *source = getenv("top_srcdir");
    char path[LINE_BYTES];
    int good = 1;
    FILE *file;

    snprintf(path, sizeof(path), "%s/tests/random/identities.tsv", source ? source : ".");
    file = fopen(path, "r");
    if (!file) {
        perror(path);
        return 0;
    }
    while (good && fgets(seen.lines[seen.count].text, LINE_BYTES, file)) {
        line *l = &seen.lines[seen.count];
        good = seen.count < MOST_LINES && split(l);
        seen.count += good && strcmp(l->path, seen.machine->name) == 0;
    }
    fclose(file);
    if (!good)
        fprintf(stderr, "%s: wanted at most %d lines a path, each of four fields\n", path, MOST_LINES);
    return good && seen.count > 0;
}

static int print_lines(void)
{
    for (int i = 0; i < seen.count; i++) {
        run(&seen.lines[i]);
        printf("%s\t%s\t%s\t%s\n", seen.machine->name, seen.lines[i].problem, seen.identity, seen.digest);
    }
    return 0;
}

int flp_random_identities_main(const flp_random_machine *machine, int argc, char **argv)
{
    struct CMUnitTest tests[MOST_LINES];

    seen.machine = machine;
    flp_random_answered = look;
    if (!read_lines())
        return 1;
    if (argc > 1 && strcmp(argv[1], "--lines") == 0)
        return print_lines();
    for (int i = 0; i < seen.count; i++)
        tests[i] = (struct CMUnitTest){ seen.lines[i].problem, bits_are_those_of_the_identity, NULL, NULL, &seen.lines[i] };
    return _cmocka_run_group_tests("numeric identities", tests, (size_t)seen.count, NULL, NULL);
}
