/* Gathers the families' cases, compiles their kernels in parallel, and runs them. */
#include "host/host_suite.h"

#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host_device.h"
#include "host/machine/machine_api.h"
#include "operators/linear/linear_logp_backward_chunk.h"
#include "runtime/assertions.h"

static const struct {
    const flp_host_family *family;
    flp_host_part part;
} families[] = { { &flp_host_linear_logp, FLP_HOST_LINEAR },
                 { &flp_host_linear_logp_backward, FLP_HOST_LINEAR },
                 { &flp_host_linear_logp_shards, FLP_HOST_OTHERS },
                 { &flp_host_linear_logp_backward_shards, FLP_HOST_OTHERS },
                 { &flp_host_linear_cross_entropy_shards, FLP_HOST_OTHERS },
                 { &flp_host_linear_cross_entropy, FLP_HOST_OTHERS },
                 { &flp_host_logits_logp, FLP_HOST_OTHERS },
                 { &flp_host_weighted_sum, FLP_HOST_OTHERS },
                 { &flp_host_scale, FLP_HOST_OTHERS } };
enum { FAMILIES = sizeof(families) / sizeof(*families), MOST_COMPILERS = 16 };

typedef struct {
    const flp_host_family *family;
    int index;
    uint64_t seed;
} suite_case;

static flp_context *context;
static suite_case *cases;
static int case_count, all_count; /* of the cases that run, and of all that match */
static atomic_int next_case;

void flp_host_suite_leave_out(const char *name)
{
    printf("# left out, slow on the model of the GPU: %s\n", name);
}

flp_context *flp_host_suite_start(int compute_capability)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = 1 };
    flp_context *made = NULL;

    flp_host_device_install(compute_capability);
    flp_backward_set_least_steps_in_step(0);
    return flp_context_create(&options, &made) == FLP_OK ? made : NULL;
}

void flp_host_memory_add(flp_host_memory *memory, unsigned char *base, size_t offset, size_t data_bytes)
{
    if (!base)
        return;
    if (memory->count == FLP_HOST_MEMORY_BUFFERS)
        abort();
    memory->start[memory->count++] = base + offset;
    flp_host_machine_add_memory(base + offset, data_bytes);
}

void flp_host_memory_remove(flp_host_memory *memory)
{
    while (memory->count > 0)
        flp_host_machine_remove_memory(memory->start[--memory->count]);
}

void flp_host_suite_begin(uint64_t seed)
{
    flp_host_device.seed = seed;
    flp_host_device.failure[0] = 0;
}

int flp_host_suite_succeeded(flp_status status, char *message, size_t bytes)
{
    if (flp_host_device.failure[0])
        snprintf(message, bytes, "%s", flp_host_device.failure);
    else if (status != FLP_OK)
        snprintf(message, bytes, "%s", flp_error_message());
    return status == FLP_OK && !flp_host_device.failure[0];
}

int flp_host_suite_check_target_errors(flp_plan *plan, int64_t wanted_count, int64_t wanted_first, char *message, size_t bytes)
{
    int64_t count = 0, first = 0;
    const flp_status status = flp_plan_target_errors(plan, &count, &first);

    if (status == FLP_OK && count == wanted_count && first == wanted_first)
        return 1;
    if (status != FLP_OK)
        snprintf(message, bytes, "%s", flp_error_message());
    else
        snprintf(message, bytes, "bad targets: got %lld, the first in row %lld; wanted %lld, %lld", (long long)count, (long long)first, (long long)wanted_count,
                 (long long)wanted_first);
    return 0;
}

/* Whether a case's name matches the shell pattern $FUSEDLOGP_HOST_CASES; unset: all do. */
static int is_wanted(const char *name)
{
    const char *pattern = getenv("FUSEDLOGP_HOST_CASES");

    return !pattern || !pattern[0] || fnmatch(pattern, name, 0) == 0;
}

int flp_host_every(void)
{
    const char *text = getenv("FUSEDLOGP_HOST_EVERY");

    return text && atoi(text) > 1 ? atoi(text) : 1;
}

static int is_like(const char *name, const char *const *patterns)
{
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, name, 0) == 0)
            return 1;
    return 0;
}

/* Cases of a kernel that is written separately for each path (the forward that leaves saved exponentials), and cases in which kernels hand most over to each
 * other. They take longest: if only some cases run, each of these runs on one of the two paths. */
static int is_special(const char *name, int index, int share)
{
    static const char *const patterns[] = { "*: saved exponentials*", "*: forward too*", "*scratch*",     "*targets*", "*odd length*",
                                            "*of no meaning*",        "*far beyond*",    "*add up to 0*", NULL };

    return is_like(name, patterns) && (flp_host_every() == 1 || (index + (share > 1)) % 2 == 0);
}

/* Long cases that are left out if only some run, because others test the same: long walks in fp32, which those of the 16-bit types are for; and on the portable
 * path most cases with chunks of rows, which are the same on each path. */
static int is_spared(const char *name, int index, int share)
{
    static const char *const long_walks[] = { "f32 n8 d64 v50257 *", "f32 n1 d512 v5003 *", NULL }, *const chunks[] = { "*rows in chunks*", NULL };

    return flp_host_every() > 1 && (is_like(name, long_walks) || (share > 1 && index % share != 0 && is_like(name, chunks)));
}

