/* The context's shared scratch: finding a stream's buffer without a lock, lending it, handing it on to another stream. */
#include "core/scratch.h"

#include <stdlib.h>

#include "base/mutex.h"
#include "base/status.h"

struct flp_scratch {
    pthread_mutex_t mutex; /* held while a buffer is inserted or handed on; lookups take no lock */
    atomic_uint_fast64_t returns;
    _Atomic(flp_scratch_buffer *) buffers;
};

/* Identifies a stream of a CUDA context by the driver's id for it, which no other stream of the process ever gets. The driver does not give the id of a stream
 * that is being captured. Such a stream is looked for by its handle, which stands for the stream that was last seen with it. */
typedef struct {
    uint64_t context_id, kind, id;
    uintptr_t handle;
    int by_handle;
} owner;
enum { NOBODY, LEGACY, PER_THREAD, STREAM };

flp_status flp_scratch_create(flp_scratch **scratch)
{
    *scratch = calloc(1, sizeof(**scratch));
    if (!*scratch)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the scratch's table");
    pthread_mutex_init(&(*scratch)->mutex, NULL);
    return FLP_OK;
}

void flp_scratch_destroy(flp_scratch *scratch)
{
    if (!scratch)
        return;
    for (flp_scratch_buffer *at = atomic_load(&scratch->buffers); at;) {
        flp_scratch_buffer *next = at->next;
        flp_scratch_buffer_destroy(at);
        at = next;
    }
    pthread_mutex_destroy(&scratch->mutex);
    free(scratch);
}

/* CU_STREAM_LEGACY is the same stream as NULL. CU_STREAM_PER_THREAD is another stream in each thread, and the driver may give the stream of a thread that has
 * ended to a new thread; threads are therefore numbered. */
static flp_status identify(const flp_device *device, CUstream stream, int capturing, owner *wanted)
{
    static atomic_uint_fast64_t threads;
    static _Thread_local uint64_t own;
    const flp_driver *driver;
    unsigned long long id = 0;
    CUresult result;
    flp_status status;

    *wanted = (owner){ .context_id = device->context_id, .kind = LEGACY };
    if (!stream || stream == CU_STREAM_LEGACY)
        return FLP_OK;
    if (stream == CU_STREAM_PER_THREAD) {
        if (!own)
            own = atomic_fetch_add(&threads, 1) + 1;
        *wanted = (owner){ .context_id = device->context_id, .kind = PER_THREAD, .id = own };
        return FLP_OK;
    }
    *wanted = (owner){ .context_id = device->context_id, .kind = STREAM, .handle = (uintptr_t)stream, .by_handle = capturing };
    status = flp_driver_get(&driver);
    if (capturing || status != FLP_OK)
        return status;
    result = driver->stream_id(stream, &id);
    wanted->id = id;
    wanted->by_handle = result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED; /* because of a capture elsewhere */
    return wanted->by_handle ? FLP_OK : flp_driver_check(driver, result, "cuStreamGetId");
}

static int belongs(flp_scratch_buffer *buffer, const owner *to)
{
    const int is_same = to->by_handle ? atomic_load_explicit(&buffer->handle, memory_order_relaxed) == to->handle
                                      : atomic_load_explicit(&buffer->stream_id, memory_order_relaxed) == to->id;

    return is_same && atomic_load_explicit(&buffer->kind, memory_order_relaxed) == to->kind &&
           atomic_load_explicit(&buffer->context_id, memory_order_relaxed) == to->context_id;
}

static void give_to(flp_scratch_buffer *buffer, const owner *to)
{
    atomic_store_explicit(&buffer->context_id, to->context_id, memory_order_relaxed);
    atomic_store_explicit(&buffer->kind, to->kind, memory_order_relaxed);
    atomic_store_explicit(&buffer->handle, to->handle, memory_order_relaxed);
    atomic_store_explicit(&buffer->stream_id, to->id, memory_order_relaxed);
}

