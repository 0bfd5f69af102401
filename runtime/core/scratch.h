/* The context's shared scratch: a pool of device buffers for calls without a workspace. Each stream has one buffer at a time. */
#ifndef FLP_CORE_SCRATCH_H
#define FLP_CORE_SCRATCH_H
#include "cuda/device.h"
#include "core/scratch_buffer.h"

typedef struct flp_scratch flp_scratch;

/* In each CUDA context the first FLP_SCRATCH_OWN streams keep a buffer each, and further streams share FLP_SCRATCH_SHARED buffers, which are handed from one
 * stream to another. Programs rarely have more streams than that, and one that keeps creating streams needs no more memory. */
enum { FLP_SCRATCH_OWN = 4, FLP_SCRATCH_SHARED = 4 };

flp_status flp_scratch_create(flp_scratch **scratch);
/* No stream may still use it. NULL is allowed. */
void flp_scratch_destroy(flp_scratch *scratch);

typedef struct {
    void *address; /* device memory */
    flp_scratch *scratch;
    flp_scratch_buffer *buffer;
    CUstream stream;
} flp_scratch_loan;

/* Lends the buffer of stream, of at least `bytes`, in device's CUDA context, which is current. A buffer that is too small is replaced by one of `grown` >=
 * bytes, after the stream's work in it has ended. Nobody else gets the buffer until flp_scratch_return. The caller enqueues all launches that use it before
 * that, so that launches of two threads on one stream do not interleave.
 * A stream is identified by its id, because the driver reuses the handle of a destroyed stream while that stream's work still runs.
 * A buffer that was lent during a capture stays with its stream, because the graph holds the address. Such a graph must be replayed on the stream that it was
 * captured on. FLP_CAPTURING: the stream is captured and the buffer too small. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_scratch_lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown, flp_scratch_loan *loan);
void flp_scratch_return(const flp_scratch_loan *loan);

/* Gives stream a buffer of at least `bytes` for later loans, which is never handed to another stream. Errors as flp_scratch_lend. */
flp_status flp_scratch_reserve(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes);

/* Frees every buffer, after its CUDA context's work has ended. Buffers whose address a graph may hold are freed only with of_graphs.
 * FLP_CAPTURING, FLP_CUDA_FAILED: what was not freed is as it was. */
flp_status flp_scratch_release(flp_scratch *scratch, int of_graphs);
#endif
