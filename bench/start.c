/* Measures cold and warm starts in fresh cache directories. */
#define _GNU_SOURCE /* nftw */
#include "start.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"
#include "cuda/nvrtc.h"
#include "jit/kernel.h"
#include "statistics.h"

enum { COLD_STARTS = 5, WARM_STARTS = 30, PATH_BYTES = 4096 };

static flp_status no_memory(void)
{
    return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
}

static double milliseconds(void)
{
    return flp_clock_seconds() * 1e3;
}

/* ---- a cache directory of our own */

static flp_status make_directory(char path[PATH_BYTES])
{
    const char *parent = getenv("TMPDIR");

    snprintf(path, PATH_BYTES, "%s/fusedlogp-bench-XXXXXX", parent && *parent ? parent : P_tmpdir);
    return mkdtemp(path) ? FLP_OK : flp_status_fail(FLP_IO_FAILED, "%s cannot be made", path);
}

static int remove_entry(const char *path, const struct stat *facts, int type, struct FTW *place)
{
    (void)facts, (void)type, (void)place;
    return remove(path);
}

static void remove_directory(const char *path)
{
    nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS);
}

/* ---- one kernel, without a device */

/* Does what a process does that starts: creates the store, gets the kernel and destroys both. */
static flp_status start_store(const char *directory, const char *variant, int expect_compiled, double *taken_ms)
{
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "" };
    const double start = milliseconds();
    flp_kernel_store *store;
    int compiled = 0;
    flp_status status = flp_kernel_store_create(&options, &store);

    if (status == FLP_OK)
        status = flp_kernel_store_prebuild(store, variant, &compiled, NULL);
    *taken_ms = milliseconds() - start;
    flp_kernel_store_destroy(store);
    if (status == FLP_OK && compiled != expect_compiled)
        status = flp_status_fail(FLP_INTERNAL, "kernel %s: %s, wanted the opposite", variant, compiled ? "compiled" : "not compiled");
    return status;
}

static flp_status measure_cold(const char *variant, double *samples)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < COLD_STARTS && status == FLP_OK; i++) {
        char directory[PATH_BYTES];
        status = make_directory(directory);
        if (status != FLP_OK)
            return status;
        status = start_store(directory, variant, 1, &samples[i]);
        remove_directory(directory);
    }
    return status;
}

static flp_status measure_warm(const char *variant, double *samples)
{
    char directory[PATH_BYTES];
    double ignored;
    flp_status status = make_directory(directory);

    if (status != FLP_OK)
        return status;
    status = start_store(directory, variant, 1, &ignored);
    for (int i = 0; i < WARM_STARTS && status == FLP_OK; i++)
        status = start_store(directory, variant, 0, &samples[i]);
    remove_directory(directory);
    return status;
}

/* Times the parts of a cold start: the generator alone; and NVRTC, as what a compilation without a cache takes beyond the generator. */
static flp_status measure_parts(flp_kernel_store *store, const char *variant, double *emit_ms, double *compile_ms)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < COLD_STARTS && status == FLP_OK; i++) {
        double start = milliseconds();
        flp_emitted emitted = { 0 };
        flp_cubin cubin = { 0 };
        status = flp_generator_emit(flp_kernel_store_generator(store), variant, &emitted);
        emit_ms[i] = milliseconds() - start;
        flp_emitted_free(&emitted);
        start = milliseconds();
        if (status == FLP_OK)
            status = flp_kernel_store_compile(store, variant, &emitted, &cubin, NULL);
        compile_ms[i] = milliseconds() - start - emit_ms[i];
        flp_cubin_free(&cubin);
        flp_emitted_free(&emitted);
    }
    return status;
}

