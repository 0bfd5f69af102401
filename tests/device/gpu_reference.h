/* Log-probabilities of a few rows in fp64, for matrices that are too large for the host. */
#ifndef FLP_TESTS_DEVICE_GPU_REFERENCE_H
#define FLP_TESTS_DEVICE_GPU_REFERENCE_H
#include "device/gpu_kernels.h"

typedef struct {
    double logp, lse;
    double rounding; /* as flp_reference's */
    int64_t argmax;  /* smallest index of the largest logit */
} flp_gpu_reference_row;

typedef struct {
    double softcap;             /* 0: none */
    const double *temperatures; /* of each row of hidden; NULL: 1 */
} flp_gpu_reference_options;

/* rows, targets [count]: indices of rows of hidden, and their targets, which must be in the vocabulary. weight [V, D] in either layout. */
flp_status flp_gpu_reference_compute(flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *hidden, const flp_gpu_matrix *weight,
                                     const flp_gpu_reference_options *options, int count, const int64_t *rows, const int64_t *targets,
                                     flp_gpu_reference_row *reference);
#endif
