/* The loop of the random tester: one test a path and operator, a failure shrunk and told in one line. */
#include "random/suite.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "random/draw.h"
#include "random/judge.h"
#include "random/once_failed.h"
#include "runtime/assertions.h"

enum { TEXT_BYTES = 2048, MESSAGE_BYTES = 4096, BATCH = 64, TIMED_BATCH = 8, MOST_THREADS = 32 };

static struct {
    const flp_random_machine *machine;
    const char *program;
    flp_random_drawing drawing;
    int64_t problems; /* of each operator */
    double seconds;   /* of each operator; 0: no end but problems' */
    double shrink_seconds;
    int64_t most_failures;
} suite;

void (*flp_random_answered)(const flp_plan *plan, const flp_random_memory *memory);

const flp_random_family *flp_random_family_of(const flp_random_problem *problem)
{
    if (problem->op <= FLP_RANDOM_CROSS_ENTROPY)
        return &flp_random_linear_family;
    if (problem->op <= FLP_RANDOM_LOGITS_BACKWARD)
        return &flp_random_logits_family;
    return problem->op == FLP_RANDOM_SCALE ? &flp_random_scale_family : &flp_random_sum_family;
}

static double now(void)
{
    struct timespec time;

    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static double setting(const char *name, double otherwise)
{
    const char *text = getenv(name);

    return text && text[0] ? strtod(text, NULL) : otherwise;
}

static int run_state(const flp_random_problem *problem, void *state, char *message)
{
    const flp_random_family *family = flp_random_family_of(problem);
    int right;

    message[0] = 0;
    right = family->run(state, suite.machine, message, MESSAGE_BYTES);
    family->free(state);
    return right;
}

static int run(const flp_random_problem *problem, char *message)
{
    return run_state(problem, flp_random_family_of(problem)->make(problem), message);
}

/* ---- problems made ahead: truths and kernels by several threads ---- */

typedef struct {
    flp_random_problem problem[BATCH];
    void *state[BATCH];
    int count;
    atomic_int next;
} batch;

static void *make_some(void *argument)
{
    batch *b = argument;
    int i;

    if (suite.machine->enter && !suite.machine->enter(suite.machine))
        return NULL;
    while ((i = atomic_fetch_add(&b->next, 1)) < b->count) {
        const flp_random_family *family = flp_random_family_of(&b->problem[i]);
        b->state[i] = family->make(&b->problem[i]);
        family->warm(b->state[i], suite.machine);
    }
    return NULL;
}

static void make_batch(batch *b, flp_random_operator op, int64_t first, int count)
{
    pthread_t threads[MOST_THREADS];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int started = 0;

    b->count = count;
    b->next = 0;
    for (int i = 0; i < count; i++)
        flp_random_draw(&suite.drawing, op, first + i, &b->problem[i]);
    while (started < MOST_THREADS && started < cores && pthread_create(&threads[started], NULL, make_some, b) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

static void free_batch(batch *b, int from)
{
    for (int i = from; i < b->count; i++)
        flp_random_family_of(&b->problem[i])->free(b->state[i]);
}

/* What a message begins with: shrinking keeps to one kind of failure. */
static size_t kind_of(const char *message)
{
    return strcspn(message, "[0123456789:,");
}

static int is_alike(const char *a, const char *b)
{
    return kind_of(a) == kind_of(b) && memcmp(a, b, kind_of(a)) == 0;
}

static void shrink(flp_random_problem *problem, char *message)
{
    const double end = now() + suite.shrink_seconds;
    char other[MESSAGE_BYTES];
    int changed = 1;

    while (changed) {
        flp_random_problem simpler;
        changed = 0;
        for (int i = 0; flp_random_problem_simplify(problem, i, &simpler) && now() < end; i++) {
            if (memcmp(&simpler, problem, sizeof(simpler)) == 0 || run(&simpler, other) || !is_alike(message, other))
                continue;
            *problem = simpler;
            strcpy(message, other);
            changed = 1;
        }
    }
}

static void show_progress(const flp_random_problem *problem, int64_t done, int64_t failed, double started)
{
    static double shown;

    if (!isatty(STDERR_FILENO) || now() - shown < 0.5)
        return;
    shown = now();
    fprintf(stderr, "\r%s, operator %d: %lld problems, %lld failed, %.0f s \r", suite.machine->name, problem->op, (long long)done, (long long)failed,
            now() - started);
}

static void tell(const flp_random_problem *problem, const char *message)
{
    char text[TEXT_BYTES];

    flp_random_problem_format(problem, text, sizeof(text));
    printf("# %s '%s'    # %s\n", suite.program, text, message);
    fflush(stdout);
}

static int is_over(int64_t done, int64_t failed, double started)
{
    return done >= suite.problems || (suite.seconds > 0 && now() - started >= suite.seconds) || failed >= suite.most_failures;
}

static void an_operators_problems_are_right(void **state)
{
    const int op = (int)(intptr_t)*state;
    const double started = now();
    int64_t done = 0, failed = 0;
    char message[MESSAGE_BYTES];
    batch *b = calloc(1, sizeof(*b));

    if (!b)
        abort();
    while (!is_over(done, failed, started)) {
        const int64_t most = suite.seconds > 0 ? TIMED_BATCH : BATCH, left = suite.problems - done; /* time may end while a batch is made */
        int i = 0;
        make_batch(b, (flp_random_operator)op, done, (int)(left < most ? left : most));
        for (; i < b->count && failed < suite.most_failures; i++, done++) { /* what is made is run, whatever the time */
            show_progress(&b->problem[i], done, failed, started);
            if (run_state(&b->problem[i], b->state[i], message))
                continue;
            failed++;
            shrink(&b->problem[i], message);
            tell(&b->problem[i], message);
        }
        free_batch(b, i);
    }
    free(b);
    printf("# %lld problems in %.1f s\n", (long long)done, now() - started);
    if (failed > 0)
        fail_msg("%lld of %lld problems failed", (long long)failed, (long long)done);
}

/* ---- problems that failed once ---- */

static void what_failed_once_is_right(void **state)
{
    char message[MESSAGE_BYTES];
    int failed = 0;

    (void)state;
    for (int i = 0; flp_random_once_failed[i]; i++) {
        flp_random_problem problem;
        assert_true(flp_random_problem_parse(flp_random_once_failed[i], &problem));
        flp_random_problem_settle(&problem);
        if (run(&problem, message))
            continue;
        failed++;
        tell(&problem, message);
    }
    if (failed > 0)
        fail_msg("%d problems failed", failed);
}

/* ---- the texts ---- */

static void a_problems_text_repeats_it(void **state)
{
    char text[TEXT_BYTES], again[TEXT_BYTES];
    flp_random_problem problem;

    (void)state;
    for (int op = 0; op < FLP_RANDOM_OPERATORS; op++)
        for (int i = 0; i < 3000; i++) {
            flp_random_draw(&suite.drawing, (flp_random_operator)op, i, &problem);
            flp_random_problem_format(&problem, text, sizeof(text));
            assert_true(flp_random_problem_parse(text, &problem));
            flp_random_problem_settle(&problem);
            flp_random_problem_format(&problem, again, sizeof(again));
            assert_string_equal(again, text);
        }
}

static int run_one(const char *text)
{
    char message[MESSAGE_BYTES];
    flp_random_problem problem;
    int right;

    if (!flp_random_problem_parse(text, &problem)) {
        fprintf(stderr, "'%s' is no problem\n", text);
        return 2;
    }
    flp_random_problem_settle(&problem);
    right = run(&problem, message);
    printf("%s\n", right ? "right" : message);
    return !right;
}

int flp_random_suite_main(const flp_random_machine *machine, int argc, char **argv, int problems)
{
    static const char *const names[FLP_RANDOM_OPERATORS] = { "linear_logp",          "linear_logp_backward", "linear_cross_entropy",  "logits_logp",
                                                             "logits_logp_backward", "weighted_sum",         "weighted_sum_backward", "scale" };
    struct CMUnitTest tests[FLP_RANDOM_OPERATORS + 2];
    const char *only = getenv("FUSEDLOGP_RANDOM_OPERATOR");
    const double seconds = setting("FUSEDLOGP_RANDOM_SECONDS", 0);
    int count = 0, code;

    suite.machine = machine;
    suite.program = argv[0];
    if (argc > 1)
        return run_one(argv[1]);
    setvbuf(stdout, NULL, _IOLBF, 0);
    for (int i = 0; i < FLP_RANDOM_OPERATORS; i++)
        if (!only || strcmp(only, names[i]) == 0)
            tests[count++] = (struct CMUnitTest){ names[i], an_operators_problems_are_right, NULL, NULL, (void *)(intptr_t)i };
    const int operators = count;
    if (operators == 0) {
        fprintf(stderr, "FUSEDLOGP_RANDOM_OPERATOR: got '%s', wanted an operator's name\n", only);
        return 2;
    }
    tests[count++] = (struct CMUnitTest){ "a_problems_text_repeats_it", a_problems_text_repeats_it, NULL, NULL, NULL };
    if (!only)
        tests[count++] = (struct CMUnitTest){ "what_failed_once_is_right", what_failed_once_is_right, NULL, NULL, NULL };
    const double wanted = setting("FUSEDLOGP_RANDOM_PROBLEMS", seconds > 0 ? 1e15 : problems);
    suite.problems = (int64_t)(wanted / operators);
    suite.seconds = seconds / operators;
    suite.shrink_seconds = setting("FUSEDLOGP_RANDOM_SHRINK_SECONDS", 60);
    suite.most_failures = (int64_t)setting("FUSEDLOGP_RANDOM_FAILURES", 3);
    suite.drawing = (flp_random_drawing){ .seed = (uint64_t)setting("FUSEDLOGP_RANDOM_SEED", 1),
                                          .work = setting("FUSEDLOGP_RANDOM_WORK", machine->work),
                                          .is_cpu = machine->is_cpu };
    suite.drawing.profiles = (int)setting("FUSEDLOGP_RANDOM_PROFILES", wanted > 2 * problems ? 12 : 0);
    code = _cmocka_run_group_tests(machine->name, tests, (size_t)count, NULL, NULL);
    if (getenv("FUSEDLOGP_RANDOM_NOTES"))
        flp_random_show_largest_errors();
    return code;
}
