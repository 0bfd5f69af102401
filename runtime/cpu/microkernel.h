/* The CPU path's matrix product microkernels: a few vocabulary entries times sixteen rows of hidden.
 *
 * The CPU path does not call a BLAS, because a BLAS does not say in which order it sums. OpenBLAS 0.3.21 (Haswell) sums a row in one of two
 * orders, depending on the row's place in the matrix; BLIS changes the order with the size of the call; and builds of OpenBLAS without
 * threads may not be called from two threads at once. Here every logit is the same chain of additions in k, wherever its
 * row is in the matrix. */
#ifndef FLP_CPU_MICROKERNEL_H
#define FLP_CPU_MICROKERNEL_H
#include <stdint.h>
#include "fusedlogp.h"

enum { FLP_MICROKERNEL_DEPTH = 256 };

/* The operands of a product. For each set of sixteen rows, each vocabulary entry e and each row of the set:
 *     products[set][e][row] (+)= sum_k weight[e * entry_stride + k * depth_stride] * hidden[set][k][row]
 * summed from 0 in the order of k. hidden is [depth][16] for each set, products [entries][16]; both are 64-byte aligned.
 * Where a 32-bit word holds two bf16 numbers (`packed` is 2), k counts words, and subnormal operands and sums count as 0. By vdpbf16ps, for each word the
 * product of the high halves is added first, then the product of the low halves, and each of the two sums is rounded once. By tdpbf16ps, sixteen words are one
 * step: the products of their low halves are summed from 0, each sum rounded once, and so are those of their high halves; the sum of the two is then added. */
typedef struct {
    int64_t depth; /* the number of k: words of a row, of at most FLP_MICROKERNEL_DEPTH numbers */
    const float *hidden;
    int64_t hidden_stride; /* from one set to the next, as products_stride; all strides are in 32-bit words */
    const float *weight;
    int64_t entry_stride, depth_stride; /* one of them is 1 */
    float *products;
    int64_t products_stride;
    int accumulate; /* 1: the sum is added to products; 0: it replaces them */
} flp_microkernel_operands;

typedef void flp_microkernel_function(const flp_microkernel_operands *operands);

typedef struct flp_microkernel flp_microkernel;
struct flp_microkernel {
    const char *name;
    const char *arithmetic;    /* kernels with the same arithmetic give the same bits */
    int packed;                /* numbers in a word of hidden and weight: 1, an fp32; 2, two bf16, the first in the low half */
    int (*is_supported)(void); /* 1: this processor can run it */
    void (*multiply)(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands); /* any number of sets and entries */

    /* Of a kernel by vectors; NULL of one by tiles. */
    int entries;                        /* entries of a call of `two_sets` or `several`; FLP_CHUNK_COLUMNS is a multiple of it */
    flp_microkernel_function *two_sets; /* two sets of rows: reads each number of the weight once for both; NULL where there are too few registers for it */
    flp_microkernel_function *several;  /* one set of rows */
    flp_microkernel_function *single;   /* one set of rows, one entry */
};

/* The fp32 microkernels that were compiled, best first. The last one runs on every processor. */
extern const flp_microkernel flp_microkernels[];
extern const int flp_microkernel_count;
/* The bf16 microkernels that were compiled, best first. A processor may support none of them. */
extern const flp_microkernel flp_bf16_microkernels[];
extern const int flp_bf16_microkernel_count;

/* The first fp32 microkernel that this processor supports. */
const flp_microkernel *flp_microkernel_best(void);
/* The microkernel for inputs of a dtype. For bf16 it is the first bf16 one that the processor supports and the environment variable FUSEDLOGP_CPU_BF16 allows:
 * with 0 none, with the name of one that one and those after it. If there is none, and for the other dtypes, it is flp_microkernel_best(). */
const flp_microkernel *flp_microkernel_of(flp_dtype dtype);

/* The words that hold this many numbers; the last word may be half empty. */
static inline int64_t flp_microkernel_words(const flp_microkernel *kernel, int64_t numbers)
{
    return (numbers + kernel->packed - 1) / kernel->packed;
}

/* Computes the product of `operands` for any number of sets and entries. */
void flp_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands);
#endif
