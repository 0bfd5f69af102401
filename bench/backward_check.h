/* Rows of large gradients against fp64. */
#ifndef FLP_BENCH_BACKWARD_CHECK_H
#define FLP_BENCH_BACKWARD_CHECK_H
#include "device/gpu_kernels.h"

enum { FLP_BACKWARD_CHECKED = 128 };

/* A bf16 or fp16 problem without options but these on the device, and what the host knows of it. */
typedef struct {
    flp_gpu *gpu;
    const flp_gpu_kernels *kernels;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr grad_hidden, grad_weight; /* hidden_dtype; weight_dtype, FLP_NONE: it is not wanted; they lie as hidden and weight, which are dense */
    flp_dtype hidden_dtype, weight_dtype;
    const int64_t *targets;
    const float *g, *lse; /* [N]: of the loss by logp; the forward's */
    double filter_eps;    /* the problem's grad_filter_eps */
    double softcap;       /* the problem's; 0: none */
} flp_backward_answer;

/* Each relative to || fp64 || of a row, in the mean (of squares) over the rows looked at; with a filter, to || fp64 || of all of them together. */
typedef struct {
    double relative; /* || got - fp64 || */
    double of_all;   /* the same relative to || fp64 || of all of them together */
    double rounding; /* of the fp64 gradient rounded to bf16 */
    double bound;    /* of what the filter passed over, by runtime/fusedlogp.h: eps times |weight| or |hidden|; far above the error */
} flp_gradient_error;

typedef struct {
    flp_gradient_error hidden, weight;
} flp_backward_errors;

/* Looks at FLP_BACKWARD_CHECKED rows of each that is wanted (the errors of the other are 0), of grad_weight half of them targets'. FLP_INTERNAL: an error above 1.05 times what rounding the
 * derivatives by the logits and the gradient itself to bf16 costs (of fp16 too, which has three bits more), and || the absolute values of the terms
 * that the filter may pass over || more. */
flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors);
#endif