static flp_status measure_variant(flp_kernel_store *store, const char *variant, json_t **result)
{
    double cold[COLD_STARTS], warm[WARM_STARTS], emit[COLD_STARTS], compile[COLD_STARTS], start = milliseconds(), load;
    int major, minor;
    flp_status status = flp_nvrtc_version(&major, &minor);

    load = milliseconds() - start;
    if (status == FLP_OK)
        status = measure_cold(variant, cold);
    if (status == FLP_OK)
        status = measure_warm(variant, warm);
    if (status == FLP_OK)
        status = measure_parts(store, variant, emit, compile);
    if (status != FLP_OK)
        return status;
    *result = json_pack("{s:s, s:f, s:o, s:o, s:o, s:o}", "kernel", variant, "nvrtc_load_ms", load, "cold_ms", flp_statistics_pack(cold, COLD_STARTS),
                        "warm_ms", flp_statistics_pack(warm, WARM_STARTS), "emit_ms", flp_statistics_pack(emit, COLD_STARTS), "compile_ms",
                        flp_statistics_pack(compile, COLD_STARTS));
    return *result ? FLP_OK : no_memory();
}

static flp_status measure_tile(flp_kernel_store *store, const flp_selection *selection, json_t **result)
{
    for (int i = 0; i < selection->count; i++)
        if (selection->role[i] == FLP_ROLE_TILE)
            return measure_variant(store, selection->variant[i], result);
    return flp_status_fail(FLP_INTERNAL, "the generator chose no kernel for the role tile");
}

flp_status flp_start_measure_kernel(const char *problem, int compute_capability, json_t **result)
{
    const flp_context_options memory_only = { .cache_directory = "", .system_cache_directories = "" };
    flp_kernel_store *store;
    flp_selection selection;
    flp_status status = flp_kernel_store_create(&memory_only, &store);

    if (status != FLP_OK)
        return status;
    status = flp_generator_select(flp_kernel_store_generator(store), &(flp_wanted_kernels){ problem, compute_capability, "auto", "" }, &selection);
    if (status == FLP_OK)
        status = measure_tile(store, &selection, result);
    flp_kernel_store_destroy(store);
    return status;
}

/* ---- a plan, on the device */

/* again_ms: NULL, or receives what a second plan of the same context takes. */
static flp_status start_plan(const char *directory, const flp_linear_logp_problem *problem, double *taken_ms, double *again_ms)
{
    const flp_context_options options = { .cache_directory = directory, .system_cache_directories = "" };
    double start = milliseconds();
    flp_context *context;
    flp_plan *plan = NULL, *second = NULL;
    flp_status status = flp_context_create(&options, &context);

    if (status == FLP_OK)
        status = flp_linear_logp_plan_create(context, problem, &plan);
    *taken_ms = milliseconds() - start;
    start = milliseconds();
    if (status == FLP_OK && again_ms)
        status = flp_linear_logp_plan_create(context, problem, &second);
    if (again_ms)
        *again_ms = milliseconds() - start;
    flp_plan_destroy(second);
    flp_plan_destroy(plan);
    flp_context_destroy(context);
    return status;
}

static flp_status measure_plan(const flp_linear_logp_problem *problem, double *cold, double *warm, double *again)
{
    char directory[PATH_BYTES];
    flp_status status = FLP_OK;

    for (int i = 0; i < COLD_STARTS && status == FLP_OK; i++) {
        status = make_directory(directory);
        if (status != FLP_OK)
            return status;
        status = start_plan(directory, problem, &cold[i], NULL);
        for (int j = 0; i == COLD_STARTS - 1 && j < WARM_STARTS && status == FLP_OK; j++)
            status = start_plan(directory, problem, &warm[j], &again[j]);
        remove_directory(directory);
    }
    return status;
}

flp_status flp_start_measure_plan(const char *problem, json_t **result)
{
    double cold[COLD_STARTS], warm[WARM_STARTS], again[WARM_STARTS];
    flp_linear_logp_problem parsed;
    flp_status status = flp_linear_logp_problem_parse(problem, &parsed);

    if (status == FLP_OK)
        status = measure_plan(&parsed, cold, warm, again);
    if (status != FLP_OK)
        return status;
    *result = json_pack("{s:s, s:o, s:o, s:o}", "problem", problem, "cold_ms", flp_statistics_pack(cold, COLD_STARTS), "warm_ms",
                        flp_statistics_pack(warm, WARM_STARTS), "known_ms", flp_statistics_pack(again, WARM_STARTS));
    return *result ? FLP_OK : no_memory();
}