/* Of the grid of 3 dtypes and 2 layouts of a shape, every other case runs if only some do: fp32 with one layout, and the 16-bit types together with both. */
static int is_in_turn(const char *name, int index)
{
    const int is_of_grid = strstr(name, " [V, D]") != NULL || strstr(name, " [D, V]") != NULL;

    return !is_of_grid || flp_host_every() == 1 || (index + index / 2) % 2 == 0;
}

/* Whether a case runs. The first family runs as a whole, and of the others one case in `share`. If only some cases run, $FUSEDLOGP_HOST_EVERY = n, the first
 * family runs its part of the grid, and the others one case in n of their share; linear_cross_entropy one in 2 n, because its launches are mostly those of the
 * backward. The cases are spread over a family, since neighbours differ in one option only. */
static int is_in_share(int family, int index, int share)
{
    const flp_host_family *cases_of = families[family].family;
    const char *name = cases_of->name(index);

    if (is_spared(name, index, share))
        return 0;
    if (family == 0 || (share == 1 && flp_host_every() == 1))
        return is_in_turn(name, index) || is_special(name, index, share);
    if (flp_host_every() > 1)
        share *= cases_of == &flp_host_linear_cross_entropy ? 2 * flp_host_every() : flp_host_every();
    return (index + index / 6 + family) % share == 0 || is_special(name, index, share);
}

static void collect_cases(int share, unsigned parts)
{
    uint64_t seed = 0; /* a case's seed does not depend on which other cases run */
    int all = 0;

    for (int i = 0; i < FAMILIES; i++)
        all += families[i].family->count();
    cases = calloc((size_t)all, sizeof(*cases));
    if (!cases)
        abort();
    for (int i = 0; i < FAMILIES; i++)
        for (int j = 0; j < families[i].family->count(); j++, seed++)
            if (families[i].part & parts && is_wanted(families[i].family->name(j))) {
                all_count++;
                if (is_in_share(i, j, share))
                    cases[case_count++] = (suite_case){ families[i].family, j, seed };
            }
}

static void *compile_cases(void *unused)
{
    int i;

    while ((i = atomic_fetch_add(&next_case, 1)) < case_count)
        cases[i].family->compile(context, cases[i].index);
    return unused;
}

static void compile_all(void)
{
    pthread_t threads[MOST_COMPILERS];
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int wanted = cores < 1 ? 1 : cores > MOST_COMPILERS ? MOST_COMPILERS : (int)cores, started = 0;

    while (started < wanted && pthread_create(&threads[started], NULL, compile_cases, NULL) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
}

/* Runs a case with an interleaving of its own or, if $FUSEDLOGP_HOST_SEEDS is set, with those of the seeds 0 .. $FUSEDLOGP_HOST_SEEDS - 1. */
static void a_case_is_right(void **state)
{
    const suite_case *c = *state;
    const char *text = getenv("FUSEDLOGP_HOST_SEEDS");
    const uint64_t seeds = text ? strtoull(text, NULL, 10) : 0;
    char message[8192] = "";

    for (uint64_t i = 0; i < (seeds ? seeds : 1); i++) {
        uint64_t seed = seeds ? i : c->seed;
        flp_host_suite_begin(seed);
        if (!c->family->run(context, c->index, message, sizeof(message)))
            fail_msg("%s, seed %llu: %s", c->family->name(c->index), (unsigned long long)seed, message);
    }
}

int flp_host_suite_run_case(flp_context *one, const char *pattern, char *message, size_t bytes)
{
    for (int i = 0; i < FAMILIES; i++)
        for (int j = 0; j < families[i].family->count(); j++)
            if (fnmatch(pattern, families[i].family->name(j), 0) == 0) {
                flp_host_suite_begin(0);
                return families[i].family->run(one, j, message, bytes);
            }
    snprintf(message, bytes, "no small case is named so");
    return 0;
}

int flp_host_suite_run(const char *name, int compute_capability, int share, unsigned parts)
{
    struct CMUnitTest *tests;
    int code;

    setvbuf(stdout, NULL, _IOLBF, 0);
    collect_cases(share, parts);
    if (all_count == 0) {
        fprintf(stderr, "FUSEDLOGP_HOST_CASES: no case of %s matches '%s'\n", name, getenv("FUSEDLOGP_HOST_CASES"));
        return 2;
    }
    if (flp_host_every() > 1)
        printf("# in part: %d of %d cases\n", case_count, all_count);
    tests = calloc((size_t)case_count, sizeof(*tests));
    context = flp_host_suite_start(compute_capability);
    if (!tests || !context)
        abort();
    for (int i = 0; i < case_count; i++)
        tests[i] = (struct CMUnitTest){ cases[i].family->name(cases[i].index), a_case_is_right, NULL, NULL, &cases[i] };
    compile_all();
    code = _cmocka_run_group_tests(name, tests, (size_t)case_count, NULL, NULL);
    flp_context_destroy(context);
    free(tests);
    free(cases);
    return code;
}
