/* linear_logp on the host, both directions: blocks of logits in fp32, online statistics, a pool of threads. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_CPU_H
#define FLP_OPERATORS_LINEAR_LOGP_CPU_H
#include "cpu/target_share.h"
#include "cpu/thread_pool.h"
#include "base/text.h"
#include "operators/linear/logit_chunk.h"
#include "fusedlogp.h"

/* What linear_cross_entropy wants beside linear_logp's outputs. */
typedef struct {
    const float *class_weights;    /* w [V]; NULL: 1 */
    float *uniform;                /* [N]: -sum_v w[v] log(p[v]) / V; NULL: not wanted */
    int logit_sums;                /* 1: a shard's partials hold sum_v w[v] z[v], too */
    flp_row_shares *shares;        /* [N]: of rows with a target, for the backward; NULL: not wanted */
    const flp_saved_logits *saved; /* with blanks_others: filled; NULL: not wanted */
    int blanks_others;             /* 1: of an ignored row and one with a bad target nothing is computed: lse and entropy are 0 */
} flp_linear_logp_more;

/* problem and args have been checked (core/problem.c, operators/linear/linear_logp.c): strides and target dtype are filled in. A fixed order of
 * every sum and of merging makes a row's bits independent of N, of its place and of the number of threads.
 * more: NULL for linear_logp. bad_count, bad_first (may be NULL): out-of-range targets met, and the first such row; only added to / lowered. A negative
 * *bad_first stands for none yet. Such a row's logp is NaN; its lse, entropy and argmax are written as usual.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_linear_logp_cpu(flp_thread_pool *pool, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                               const flp_linear_logp_more *more, int64_t *bad_count, int64_t *bad_first);
/* Appends the identity of its arithmetic for inputs of dtype: says which of this processor's instructions multiply and add. */
void flp_linear_logp_cpu_numerics(flp_dtype dtype, flp_text *text);

/* ---- the backward: chunks of the vocabulary, gradients summed in fp32 ---- */

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
