/* Checks what scale left on the device against products computed on the host, bit for bit, in a few rows from the first to the last. */
#ifndef FLP_BENCH_SCALE_CHECK_H
#define FLP_BENCH_SCALE_CHECK_H
#include "device/gpu_kernels.h"

enum { FLP_SCALE_CHECKED = 64 };

/* Copies the rows that will be checked, FLP_SCALE_CHECKED x columns elements, before x is scaled. *rows: the caller frees it, also after a failure. */
flp_status flp_scale_check_fetch(const flp_gpu *gpu, const flp_gpu_matrix *x, void **rows);

/* rows: of x, before it was multiplied by factor once. FLP_INTERNAL: an element is not the fp32 product, rounded to nearest even; for a factor of 1 it is
 * not what it was. *error: || x - fp64 || / || fp64 || over the rows, which the rounding makes. */
flp_status flp_scale_check(const flp_gpu *gpu, const flp_gpu_matrix *x, const void *rows, float factor, double *error);
#endif
