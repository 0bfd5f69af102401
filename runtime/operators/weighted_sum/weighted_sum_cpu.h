/* weighted_sum on the host, both directions, on the pool. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_CPU_H
#define FLP_OPERATORS_WEIGHTED_SUM_CPU_H
#include "cpu/thread_pool.h"
#include "fusedlogp.h"

/* Whether the compiler may fuse a product and its sum, which decides bits. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FLP_WEIGHTED_SUM_ARITHMETIC "fma"
#else
#define FLP_WEIGHTED_SUM_ARITHMETIC "multiply-add"
#endif

/* problem and args have been checked: strides and dtypes are filled in, rows > 0. A row's bits depend on D and the dtypes alone.
 * Allocates nothing. */
void flp_weighted_sum_cpu(flp_thread_pool *pool, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_weighted_sum_cpu_numerics(void);

/* problem and args have been checked: strides and dtypes are filled in. grad_x may be x. The order of grad_w's sums depends on N alone: tiles
 * of rows in order, each summed in order. It allocates at most 16 MiB.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_weighted_sum_backward_cpu(flp_thread_pool *pool, const flp_weighted_sum_backward_problem *problem, const flp_weighted_sum_backward_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_weighted_sum_backward_cpu_numerics(void);
#endif
