/* fusedlogp-gen: compiles variants into the cache, several at a time. */
#include <limits.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "base/text.h"
#include "base/clock.h"
#include "cli/console.h"
#include "cli/gen.h"
#include "cpu/thread_pool.h"
#include "cuda/nvrtc.h"
#include "jit/compile_order.h"

typedef enum { SKIPPED, CACHED, COMPILED, FAILED, OUTCOMES } outcome;
static const char *const outcome_names[OUTCOMES] = { "skipped", "cached", "compiled", "failed" };

typedef struct {
    const flp_gen_options *options;
    flp_context *context;
    flp_gen_variants variants;
    int *order; /* of compilation: indices of variants */
    outcome *outcomes;
    double *seconds;
    char **errors; /* of the failed ones; NULL otherwise */
    pthread_mutex_t lock;
    size_t done;       /* guarded by lock, as is status */
    flp_status status; /* the first failure's */
} build;

/* Counts a kernel as done and reports its error. A missing NVRTC stops every kernel and is reported once. */
static void finish(build *now, int64_t index, flp_status status)
{
    const char *name = now->variants.name[index];
    pthread_mutex_lock(&now->lock);
    now->done++;
    if (status != FLP_OK && !(status == FLP_NO_NVRTC && now->status == FLP_NO_NVRTC))
        flp_console_error("%s", now->errors[index] ? now->errors[index] : flp_status_text(status));
    if (status != FLP_OK && now->status == FLP_OK)
        now->status = status;
    if (!now->options->quiet && !now->options->json)
        flp_console_progress("%zu of %zu: %s", now->done, now->variants.count, name);
    pthread_mutex_unlock(&now->lock);
}

static void prebuild_one(void *data, int64_t number, int thread)
{
    build *now = data;
    const int index = now->order[number];
    int compiled = 0;
    (void)thread;
    pthread_mutex_lock(&now->lock);
    int hopeless = now->status == FLP_NO_NVRTC; /* every other kernel would fail the same way */
    pthread_mutex_unlock(&now->lock);
    if (hopeless)
        return;
    double start = flp_clock_seconds();
    flp_status status = flp_kernel_store_prebuild(now->context->store, now->variants.name[index], &compiled, NULL);
    now->seconds[index] = flp_clock_seconds() - start;
    now->outcomes[index] = status != FLP_OK ? FAILED : compiled ? COMPILED : CACHED;
    if (status != FLP_OK) {
        now->errors[index] = flp_text_duplicate(flp_error_message());
    }
    finish(now, index, status);
}

static json_t *json_kernels(const build *now)
{
    json_t *kernels = json_array();
    for (size_t i = 0; i < now->variants.count; i++) {
        json_t *kernel = json_pack("{s:s, s:s, s:f}", "variant", now->variants.name[i], "outcome", outcome_names[now->outcomes[i]], "seconds", now->seconds[i]);
        if (now->errors[i] != NULL)
            json_object_set_new(kernel, "error", flp_console_json_string(now->errors[i]));
        json_array_append_new(kernels, kernel);
    }
    return kernels;
}

static int report(const build *now, double seconds)
{
    size_t counts[OUTCOMES] = { 0 };
    flp_cubin_cache_facts facts;
    for (size_t i = 0; i < now->variants.count; i++)
        counts[now->outcomes[i]]++;
    flp_cubin_cache_describe(flp_kernel_store_cache(now->context->store), &facts);
    int code = flp_console_exit_code(now->status);
    if (now->options->json) {
        int printed = flp_console_print_json(json_pack("{s:o, s:f, s:o, s:o}", "directory", flp_console_json_string(facts.directory), "seconds", seconds,
                                                       "kernels", json_kernels(now), "left_out", flp_gen_variants_left_out(&now->variants)));
        return code != FLP_EXIT_OK ? code : printed;
    }
    if (!now->options->quiet) {
        printf("%zu kernel%s: %zu compiled, %zu already there, %zu failed", now->variants.count, flp_text_plural(now->variants.count), counts[COMPILED],
               counts[CACHED], counts[FAILED]);
        if (counts[SKIPPED])
            printf(", %zu not tried", counts[SKIPPED]);
        printf("; %.1f s; %s%s\n", seconds, facts.directory[0] ? facts.directory : "no directory",
               facts.directory[0] && facts.writable ? "" : ", not writable");
        if (code == FLP_EXIT_OK)
            flp_gen_variants_tell(now->options, &now->variants);
    }
    return code;
}

