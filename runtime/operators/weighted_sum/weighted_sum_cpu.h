/* weighted_sum on the host: groups of rows on the pool. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_CPU_H
#define FLP_OPERATORS_WEIGHTED_SUM_CPU_H
#include "cpu/thread_pool.h"
#include "fusedlogp.h"

/* problem and args have been checked: strides and dtypes are filled in, rows > 0. A row's bits depend on D and the dtypes alone.
 * Allocates nothing. */
void flp_weighted_sum_cpu(flp_thread_pool *pool, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_weighted_sum_cpu_numerics(void);
#endif