static flp_scratch_buffer *find(flp_scratch *scratch, const owner *wanted)
{
    flp_scratch_buffer *at = atomic_load_explicit(&scratch->buffers, memory_order_acquire);

    while (at && !belongs(at, wanted))
        at = at->next;
    return at;
}

/* 1: the buffer is not handed to another stream: it is its stream's for good, or prepare has reserved it, or a graph may hold its address, or no event was
 * recorded after its last use. */
static int stays(const flp_scratch_buffer *buffer)
{
    return buffer->own || buffer->reserved || buffer->in_graph || (buffer->address && !buffer->recorded);
}

/* What a CUDA context has: buffers that belong to one of the first streams for good, and shared buffers that may be handed on. oldest: the shared buffer that
 * was returned first. */
typedef struct {
    int own, shared;
    flp_scratch_buffer *oldest;
    uint64_t returned; /* the oldest's */
} census;

static void count_buffer(flp_scratch_buffer *buffer, census *found)
{
    found->own += buffer->own;
    if (stays(buffer))
        return;
    found->shared++;
    if (found->oldest && buffer->returned >= found->returned)
        return;
    found->oldest = buffer;
    found->returned = buffer->returned;
}

/* Waits for buffers that are lent, which does not take long: a loan ends when its launches are enqueued. */
static census count_buffers(flp_scratch *scratch, uint64_t context_id)
{
    census found = { 0 };

    for (flp_scratch_buffer *at = atomic_load(&scratch->buffers); at; at = at->next) {
        if (atomic_load_explicit(&at->context_id, memory_order_relaxed) != context_id)
            continue;
        flp_mutex_lock(&at->lent);
        if (atomic_load_explicit(&at->kind, memory_order_relaxed) != NOBODY)
            count_buffer(at, &found);
        flp_mutex_unlock(&at->lent);
    }
    return found;
}

/* For a handle that the driver has reused: the stream that had it is gone, and its buffer is no longer found by the handle. */
static void forget_handle(flp_scratch *scratch, const owner *of)
{
    for (flp_scratch_buffer *at = atomic_load(&scratch->buffers); at && of->handle; at = at->next)
        if (atomic_load_explicit(&at->handle, memory_order_relaxed) == of->handle &&
            atomic_load_explicit(&at->context_id, memory_order_relaxed) == of->context_id)
            atomic_store_explicit(&at->handle, 0, memory_order_relaxed);
}

/* Gives the stream an empty buffer: an unused one of the list, or a new one. */
static flp_status insert(flp_scratch *scratch, const flp_device *device, const owner *wanted, int own)
{
    const owner nobody = { .kind = NOBODY };
    flp_scratch_buffer *buffer = find(scratch, &nobody);
    const int is_new = !buffer;

    if (is_new && (buffer = calloc(1, sizeof(*buffer))))
        pthread_mutex_init(&buffer->lent, NULL);
    if (!buffer)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a stream's scratch");
    flp_mutex_lock(&buffer->lent);
    buffer->device = *device;
    buffer->own = own;
    give_to(buffer, wanted);
    flp_mutex_unlock(&buffer->lent);
    if (is_new) {
        buffer->next = atomic_load(&scratch->buffers);
        atomic_store_explicit(&scratch->buffers, buffer, memory_order_release);
    }
    return FLP_OK;
}

/* Hands a buffer to another stream, whose work then waits for the buffer's last use. Does nothing, with FLP_OK, where the buffer must meanwhile stay with its
 * stream. */
static flp_status hand_on(flp_scratch_buffer *buffer, const owner *wanted, CUstream stream)
{
    flp_status status = FLP_OK;

    flp_mutex_lock(&buffer->lent);
    if (!stays(buffer)) {
        if (buffer->address)
            status = flp_scratch_buffer_order(buffer, stream);
        if (status == FLP_OK)
            give_to(buffer, wanted);
    }
    flp_mutex_unlock(&buffer->lent);
    return status;
}