/* 1 where every kernel is on disk already, in a system directory or in a user's directory that is not writable. */
static int all_are_there(build *now)
{
    for (size_t i = 0; i < now->variants.count; i++) {
        int there;
        if (flp_kernel_store_find(now->context->store, now->variants.name[i], &there) != FLP_OK || !there)
            return 0;
        now->outcomes[i] = CACHED;
    }
    return 1;
}

/* A kernel directory that cannot be written is a failure of the prebuild if a kernel is missing, although a program that computes would only be slower. */
static int build_all(build *now, flp_thread_pool *pool, double start)
{
    flp_cubin_cache_facts facts;
    flp_cubin_cache_describe(flp_kernel_store_cache(now->context->store), &facts);
    flp_compile_order((int)now->variants.count, (const char *const *)now->variants.name, now->order);
    if (facts.directory[0] && facts.writable) {
        flp_thread_pool_run(pool, (int64_t)now->variants.count, prebuild_one, now);
        flp_console_progress("%s", "");
    } else if (!all_are_there(now)) {
        flp_console_error("the kernel directory cannot be written: %s", facts.refusal[0]     ? facts.refusal
                                                                        : facts.directory[0] ? facts.directory
                                                                                             : "none is known; name one with --out");
        return FLP_EXIT_FAILED;
    }
    return report(now, flp_clock_seconds() - start);
}

/* Body of the thread that loads NVRTC. A failure is reported later, by the first compilation. */
static void *load_nvrtc(void *unused)
{
    int major, minor;
    flp_nvrtc_version(&major, &minor);
    return unused;
}

/* Creates the context and collects the variants while another thread loads NVRTC, which takes a hundredth of a second. */
static flp_status collect(build *now)
{
    const flp_context_options context_options = flp_gen_context_options(now->options);
    pthread_t loader;
    int is_loading = pthread_create(&loader, NULL, load_nvrtc, NULL) == 0;
    flp_status status = flp_context_create(&context_options, &now->context);
    if (status == FLP_OK)
        status = flp_gen_variants_collect(now->options, now->context, &now->variants);
    if (is_loading)
        pthread_join(loader, NULL);
    return status;
}

/* Makes the allocator keep freed memory. NVRTC allocates tens of MiB for each kernel and frees them; returned to the system, they would have to be cleared
 * each time, which costs a fortieth of the time. */
static void keep_freed_memory(void)
{
#ifdef M_TOP_PAD /* glibc's */
    mallopt(M_TOP_PAD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, INT_MAX);
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
#endif
}

static int run(build *now)
{
    flp_thread_pool *pool = NULL;
    double start = flp_clock_seconds();
    keep_freed_memory();
    flp_status status = collect(now);
    if (status == FLP_OK)
        status = flp_thread_pool_create(now->options->jobs, &pool);
    if (status != FLP_OK)
        return flp_console_fail(status);
    now->order = calloc(now->variants.count, sizeof *now->order);
    now->outcomes = calloc(now->variants.count, sizeof *now->outcomes);
    now->seconds = calloc(now->variants.count, sizeof *now->seconds);
    now->errors = calloc(now->variants.count, sizeof *now->errors);
    int code = FLP_EXIT_FAILED;
    if (now->order == NULL || now->outcomes == NULL || now->seconds == NULL || now->errors == NULL) {
        flp_console_error("out of memory for %zu variants", now->variants.count);
    } else {
        code = build_all(now, pool, start);
    }
    flp_thread_pool_destroy(pool);
    return code;
}

int flp_gen_prebuild_run(const flp_gen_options *options)
{
    build now = { .options = options, .lock = PTHREAD_MUTEX_INITIALIZER };
    int code = run(&now);
    for (size_t i = 0; now.errors != NULL && i < now.variants.count; i++)
        free(now.errors[i]);
    free(now.errors);
    free(now.seconds);
    free(now.outcomes);
    free(now.order);
    flp_gen_variants_free(&now.variants);
    flp_context_destroy(now.context);
    return code;
}
