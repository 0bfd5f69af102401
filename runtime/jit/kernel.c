/* The kernels of one flp_context: finds, compiles in parallel and loads those that a plan needs. */
#include "jit/kernel.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/mutex.h"
#include "base/status.h"
#include "base/text.h"
#include "base/thread.h"
#include "cpu/thread_pool.h"
#include "jit/compile_order.h"
#include "jit/kernel_entry.h"
#include "jit/kernel_obtain.h"

/* NVRTC's front end recurses, and the caller's thread may have a small stack. */
enum { COMPILE_STACK_BYTES = 8 << 20, LEAST_THREADS = 2 };

struct flp_kernel_store {
    flp_kernel_origin origin;
    pthread_mutex_t mutex;     /* guards the list of entries */
    flp_kernel_entry *entries; /* entries are added, and removed only with the store */
    atomic_llong modules;
};

typedef struct {
    flp_kernel_entry *entry;
    flp_status status;
    char *message; /* error message of the thread that ran the job, for the caller's thread; NULL: none */
} job;

typedef struct {
    job *jobs;  /* [count], in the order of the request */
    int *order; /* [count]: indices of jobs in the order in which they begin */
    int count;
    atomic_int next; /* index into `order` of the next job to begin */
} job_list;

flp_status flp_kernel_store_create(const flp_context_options *options, flp_kernel_store **store)
{
    const flp_context_options defaults = { 0 };
    flp_kernel_store *made = calloc(1, sizeof(*made));
    flp_cubin_cache_options cache;
    flp_status status;

    *store = NULL;
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "kernel store: no memory");
    options = options ? options : &defaults;
    cache = (flp_cubin_cache_options){ options->cache_directory, options->system_cache_directories, options->cache_bytes,
                                       (options->flags & FLP_CONTEXT_SHARED_CACHE) != 0 };
    made->origin.flags = options->flags;
    pthread_mutex_init(&made->mutex, NULL);
    status = flp_cubin_cache_create(&cache, &made->origin.cache);
    if (status == FLP_OK)
        status = flp_generator_create(&made->origin.generator);
    if (status == FLP_OK)
        *store = made;
    else
        flp_kernel_store_destroy(made);
    return status;
}

void flp_kernel_store_destroy(flp_kernel_store *store)
{
    if (!store)
        return;
    while (store->entries) {
        flp_kernel_entry *next = store->entries->next;

        flp_kernel_entry_destroy(store->entries);
        store->entries = next;
    }
    if (store->origin.generator)
        flp_generator_destroy(store->origin.generator);
    flp_cubin_cache_destroy(store->origin.cache);
    pthread_mutex_destroy(&store->mutex);
    free(store);
}

flp_generator *flp_kernel_store_generator(flp_kernel_store *store)
{
    return store->origin.generator;
}

flp_cubin_cache *flp_kernel_store_cache(flp_kernel_store *store)
{
    return store->origin.cache;
}

void flp_kernel_store_counters(flp_kernel_store *store, flp_counters *counters)
{
    counters->compiled = atomic_load(&store->origin.compiled);
    counters->disk_hits = atomic_load(&store->origin.disk_hits);
    counters->disk_misses = atomic_load(&store->origin.disk_misses);
    counters->loaded = atomic_load(&store->modules);
}

static flp_status find_entry(flp_kernel_store *store, const char *variant, flp_kernel_entry **found)
{
    flp_kernel_entry *entry;

    if (strnlen(variant, FLP_VARIANT_BYTES) == FLP_VARIANT_BYTES)
        return flp_status_fail(FLP_BAD_ARGUMENT, "variant: got \"%.32s...\", wanted fewer than %d characters", variant, FLP_VARIANT_BYTES);
    flp_mutex_lock(&store->mutex);
    for (entry = store->entries; entry && strcmp(entry->variant, variant) != 0; entry = entry->next)
        ;
    if (!entry && (entry = flp_kernel_entry_create(&store->origin, variant))) {
        entry->next = store->entries;
        store->entries = entry;
    }
    flp_mutex_unlock(&store->mutex);
    *found = entry;
    return entry ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "kernel %s: no memory", variant);
}

static void *run_jobs(void *argument)
{
    job_list *list = argument;
    int i;

    while ((i = atomic_fetch_add(&list->next, 1)) < list->count) {
        job *job = &list->jobs[list->order[i]];

        job->status = flp_kernel_entry_fill(job->entry);
        if (job->status != FLP_OK)
            job->message = flp_text_duplicate(flp_error_message());
    }
    return NULL;
}

/* Runs the jobs on a thread for each core (at least LEAST_THREADS), but on no more threads than there are jobs. The caller's thread, whose stack may be small,
 * runs jobs only where no thread could be started. */
