/* The inner product kernel: a few vocabulary entries times sixteen rows.
 *
 * Not a BLAS call, because a BLAS does not say in which order it sums. OpenBLAS 0.3.21 (Haswell) sums a row in one of two
 * orders, after its place in the matrix; BLIS changes the order with the size of the call; and builds of OpenBLAS without
 * threads may not be called from two threads at once. Here every logit is the same chain of additions in k, wherever its
 * row stands. */
#ifndef FLP_CPU_MICROKERNEL_H
#define FLP_CPU_MICROKERNEL_H
#include <stdint.h>
#include "fusedlogp.h"

/* For each set of sixteen rows, each entry e and each row: products[set][e][row] (+)= sum_k weight[e * entry_stride + k * depth_stride] *
 * hidden[set][k][row], summed from 0 in the order of k. hidden [depth][16] of each set and products [entries][16] are 64-byte aligned.
 * Where a word holds two bf16, k is a pair: the product of the high halves is added first, then that of the low ones, each rounded once. Subnormal numbers
 * count as 0 there, as operands and as sums. */
typedef struct {
    int64_t depth;
    const float *hidden;
    int64_t hidden_stride; /* from one set to the next, as products_stride */
    const float *weight;
    int64_t entry_stride, depth_stride;
    float *products;
    int64_t products_stride;
    int accumulate;
} flp_microkernel_operands;

typedef void flp_microkernel_function(const flp_microkernel_operands *operands);

typedef struct {
    const char *name;
    const char *arithmetic;             /* kernels that agree in this give the same bits */
    int packed;                         /* numbers a word of hidden and weight: 1, an fp32; 2, two bf16, the first in the low half */
    int entries;                        /* of `two_sets` and `several`; the chunk's width is a multiple of it */
    flp_microkernel_function *two_sets; /* each number of the weight is read once for both; NULL where the registers do not hold them */
    flp_microkernel_function *several;  /* one set, as `single` */
    flp_microkernel_function *single;   /* one entry */
    int (*is_supported)(void);          /* by this processor */
} flp_microkernel;

/* All of fp32 that were compiled, best first. The last one runs everywhere. */
extern const flp_microkernel flp_microkernels[];
extern const int flp_microkernel_count;
/* Those of bf16. A processor may have none. */
extern const flp_microkernel flp_bf16_microkernels[];
extern const int flp_bf16_microkernel_count;

/* The first of fp32 that is supported. */
const flp_microkernel *flp_microkernel_best(void);
/* The one for inputs of a dtype: of bf16 where the processor has one and FUSEDLOGP_CPU_BF16 is not 0, else of fp32. */
const flp_microkernel *flp_microkernel_of(flp_dtype dtype);

/* Words of so many numbers; the last may be half empty. */
static inline int64_t flp_microkernel_words(const flp_microkernel *kernel, int64_t numbers)
{
    return (numbers + kernel->packed - 1) / kernel->packed;
}

/* Any number of sets and entries. */
void flp_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands);
#endif
