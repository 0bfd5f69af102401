/* linear_logp on the host: CBLAS sgemm on fixed-shape chunks, online statistics, a pool of threads. */
#ifndef FLP_CPU_LINEAR_LOGP_CPU_H
#define FLP_CPU_LINEAR_LOGP_CPU_H
#include "cpu/thread_pool.h"
#include "fusedlogp.h"

/* problem and args have been checked (plan/problem.c, ops/linear_logp.c): strides and target dtype are filled in. Fixed-shape sgemm calls
 * and a fixed order of merging make a row's bits independent of N, of its place and of the number of threads.
 * bad_count, bad_first (may be NULL): out-of-range targets met, and the first such row; only added to / lowered.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_linear_logp_cpu(flp_thread_pool *pool, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                               int64_t *bad_count, int64_t *bad_first);
/* The identity of its arithmetic (names the BLAS). Static. */
const char *flp_linear_logp_cpu_numerics(void);
#endif
