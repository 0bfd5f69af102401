/* linear_cross_entropy on the CPU path: linear_logp, each row's loss and its derivatives, then linear_logp's backward. */
#ifndef FLP_OPERATORS_LINEAR_CROSS_ENTROPY_CPU_H
#define FLP_OPERATORS_LINEAR_CROSS_ENTROPY_CPU_H
#include "cpu/thread_pool.h"
#include "cpu/token_program.h"
#include "base/text.h"
#include "fusedlogp.h"

/* One call. The names of the token loss' inputs and parameters are resolved: both are in the order of the program. */
typedef struct {
    const flp_linear_cross_entropy_args *args;
    const flp_token_program *program;
    const float *input[FLP_TOKEN_INPUTS];
    double parameter[FLP_TOKEN_PARAMETERS];
} flp_cross_entropy_call;

/* problem and args have been checked: strides and target dtype are filled in, temperature is above 0. Losses are computed in fp64, and
 * summed up in the rows' order. Allocates eight floats and five doubles for each row, V floats for class weights, and what the two passes allocate.
 * bad_count, bad_first: as flp_linear_logp_cpu's. FLP_OUT_OF_MEMORY. */
flp_status flp_linear_cross_entropy_cpu(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call,
                                        int64_t *bad_count, int64_t *bad_first);
/* The two calls of a shard: the first writes args->partials; the second, after their exchange, does all the rest. */
flp_status flp_linear_cross_entropy_cpu_partials(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call);
flp_status flp_linear_cross_entropy_cpu_merge(flp_thread_pool *pool, const flp_linear_cross_entropy_problem *problem, const flp_cross_entropy_call *call,
                                              int64_t *bad_count, int64_t *bad_first);
/* Appends the identity of its arithmetic for inputs of dtype. */
void flp_linear_cross_entropy_cpu_numerics(flp_dtype dtype, flp_text *text);
#endif
