/* One buffer of the shared scratch: its memory, and the order between the streams that use it one after another. */
#ifndef FLP_CORE_SCRATCH_BUFFER_H
#define FLP_CORE_SCRATCH_BUFFER_H
#include <pthread.h>
#include <stdatomic.h>

#include "cuda/device.h"

typedef struct flp_scratch_retired flp_scratch_retired;

typedef struct flp_scratch_buffer {
    /* The stream that it belongs to. A search reads this without a lock, and again with `lent` held; it is written with `lent` held. */
    atomic_uint_fast64_t context_id, kind, stream_id;
    atomic_uintptr_t handle;         /* the stream's; 0 once the driver has given it to another stream */
    struct flp_scratch_buffer *next; /* in the list of all buffers, which only grows */
    pthread_mutex_t lent;            /* guards what follows */
    flp_device device;
    CUdeviceptr address;
    int64_t bytes;
    int own;                      /* 1: its stream keeps it for good, so no event is recorded when it is returned */
    int reserved;                 /* 1: flp_scratch_reserve has promised it to later loans */
    int in_graph;                 /* 1: it was lent during a capture, so a graph may hold the address */
    flp_scratch_retired *retired; /* outgrown memory that a graph may hold */
    CUevent passed;               /* recorded after the last loan's launches, */
    int recorded;                 /* where this is 1 */
    uint64_t returned;            /* the number of its last return, among all returns of shared buffers */
} flp_scratch_buffer;

/* In all of these the caller holds buffer->lent, and stream is alive. Where memory is allocated, the device's CUDA context is current. */

/* Makes sure that the buffer has at least `bytes` for stream's launches, else allocates `grown`. FLP_CAPTURING, FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_scratch_buffer_provide(flp_scratch_buffer *buffer, CUstream stream, int capturing, int64_t bytes, int64_t grown);

/* Fails with FLP_CAPTURING: the scratch of a stream that is captured has too few bytes. */
flp_status flp_scratch_buffer_refuse_capture(int64_t has, int64_t wanted);

/* Records an event after stream's launches that use the buffer. If this fails, the buffer is not handed to another stream. */
void flp_scratch_buffer_record(flp_scratch_buffer *buffer, CUstream stream);

/* Makes stream's later work wait for the launches of the stream that had the buffer before. */
flp_status flp_scratch_buffer_order(flp_scratch_buffer *buffer, CUstream stream);

int flp_scratch_buffer_is_empty(const flp_scratch_buffer *buffer);

/* Frees the buffer's memory as flp_scratch_release says. FLP_CAPTURING, FLP_CUDA_FAILED: nothing is freed. */
flp_status flp_scratch_buffer_release(flp_scratch_buffer *buffer, int of_graphs);

/* Frees all of its memory and the struct. Nothing may use it any more, and the caller does not hold the lock. */
void flp_scratch_buffer_destroy(flp_scratch_buffer *buffer);
#endif