/* Gives the stream a buffer where it has none. */
static flp_status provide_owner(flp_scratch *scratch, const flp_device *device, CUstream stream, const owner *wanted)
{
    flp_status status = FLP_OK;

    flp_mutex_lock(&scratch->mutex);
    while (status == FLP_OK && !find(scratch, wanted)) {
        forget_handle(scratch, wanted);
        const census found = count_buffers(scratch, wanted->context_id);
        if (found.own < FLP_SCRATCH_OWN || found.shared < FLP_SCRATCH_SHARED)
            status = insert(scratch, device, wanted, found.own < FLP_SCRATCH_OWN);
        else
            status = hand_on(found.oldest, wanted, stream);
    }
    flp_mutex_unlock(&scratch->mutex);
    return status;
}

/* Finds the stream's buffer and locks it. Searches again if another stream got the buffer between the search and the lock. *buffer is NULL where there is none
 * and a capture forbids making one. */
static flp_status take(flp_scratch *scratch, const flp_device *device, CUstream stream, int capturing, flp_scratch_buffer **buffer)
{
    owner wanted;
    flp_status status = identify(device, stream, capturing, &wanted);

    *buffer = NULL;
    while (status == FLP_OK && !*buffer) {
        flp_scratch_buffer *found = find(scratch, &wanted);
        if (!found && (capturing || wanted.by_handle))
            return FLP_OK;
        if (!found) {
            status = provide_owner(scratch, device, stream, &wanted);
            continue;
        }
        flp_mutex_lock(&found->lent);
        if (belongs(found, &wanted))
            *buffer = found;
        else
            flp_mutex_unlock(&found->lent);
    }
    return status;
}

static flp_status lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown, int reserve, flp_scratch_loan *loan)
{
    flp_scratch_buffer *buffer;
    int capturing;
    flp_status status = flp_device_is_capturing(stream, &capturing);

    if (status == FLP_OK)
        status = take(scratch, device, stream, capturing, &buffer);
    if (status != FLP_OK)
        return status;
    if (!buffer)
        return flp_scratch_buffer_refuse_capture(0, bytes);
    status = flp_scratch_buffer_provide(buffer, stream, capturing, bytes, grown);
    if (status != FLP_OK) {
        flp_mutex_unlock(&buffer->lent);
        return status;
    }
    buffer->reserved |= reserve;
    *loan = (flp_scratch_loan){ (void *)(uintptr_t)buffer->address, scratch, buffer, stream };
    return FLP_OK;
}

flp_status flp_scratch_lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown, flp_scratch_loan *loan)
{
    return lend(scratch, device, stream, bytes, grown, 0, loan);
}

void flp_scratch_return(const flp_scratch_loan *loan)
{
    flp_scratch_buffer *buffer = loan->buffer;

    if (!buffer->own && !buffer->reserved && !buffer->in_graph) {
        flp_scratch_buffer_record(buffer, loan->stream);
        buffer->returned = atomic_fetch_add(&loan->scratch->returns, 1) + 1;
    }
    flp_mutex_unlock(&buffer->lent);
}

flp_status flp_scratch_reserve(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes)
{
    flp_scratch_loan loan;
    flp_status status = lend(scratch, device, stream, bytes, bytes, 1, &loan);

    if (status == FLP_OK)
        flp_scratch_return(&loan);
    return status;
}

flp_status flp_scratch_release(flp_scratch *scratch, int of_graphs)
{
    const owner nobody = { .kind = NOBODY };
    flp_status status = FLP_OK;

    flp_mutex_lock(&scratch->mutex);
    for (flp_scratch_buffer *at = atomic_load(&scratch->buffers); at && status == FLP_OK; at = at->next) {
        flp_mutex_lock(&at->lent);
        if (!belongs(at, &nobody))
            status = flp_scratch_buffer_release(at, of_graphs);
        if (status == FLP_OK && flp_scratch_buffer_is_empty(at)) {
            at->own = at->reserved = 0;
            give_to(at, &nobody);
        }
        flp_mutex_unlock(&at->lent);
    }
    flp_mutex_unlock(&scratch->mutex);
    return status;
}
