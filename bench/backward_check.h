/* Checks rows of large gradients against fp64. */
#ifndef FLP_BENCH_BACKWARD_CHECK_H
#define FLP_BENCH_BACKWARD_CHECK_H
#include "device/gpu_kernels.h"

enum { FLP_BACKWARD_CHECKED = 128 };

/* A bf16 or fp16 problem on the device, with no options except these, and copies of some of its arrays on the host. */
typedef struct {
    flp_gpu *gpu;
    const flp_gpu_kernels *kernels;
    flp_gpu_matrix hidden, weight;
    CUdeviceptr grad_hidden, grad_weight; /* laid out as hidden and weight, which are dense */
    flp_dtype hidden_dtype, weight_dtype; /* of the gradients; weight_dtype FLP_NONE: there is no grad_weight */
    const int64_t *targets;
    const float *g, *lse;       /* [N]: the loss's derivatives by logp; the forward's lse */
    double filter_eps;          /* the problem's grad_filter_eps */
    double softcap;             /* the problem's; 0: none */
    const double *temperatures; /* [N]; NULL: 1 */
} flp_backward_answer;

/* Each is relative to || fp64 || of a row, in the root mean square over the checked rows; with a filter, to || fp64 || of all checked rows together. */
typedef struct {
    double relative; /* || got - fp64 || */
    double of_all;   /* the same relative to || fp64 || of all checked rows together */
    double rounding; /* of the fp64 gradient rounded to bf16 */
    double bound;    /* of what the filter passed over, as runtime/fusedlogp.h has it: eps times |weight| or |hidden|; far above the error */
} flp_gradient_error;

typedef struct {
    flp_gradient_error hidden, weight;
} flp_backward_errors;

/* Checks FLP_BACKWARD_CHECKED rows of each gradient that there is (the errors of another are 0); of grad_weight, half of them are rows of targets.
 * FLP_INTERNAL: an error is above 1.05 times what it costs to round the derivatives by the logits and the gradient itself to bf16 (of fp16 too, which has
 * three bits more), plus || the absolute values of the terms that the filter may pass over ||. */
flp_status flp_backward_check(const flp_backward_answer *answer, flp_backward_errors *errors);
#endif
