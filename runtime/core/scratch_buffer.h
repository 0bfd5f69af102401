/* One buffer of the shared scratch: its memory, and the order between the streams that have it one after another. */
#ifndef FLP_CORE_SCRATCH_BUFFER_H
#define FLP_CORE_SCRATCH_BUFFER_H
#include <pthread.h>
#include <stdatomic.h>

#include "cuda/device.h"

typedef struct flp_scratch_retired flp_scratch_retired;

typedef struct flp_scratch_buffer {
    /* Whose it is: read without a lock to find it, written and then read again with `lent`. */
    atomic_uint_fast64_t context_id, kind, stream_id;
    atomic_uintptr_t handle;         /* the stream's; 0 once another stream is known to have it */
    struct flp_scratch_buffer *next; /* in the list of all, which only grows */
    pthread_mutex_t lent;            /* guards what follows */
    flp_device device;
    CUdeviceptr address;
    int64_t bytes;
    int own;                      /* of its stream for good: nothing is recorded when it comes back */
    int reserved;                 /* a later loan counts on it */
    int in_graph;                 /* lent during a capture: a graph may hold the address */
    flp_scratch_retired *retired; /* outgrown memory that a graph may hold */
    CUevent passed;               /* recorded behind the last loan's launches, */
    int recorded;                 /* where this is 1 */
    uint64_t returned;            /* when that was, among all loans of buffers that are shared */
} flp_scratch_buffer;

/* The caller holds buffer->lent in all of these, device's context is current where memory is made, and stream is alive. */

/* At least `bytes` for stream's launches, else new memory of `grown`. FLP_CAPTURING, FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_scratch_buffer_provide(flp_scratch_buffer *buffer, CUstream stream, int capturing, int64_t bytes, int64_t grown);

/* The FLP_CAPTURING of a stream whose scratch has too few bytes. */
flp_status flp_scratch_buffer_refuse_capture(int64_t has, int64_t wanted);

/* Notes where stream's launches in the buffer end. Where that fails the buffer is handed to no other stream. */
void flp_scratch_buffer_record(flp_scratch_buffer *buffer, CUstream stream);

/* stream's later work waits for the launches of the stream that had the buffer before. */
flp_status flp_scratch_buffer_order(flp_scratch_buffer *buffer, CUstream stream);

int flp_scratch_buffer_is_empty(const flp_scratch_buffer *buffer);

/* Frees what flp_scratch_release says. FLP_CAPTURING, FLP_CUDA_FAILED: nothing is freed. */
flp_status flp_scratch_buffer_release(flp_scratch_buffer *buffer, int of_graphs);

/* Frees all of it and the structure; nothing may use it. Without the lock. */
void flp_scratch_buffer_destroy(flp_scratch_buffer *buffer);
#endif
