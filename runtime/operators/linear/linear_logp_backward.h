/* linear_logp_backward on a GPU path: the valid rows, then the vocabulary chunk by chunk, then grad_hidden; where everything is, and the steps, each of
 * which enqueues. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_H
#include "base/dtype.h"
#include "operators/linear/linear_logp.h"
#include "operators/linear/matrix_product_launch.h"

/* What a loss of sum_v w[v] z[v], linear_cross_entropy's, adds, to variants that take it. */
typedef struct {
    const void *class_weights; /* w [V]; NULL: 1 */
    const float *g_sum;        /* [rows]: the derivative by that sum */
    const flp_plan *forward;   /* what computes saved exponentials again: linear_logp's plan; NULL: nothing needs it */
} flp_backward_launch_more;

/* In parts and in one workspace, the call's, for a forward between them. First flp_packed_rows_index and the rows packed: of call->args, rows, hidden,
 * target, ignore_index, grad_hidden and stream are read. rows > 0. */
flp_status flp_linear_logp_backward_launch_rows(const flp_packed_call *call);
/* Where a forward has to leave its saved exponentials of each chunk. */
flp_saved_exp flp_linear_logp_backward_saved_exp(const flp_packed_call *call);
/* Then, chunk by chunk, behind its forward, the gradients. Without rows, all of it. */
flp_status flp_linear_logp_backward_launch_chunk(const flp_packed_call *call, const flp_backward_launch_more *more, int64_t first);
/* Behind the last. */
flp_status flp_linear_logp_backward_launch_end(const flp_packed_call *call);
/* All of a shard's backward behind flp_packed_rows_index: lse, logp and entropy are the merged rows'. rows >= 0. */
flp_status flp_linear_logp_backward_launch_merged(const flp_packed_call *call, const flp_backward_launch_more *more);

/* All valid rows of a call, or a chunk of them. */
typedef struct {
    flp_packed_call call;
    flp_packed_rows rows;
    const flp_linear_logp_backward_problem *problem;
    const flp_linear_logp_problem *forward;
    const flp_backward_launch_more *more;
    const flp_backward_chunks *chunks; /* of the vocabulary: the plan's */
    float *factor, *inverse_factor;
    float *row_factor;  /* NULL: there are no saved exponentials */
    int is_handed_over; /* 1: the forward has left its rows' sums in gradient */
    int takes;          /* 1: the backward of a pair, which takes what its forward has left */
    int gathers;        /* 1: no forward of the same call has packed the rows */
} flp_backward_execution;

static inline void *flp_backward_at(const flp_backward_execution *run, flp_linear_part part)
{
    return flp_workspace_at(run->call.workspace, part);
}

/* 1: grad_hidden is one product of saved exponentials of the whole vocabulary, without sums. */
static inline int flp_backward_is_direct(const flp_backward_execution *run)
{
    return run->call.plan->hidden_product && run->chunks->direct;
}

/* 1: an exchange of grad_hidden is to run beside what is left of the last chunk behind it. */
static inline int flp_backward_finishes_first(const flp_backward_execution *run)
{
    return run->call.args->grad_hidden_event && run->rows.rows > 0 && run->forward->vocab > 0 && flp_vocab_chunks_finish_first(run->problem, run->chunks);
}

/* What becomes grad_hidden of the rows, in fp32. */
static inline flp_matrix flp_backward_sums(const flp_backward_execution *run)
{
    const int64_t rows = run->rows.rows, hidden = run->forward->hidden;

    if (run->chunks->in_forward)
        return (flp_matrix){ run->rows.hidden, FLP_F32, rows, hidden, run->rows.stride * flp_dtype_bytes(run->forward->dtype) / (int64_t)sizeof(float) };
    return (flp_matrix){ flp_backward_at(run, FLP_PART_SUMS), FLP_F32, rows, hidden, hidden };
}

/* What the forward and the backward of a plan with_forward share beside their launches. */
static inline flp_backward_counts *flp_backward_counts_of(const flp_backward_execution *run)
{
    return flp_backward_at(run, FLP_PART_COUNTS);
}

/* ---- rows: linear_logp_backward_rows.c ---- */

/* hidden's valid rows, packed, in one of the steps that do it. with_sums: grad_hidden's sums are zeroed too. */
flp_status flp_backward_gather_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums);
/* The packed rows as grad_weight's product with saved exponentials wants them: times their factors. with_sums: as above. */
flp_status flp_backward_scale_rows(const flp_backward_execution *run, int with_sums);
/* What each row's derivatives need; with saved exponentials, its factors. */
flp_status flp_backward_differentiate_rows(const flp_backward_execution *run);
/* The rows in the order of their targets, for grad_weight. */
flp_status flp_backward_order_targets(const flp_backward_execution *run);
/* Behind that: the targets of other shards of the vocabulary contribute nothing. */
flp_status flp_backward_clear_other_shards(const flp_backward_execution *run);
/* grad_hidden of the chunk's rows from its sums; with the first chunk, of those that are not valid too. */
flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run);
/* Records the call's grad_hidden_event, where it has one. */
flp_status flp_backward_mark_grad_hidden(const flp_linear_logp_backward_args *args);
/* Direct, of all rows behind the last chunk: from their packed index to their places, by way of the saved exponentials, which nobody reads any more. */
flp_status flp_backward_scatter_grad_hidden(const flp_backward_execution *run);

/* ---- the vocabulary, chunk by chunk: linear_logp_backward_chunks.c ---- */

/* Of a cluster, in a product whose clusters then keep in step (clusters_in_step.cuh). For tests, whose products are short. */
extern int64_t flp_backward_least_steps_in_step;

flp_status flp_backward_run_chunks(const flp_backward_execution *run);
/* For a chunk of rows in the forward: the products of their saved exponentials with the weight, in their place. */
flp_status flp_backward_run_in_forward(const flp_backward_execution *run);
#endif
