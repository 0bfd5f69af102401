/* Checks what weighted_sum left on the device against fp64, at a few places from the first to the last. */
#ifndef FLP_BENCH_WEIGHTED_SUM_CHECK_H
#define FLP_BENCH_WEIGHTED_SUM_CHECK_H
#include "device/gpu_kernels.h"

enum { FLP_WEIGHTED_SUM_CHECKED = 64 };

/* Checks sums[i] = x[i] . vector, all of x's dtype; x [rows, columns], vector [1, columns]. *error: || sums - fp64 || / || fp64 || over the places.
 * FLP_INTERNAL: it is more than the promised 1e-6 plus the rounding to the dtype. */
flp_status flp_weighted_sum_check_sums(flp_gpu *gpu, const flp_gpu_kernels *kernels, const flp_gpu_matrix *x, const flp_gpu_matrix *vector, CUdeviceptr sums,
                                       double *error);

/* Checks outer [rows, columns] = g^T w, of g [1, rows] and w [1, columns]. *error: as above, over FLP_WEIGHTED_SUM_CHECKED whole rows. FLP_INTERNAL: it is
 * more than the rounding of each product. */
flp_status flp_weighted_sum_check_outer(flp_gpu *gpu, const flp_gpu_matrix *g, const flp_gpu_matrix *w, const flp_gpu_matrix *outer, double *error);
#endif
