/* linear_logp on the CPU path, both directions: blocks of logits in fp32, online statistics, a thread pool. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_CPU_H
#define FLP_OPERATORS_LINEAR_LOGP_CPU_H
#include "cpu/target_share.h"
#include "cpu/thread_pool.h"
#include "base/text.h"
#include "operators/linear/logit_chunk.h"
#include "fusedlogp.h"

/* What linear_cross_entropy and a plan with_forward request beside linear_logp's outputs. */
typedef struct {
    const float *class_weights;    /* w [V]; NULL: all 1 */
    float *uniform;                /* [N]: -sum_v w[v] log(p[v]) / V; NULL: not requested */
    int logit_sums;                /* 1: a shard's partials hold sum_v w[v] z[v], too */
    flp_row_shares *shares;        /* [N]: statistics of rows with a target, for the backward; NULL: not requested */
    const flp_saved_logits *saved; /* receives logits; only with blanks_others; NULL: not requested */
    int blanks_others;             /* 1: rows that are ignored or whose target is bad are not computed; their lse and entropy are 0 */
} flp_linear_logp_more;

/* problem and args have been checked (core/problem.c, operators/linear/linear_logp.c): strides and target dtype are filled in. The order of all sums and merges
 * is fixed, so a row's bits do not depend on N, on its place or on the number of threads. more: NULL for linear_logp. *bad_count is increased by the number of
 * rows with a bad target, and *bad_first is lowered to the first of them; both may be NULL, and a negative *bad_first means that there is none yet. Such a
 * row's logp is NaN; its lse, entropy and argmax are written as usual.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_linear_logp_cpu(flp_thread_pool *pool, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                               const flp_linear_logp_more *more, int64_t *bad_count, int64_t *bad_first);
/* Appends the identity of its arithmetic for inputs of dtype, which names the instructions by which this processor multiplies and adds. */
void flp_linear_logp_cpu_numerics(flp_dtype dtype, flp_text *text);

/* ---- the backward: chunks of the vocabulary, gradients summed in fp32 ---- */

/* What linear_cross_entropy adds for a loss that depends on uniform[i], and so on sum_v w[v] z[i][v]. */
typedef struct {
    const float *g_sum;         /* [N]: the loss' derivative by that sum */
    const float *class_weights; /* w [V]; NULL: all 1 */
} flp_backward_uniform;

/* What a forward hands over: that of the same call, or that of a plan with_forward. */
typedef struct {
    const flp_row_shares *shares;        /* [N], of rows with a target; NULL: there is no such forward, and args.lse is read */
    const flp_backward_uniform *uniform; /* or NULL */
    const flp_saved_logits *saved;       /* or NULL */
} flp_backward_more;

/* problem and args have been checked: strides and target dtype are filled in. The order of all sums is fixed: grad_hidden's bits do not
 * depend on N, on a row's place or on the number of threads; those of grad_weight and grad_bias depend only on the rows and their order.
 * Allocates, in floats: N D for grad_hidden, 4032 D for grad_weight, 2048 D for rows of hidden, 1024 x 4032 for derivatives (half as many again with pairs of
 * bf16) and 64 Ki for each thread.
 * more: NULL for none. bad_count, bad_first: as flp_linear_logp_cpu's. FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_linear_logp_backward_cpu(flp_thread_pool *pool, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                        const flp_backward_more *more, int64_t *bad_count, int64_t *bad_first);
/* Appends the identity of its arithmetic for inputs of dtype. */
void flp_linear_logp_backward_cpu_numerics(flp_dtype dtype, flp_text *text);
#endif
