/* linear_logp's backward on the host: chunks of the vocabulary, gradients summed in fp32, a pool of threads. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_CPU_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_CPU_H
#include "operators/linear/logit_chunk.h"
#include "cpu/target_share.h"
#include "cpu/thread_pool.h"
#include "base/text.h"
#include "fusedlogp.h"

/* What a loss of uniform[i], linear_cross_entropy's, adds: it depends on sum_v w[v] z[i][v]. */
typedef struct {
    const float *g_sum;         /* [N]: its derivative by that sum */
    const float *class_weights; /* w [V]; NULL: 1 */
} flp_backward_uniform;

/* What the forward of the same call, or of the pair, hands over. */
typedef struct {
    const flp_row_shares *shares;        /* [N], of rows with a target; NULL: there is no such forward, args have lse */
    const flp_backward_uniform *uniform; /* or NULL */
    const flp_saved_logits *saved;       /* or NULL */
} flp_backward_more;

/* problem and args have been checked: strides and target dtype are filled in. The order of every sum is fixed: grad_hidden's bits depend
 * neither on N, nor on a row's place, nor on the number of threads, those of grad_weight and grad_bias on the rows in their order alone.
 * It allocates, in floats: N D for grad_hidden, 4032 D for grad_weight, 2048 D for rows of hidden, 1024 x 4032 for derivatives (with pairs of bf16
 * half as many again) and 64 Ki a thread.
 * more: NULL for none. bad_count, bad_first: as flp_linear_logp_cpu's. FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_linear_logp_backward_cpu(flp_thread_pool *pool, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                        const flp_backward_more *more, int64_t *bad_count, int64_t *bad_first);
/* Appends the identity of its arithmetic for inputs of dtype. */
void flp_linear_logp_backward_cpu_numerics(flp_dtype dtype, flp_text *text);
#endif
