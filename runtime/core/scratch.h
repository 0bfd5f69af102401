/* The context's shared scratch: which stream's calls without a workspace have which buffer. */
#ifndef FLP_CORE_SCRATCH_H
#define FLP_CORE_SCRATCH_H
#include "cuda/device.h"
#include "core/scratch_buffer.h"

typedef struct flp_scratch flp_scratch;

/* In each CUDA context the first streams have a buffer for good, and further ones take turns with a few. A program has rarely more streams than that,
 * and one with an endless sequence of them needs no more memory. */
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

/* Lends at least `bytes` of the buffer of stream in device's context, which is current; a buffer that is too small is replaced by one of
 * `grown` >= bytes, after the stream has passed what it held. The loan is the caller's alone until flp_scratch_return: all launches that
 * use it are enqueued before that, so that two threads on one stream do not interleave theirs.
 * A stream is known by its id, since the driver gives the handle of a destroyed stream out again while its work still runs.
 * What was lent during a capture stays the stream's, since the graph keeps its address; replay such a graph on the stream it was
 * captured on. FLP_CAPTURING: the stream is captured and the buffer too small. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_scratch_lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown, flp_scratch_loan *loan);
void flp_scratch_return(const flp_scratch_loan *loan);

/* Makes room for later loans, which no other stream takes over. Errors as flp_scratch_lend. */
flp_status flp_scratch_reserve(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes);

/* Frees every buffer, once its CUDA context has done its work; those whose address a graph may hold only with of_graphs.
 * FLP_CAPTURING, FLP_CUDA_FAILED: what was not freed is as it was. */
flp_status flp_scratch_release(flp_scratch *scratch, int of_graphs);
#endif
