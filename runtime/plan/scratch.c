/* The context's shared scratch: finding a stream's buffer without a lock, lending it, letting it grow. */
#include "plan/scratch.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/status.h"
#include "plan/device_memory.h"

enum { BUCKETS = 64 };

typedef struct retired {
    CUdeviceptr address;
    struct retired *next;
} retired;

struct flp_scratch_buffer {
    flp_device device;
    CUstream stream;
    uint64_t thread; /* whose per-thread default stream it is; 0 for a real stream */
    flp_scratch_buffer *next;
    pthread_mutex_t lent; /* guards what follows */
    CUdeviceptr address;
    int64_t bytes;
    int in_graph;      /* lent during a capture: a graph may hold the address */
    retired *retired;  /* outgrown buffers that a graph may hold */
};

struct flp_scratch {
    pthread_mutex_t mutex; /* of insertion; lookups take none */
    _Atomic(flp_scratch_buffer *) buckets[BUCKETS];
};

flp_status flp_scratch_create(flp_scratch **scratch)
{
    *scratch = calloc(1, sizeof(**scratch));
    if (!*scratch)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the scratch's table");
    pthread_mutex_init(&(*scratch)->mutex, NULL);
    return FLP_OK;
}

static void destroy_buffer(flp_scratch_buffer *buffer)
{
    flp_device_memory_free(&buffer->device, buffer->address);
    for (retired *at = buffer->retired; at;) {
        retired *next = at->next;
        flp_device_memory_free(&buffer->device, at->address);
        free(at);
        at = next;
    }
    pthread_mutex_destroy(&buffer->lent);
    free(buffer);
}

void flp_scratch_destroy(flp_scratch *scratch)
{
    if (!scratch)
        return;
    for (int i = 0; i < BUCKETS; i++)
        for (flp_scratch_buffer *at = atomic_load(&scratch->buckets[i]); at;) {
            flp_scratch_buffer *next = at->next;
            destroy_buffer(at);
            at = next;
        }
    pthread_mutex_destroy(&scratch->mutex);
    free(scratch);
}

/* CU_STREAM_LEGACY names the same stream as NULL; CU_STREAM_PER_THREAD another one in each thread. */
static CUstream resolve_stream(CUstream stream, uint64_t *thread)
{
    static atomic_uint_fast64_t threads;
    static _Thread_local uint64_t own;

    *thread = 0;
    if (stream == CU_STREAM_LEGACY)
        return NULL;
    if (stream == CU_STREAM_PER_THREAD) {
        if (!own)
            own = atomic_fetch_add(&threads, 1) + 1;
        *thread = own;
    }
    return stream;
}

static flp_scratch_buffer *find(flp_scratch *scratch, unsigned bucket, const flp_device *device, CUstream stream, uint64_t thread)
{
    flp_scratch_buffer *at = atomic_load_explicit(&scratch->buckets[bucket], memory_order_acquire);

    while (at && (at->device.context_id != device->context_id || at->stream != stream || at->thread != thread))
        at = at->next;
    return at;
}

static flp_scratch_buffer *find_or_insert(flp_scratch *scratch, const flp_device *device, CUstream stream)
{
    uint64_t thread, mixed;
    unsigned bucket;
    flp_scratch_buffer *buffer;

    stream = resolve_stream(stream, &thread);
    mixed = (device->context_id * 31 + (uintptr_t)stream / 16 + thread) * UINT64_C(0x9e3779b97f4a7c15);
    bucket = (unsigned)(mixed >> 58);
    buffer = find(scratch, bucket, device, stream, thread);
    if (buffer)
        return buffer;
    pthread_mutex_lock(&scratch->mutex);
    buffer = find(scratch, bucket, device, stream, thread);
    if (!buffer && (buffer = calloc(1, sizeof(*buffer)))) {
        buffer->device = *device;
        buffer->stream = stream;
        buffer->thread = thread;
        buffer->next = atomic_load(&scratch->buckets[bucket]);
        pthread_mutex_init(&buffer->lent, NULL);
        atomic_store_explicit(&scratch->buckets[bucket], buffer, memory_order_release);
    }
    pthread_mutex_unlock(&scratch->mutex);
    return buffer;
}

/* Gives up the buffer's memory: at once where only the stream used it, with the scratch where a graph may use it again. */
static flp_status release(flp_scratch_buffer *buffer)
{
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK && buffer->in_graph) {
        retired *kept = malloc(sizeof(*kept));
        if (!kept)
            return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory to keep a captured scratch");
        *kept = (retired){ buffer->address, buffer->retired };
        buffer->retired = kept;
    } else if (status == FLP_OK && buffer->address) {
        status = flp_driver_check(driver, driver->stream_synchronize(buffer->stream), "cuStreamSynchronize");
        if (status == FLP_OK)
            flp_device_memory_free(&buffer->device, buffer->address);
    }
    if (status == FLP_OK) {
        buffer->address = 0;
        buffer->bytes = 0;
        buffer->in_graph = 0;
    }
    return status;
}

static flp_status provide(flp_scratch_buffer *buffer, int64_t bytes, int64_t grown)
{
    int capturing;
    flp_status status = flp_device_is_capturing(buffer->stream, &capturing);

    if (status != FLP_OK)
        return status;
    if (buffer->bytes < bytes) {
        if (capturing)
            return flp_status_fail(FLP_CAPTURING, "the stream is captured and its scratch has %" PRId64 " bytes, wanted %" PRId64
                                                  ": prepare the problem before the capture, or pass a workspace",
                                   buffer->bytes, bytes);
        status = release(buffer);
        if (status == FLP_OK)
            status = flp_device_memory_allocate(grown, "the shared scratch", &buffer->address);
        if (status != FLP_OK)
            return status;
        buffer->bytes = grown;
    }
    buffer->in_graph |= capturing;
    return FLP_OK;
}

flp_status flp_scratch_lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown,
                            flp_scratch_loan *loan)
{
    flp_scratch_buffer *buffer = find_or_insert(scratch, device, stream);
    flp_status status;

    if (!buffer)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a stream's scratch");
    pthread_mutex_lock(&buffer->lent);
    status = provide(buffer, bytes, grown);
    if (status != FLP_OK) {
        pthread_mutex_unlock(&buffer->lent);
        return status;
    }
    *loan = (flp_scratch_loan){ (void *)(uintptr_t)buffer->address, buffer };
    return FLP_OK;
}

void flp_scratch_return(const flp_scratch_loan *loan)
{
    pthread_mutex_unlock(&loan->buffer->lent);
}

flp_status flp_scratch_reserve(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes)
{
    flp_scratch_loan loan;
    flp_status status = flp_scratch_lend(scratch, device, stream, bytes, bytes, &loan);

    if (status == FLP_OK)
        flp_scratch_return(&loan);
    return status;
}
