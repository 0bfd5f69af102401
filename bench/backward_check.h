/* Rows of large gradients against fp64. */
#ifndef FLP_BENCH_BACKWARD_CHECK_H
#define FLP_BENCH_BACKWARD_CHECK_H
#include "device/gpu_kernels.h"

enum { FLP_BACKWARD_CHECKED = 128 };

/* A bf16 problem without options on the device, and what the host knows of it. */
typedef struct {
    flp_gpu *gpu;
    const flp_gpu_kernels *kernels;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr grad_hidden, grad_weight; /* bf16; weight_dtype; dense */
    flp_dtype weight_dtype;
    const int64_t *targets;
    const float *g, *lse;                 /* [N]: of the loss by logp; the forward's */
} flp_backward_answer;

typedef struct {
    double hidden, weight;                   /* || got - fp64 || / || fp64 || of a row, in the mean (of squares) over those looked at */
    double hidden_rounding, weight_rounding; /* the same of the fp64 gradient rounded to bf16 */
} flp_backward_errors;

/* Looks at FLP_BACKWARD_CHECKED rows of each, of grad_weight half of them targets'. FLP_INTERNAL: an error above 1.05 times what rounding the derivatives by the logits and the
 * gradient itself to bf16 costs. */
flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors);
#endif
