/* The context's shared scratch: one buffer for each (CUDA context, stream), for calls that bring no workspace. */
#ifndef FLP_PLAN_SCRATCH_H
#define FLP_PLAN_SCRATCH_H
#include "cuda/device.h"

typedef struct flp_scratch flp_scratch;
typedef struct flp_scratch_buffer flp_scratch_buffer;

flp_status flp_scratch_create(flp_scratch **scratch);
/* No stream may still use it. NULL is allowed. */
void flp_scratch_destroy(flp_scratch *scratch);

typedef struct {
    void *address; /* device memory */
    flp_scratch_buffer *buffer;
} flp_scratch_loan;

/* Lends at least `bytes` of the buffer of stream in device's context, which is current; a buffer that is too small is replaced by one of
 * `grown` >= bytes, after the stream has passed what it held. The loan is the caller's alone until flp_scratch_return: all launches that
 * use it are enqueued before that, so that two threads on one stream do not interleave theirs.
 * What was lent during a capture stays allocated, since the graph keeps its address; replay such a graph on the stream it was
 * captured on. FLP_CAPTURING: the stream is captured and the buffer too small. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED. */
flp_status flp_scratch_lend(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes, int64_t grown,
                            flp_scratch_loan *loan);
void flp_scratch_return(const flp_scratch_loan *loan);

/* Makes room for later loans. Errors as flp_scratch_lend. */
flp_status flp_scratch_reserve(flp_scratch *scratch, const flp_device *device, CUstream stream, int64_t bytes);
#endif
