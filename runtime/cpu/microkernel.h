/* The inner product kernel: a few vocabulary entries times sixteen rows.
 *
 * Not a BLAS call, because a BLAS does not say in which order it sums. OpenBLAS 0.3.21 (Haswell) sums a row in one of two
 * orders, after its place in the matrix; BLIS changes the order with the size of the call; and builds of OpenBLAS without
 * threads may not be called from two threads at once. Here every logit is the same chain of additions in k, wherever its
 * row stands. */
#ifndef FLP_CPU_MICROKERNEL_H
#define FLP_CPU_MICROKERNEL_H
#include <stdint.h>

/* For each entry e and each of the sixteen rows: products[e][row] (+)= sum_k weight[e * entry_stride + k * depth_stride] * hidden[k][row],
 * summed from 0 in the order of k. hidden [depth][16] and products [entries][16] are 64-byte aligned. */
typedef void flp_microkernel_function(int64_t depth, const float *hidden, const float *weight, int64_t entry_stride, int64_t depth_stride, float *products,
                                      int accumulate);

typedef struct {
    const char *name;
    const char *arithmetic; /* kernels that agree in this give the same bits */
    int entries;            /* of `several`; the chunk's width is a multiple of it */
    flp_microkernel_function *several, *single;
    int (*is_supported)(void); /* by this processor */
} flp_microkernel;

/* All that were compiled, best first. The last one runs everywhere. */
extern const flp_microkernel flp_microkernels[];
extern const int flp_microkernel_count;

/* The first that is supported. */
const flp_microkernel *flp_microkernel_best(void);

/* Any number of entries. */
void flp_microkernel_multiply(const flp_microkernel *kernel, int entries, int64_t depth, const float *hidden, const float *weight, int64_t entry_stride,
                              int64_t depth_stride, float *products, int accumulate);
#endif