static void run_side_by_side(job_list *list)
{
    const int cores = flp_thread_pool_cores(), most = cores < LEAST_THREADS ? LEAST_THREADS : cores;
    pthread_t *threads = calloc((size_t)most, sizeof(*threads));
    int started = 0;
    pthread_attr_t attributes;

    pthread_attr_init(&attributes);
    pthread_attr_setstacksize(&attributes, COMPILE_STACK_BYTES);
    while (threads && started < most && started < list->count && flp_thread_start(&threads[started], &attributes, run_jobs, list) == 0)
        started++;
    if (!started)
        run_jobs(list);
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    pthread_attr_destroy(&attributes);
    free(threads);
}

static flp_status find_order(job_list *list)
{
    const char **variants = calloc((size_t)list->count + 1, sizeof(*variants));

    list->order = calloc((size_t)list->count + 1, sizeof(*list->order));
    for (int i = 0; variants && i < list->count; i++)
        variants[i] = list->jobs[i].entry->variant;
    if (variants && list->order)
        flp_compile_order(list->count, variants, list->order);
    free(variants);
    return variants && list->order ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "kernel store: no memory");
}

/* Gets the images of entries that have none yet. Where kernels is not NULL, an entry whose kernel in it is not NULL needs no image. Returns the first failure
 * in the order of the request. */
static flp_status fill_images(flp_kernel_entry *const *entries, int count, const flp_kernel *const *kernels)
{
    job_list list = { .jobs = calloc((size_t)count + 1, sizeof(*list.jobs)) };
    flp_status status = FLP_OK;

    if (!list.jobs)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "kernel store: no memory");
    for (int i = 0; i < count; i++)
        if (!(kernels && kernels[i]) && !flp_kernel_entry_has_image(entries[i]))
            list.jobs[list.count++].entry = entries[i];
    status = find_order(&list);
    if (status == FLP_OK)
        run_side_by_side(&list);
    for (int i = 0; i < list.count; i++) {
        const job *job = &list.jobs[i];

        if (job->status != FLP_OK && status == FLP_OK)
            status = flp_status_fail(job->status, "%s", job->message ? job->message : "no memory for the message");
        free(job->message);
    }
    free(list.order);
    free(list.jobs);
    return status;
}

static flp_status get(flp_kernel_store *store, const flp_device *device, int count, const char (*variants)[FLP_VARIANT_BYTES], flp_kernel_entry **entries,
                      const flp_kernel **kernels)
{
    flp_status status = FLP_OK;
    int missing = 0, loaded;

    for (int i = 0; i < count && status == FLP_OK; i++) {
        status = find_entry(store, variants[i], &entries[i]);
        kernels[i] = status == FLP_OK ? flp_kernel_entry_find(entries[i], device) : NULL;
        missing += !kernels[i];
    }
    if (status == FLP_OK && missing)
        status = fill_images(entries, count, kernels);
    /* Modules are loaded in the caller's thread, because the CUDA context is current there. */
    for (int i = 0; i < count && status == FLP_OK; i++)
        if (!kernels[i]) {
            status = flp_kernel_entry_load(entries[i], device, &kernels[i], &loaded);
            atomic_fetch_add(&store->modules, loaded);
        }
    return status;
}

flp_status flp_kernel_store_get(flp_kernel_store *store, const flp_device *device, int count, const char (*variants)[FLP_VARIANT_BYTES],
                                const flp_kernel **kernels)
{
    flp_kernel_entry **entries;
    flp_status status;

    if (count < 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "count: got %d, wanted 0 or more", count);
    entries = calloc((size_t)count + 1, sizeof(*entries));
    if (!entries)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "kernel store: no memory");
    status = get(store, device, count, variants, entries, kernels);
    free(entries);
    return status;
}

flp_status flp_kernel_store_fill(flp_kernel_store *store, int count, const char (*variants)[FLP_VARIANT_BYTES])
{
    flp_kernel_entry **entries = calloc((size_t)count + 1, sizeof(*entries));
    flp_status status = entries ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "kernel store: no memory");

    for (int i = 0; i < count && status == FLP_OK; i++)
        status = find_entry(store, variants[i], &entries[i]);
    if (status == FLP_OK)
        status = fill_images(entries, count, NULL);
    free(entries);
    return status;
}

flp_status flp_kernel_store_prebuild(flp_kernel_store *store, const char *variant, int *compiled, char **log)
{
    flp_kernel_image image;
    flp_status status = flp_kernel_obtain(&store->origin, variant, 0, &image);

    *compiled = image.compiled;
    if (log) {
        *log = image.log;
        image.log = NULL;
    }
    /* A plan works without the cache; but the purpose of a prebuild is to fill it. */
    if (status == FLP_OK && image.compiled && image.stored != FLP_OK)
        status = flp_status_prefix(image.stored, "kernel %s", variant);
    flp_kernel_image_free(&image);
    return status;
}

flp_status flp_kernel_store_find(flp_kernel_store *store, const char *variant, int *there)
{
    flp_kernel_image image;
    flp_status status = flp_kernel_obtain_cached(&store->origin, variant, &image, there);

    flp_kernel_image_free(&image);
    return status;
}

flp_status flp_kernel_store_compile(flp_kernel_store *store, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log)
{
    return flp_kernel_obtain_compiled(&store->origin, variant, emitted, cubin, log);
}
