/* linear_logp_backward's launches on a GPU path. First the valid rows are packed, then the vocabulary is processed chunk by chunk, then grad_hidden is
 * finished. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_H
#include "base/dtype.h"
#include "operators/linear/linear_logp.h"
#include "operators/linear/matrix_product_launch.h"

/* What linear_cross_entropy adds to the launches. The first three are for variants of a loss that depends on sum_v w[v] z[v]. */
typedef struct {
    const void *class_weights; /* w [V]; NULL: all 1 */
    flp_dtype class_weight_dtype;
    const float *g_sum;      /* [rows]: the loss' derivative by that sum */
    const flp_plan *forward; /* linear_logp's plan, which computes saved exponentials again; NULL: none are */
} flp_backward_launch_more;

/* The next five functions are the backward in parts, with the forward between them, all in the call's workspace.
 * First: finds and packs the valid rows. Of call->args, rows, hidden, target, ignore_index, grad_hidden and stream are read. rows > 0. */
flp_status flp_linear_logp_backward_launch_rows(const flp_packed_call *call);
/* Where the forward has to store the saved exponentials of each chunk of rows. */
flp_saved_exp flp_linear_logp_backward_saved_exp(const flp_packed_call *call);
/* Then, for each chunk of rows from packed row `first` on, after its forward: the gradients but for what flp_linear_logp_backward_end_chunk adds. In a call
 * without rows, this is all of the backward. */
flp_status flp_linear_logp_backward_launch_chunk(const flp_packed_call *call, const flp_backward_launch_more *more, int64_t first);
/* Then grad_hidden of that chunk of rows. Either follows at once, or, with is_beside, behind the tiles of the next chunk's forward, beside whose end it runs.
 * rows >= 0. Without a grad_hidden it does nothing. */
flp_status flp_linear_logp_backward_end_chunk(const flp_packed_call *call, int64_t first, int is_beside);
/* After the last chunk of rows. */
flp_status flp_linear_logp_backward_launch_end(const flp_packed_call *call);
/* The whole backward of a shard, after flp_packed_rows_index. args have lse, logp and entropy of the merged rows. rows >= 0. */
flp_status flp_linear_logp_backward_launch_merged(const flp_packed_call *call, const flp_backward_launch_more *more);

/* What the launches need: for all valid rows of a call, or for a chunk of them. */
typedef struct {
    flp_packed_call call;
    flp_packed_rows rows;
    const flp_linear_logp_backward_problem *problem;
    const flp_linear_logp_problem *forward;
    const flp_backward_launch_more *more;
    const flp_backward_chunks *chunks; /* of the vocabulary: the plan's */
    float *factor, *inverse_factor;
    float *row_factor;  /* NULL: there are no saved exponentials */
    int is_handed_over; /* 1: the forward has left the rows' sums in rows.gradient */
    int takes;          /* 1: the backward of a plan with_forward, which uses what its forward has left in the workspace */
    int gathers;        /* 1: the backward packs the rows, because no forward of the same call has */
} flp_backward_execution;

static inline void *flp_backward_at(const flp_backward_execution *run, flp_linear_part part)
{
    return flp_workspace_at(run->call.workspace, part);
}

/* 1: grad_hidden is one product, of the whole vocabulary's saved exponentials or derivatives, without sums over chunks. */
static inline int flp_backward_is_direct(const flp_backward_execution *run)
{
    return run->call.plan->hidden_product && run->chunks->direct;
}

/* 1: grad_hidden is finished before the last chunk's grad_weight and grad_bias, so that its exchange runs beside these. */
static inline int flp_backward_finishes_first(const flp_backward_execution *run)
{
    return run->call.args->grad_hidden_event && run->rows.rows > 0 && run->forward->vocab > 0 && flp_vocab_chunks_finish_first(run->problem, run->chunks);
}

/* The fp32 sums that become the rows' grad_hidden. With in_forward, they are in place of the packed rows. */
static inline flp_matrix flp_backward_sums(const flp_backward_execution *run)
{
    const int64_t rows = run->rows.rows, hidden = run->forward->hidden;

    if (run->chunks->in_forward)
        return (flp_matrix){ run->rows.hidden, FLP_F32, rows, hidden, run->rows.stride * flp_dtype_bytes(run->forward->dtype) / (int64_t)sizeof(float) };
    return (flp_matrix){ flp_backward_at(run, FLP_PART_SUMS), FLP_F32, rows, hidden, hidden };
}

/* The sums of the parts of grad_hidden's product, one part behind the other. */
static inline flp_matrix flp_backward_parts(const flp_backward_execution *run)
{
    const int64_t hidden = run->forward->hidden, rows = flp_vocab_chunks_parts(run->problem, run->chunks) * flp_vocab_chunks_part_rows(run->rows.rows);

    return (flp_matrix){ flp_backward_at(run, FLP_PART_PARTS), FLP_F32, rows, hidden, hidden };
}

/* The counts in the workspace, which the forward and the backward of a plan with_forward share. */
static inline flp_backward_counts *flp_backward_counts_of(const flp_backward_execution *run)
{
    return flp_backward_at(run, FLP_PART_COUNTS);
}

/* ---- rows: linear_logp_backward_rows.c ---- */

/* Packs hidden's valid rows; step: one of those that gather rows. with_sums: sets grad_hidden's sums to 0, too. */
flp_status flp_backward_gather_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums);
/* Packs the rows times their factors, which grad_weight's product with saved exponentials reads. step, with_sums: as above. is_beside: 1: beside the end of the
 * kernel before, which then must not have computed the factors, nor read packed rows. */
flp_status flp_backward_scale_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums, int is_beside);
/* Computes the coefficients of each row's derivatives; with saved exponentials, also its factor. */
flp_status flp_backward_differentiate_rows(const flp_backward_execution *run);
/* 1: the launch behind the derivatives of rows sorts the rows by target. Launches that follow it may run beside it. */
static inline int flp_backward_may_run_beside_order(const flp_backward_execution *run)
{
    return run->call.plan->target_order && !run->call.plan->other_shards && run->rows.rows > 0;
}

/* Sorts the rows by target, for grad_weight. */
flp_status flp_backward_order_targets(const flp_backward_execution *run);
/* After that: makes targets that are in other shards of the vocabulary contribute nothing. */
flp_status flp_backward_clear_other_shards(const flp_backward_execution *run);
/* Adds the parts of grad_hidden's product. With a direct product, the sums become packed rows of grad_hidden; else they replace flp_backward_sums. step:
 * FORWARD_SUM, SAVED_EXP_SUM, or CHUNK_BEFORE behind the next chunk's tiles. row_factor: multiplies each row; NULL: 1. is_beside: 1: beside the end of the
 * kernel before, which has itself waited for the products and shares no memory with this. */
flp_status flp_backward_sum_parts(const flp_backward_execution *run, flp_linear_step step, const float *row_factor, int is_beside);
/* Writes grad_hidden of the chunk's rows, from the sums; with the first chunk, also of the rows that are not valid. step: FINISH, or CHUNK_BEFORE behind the
 * next chunk's tiles; is_beside: as above. */
flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run, flp_linear_step step, int is_beside);
/* Records the call's grad_hidden_event, where it has one. */
flp_status flp_backward_mark_grad_hidden(const flp_linear_logp_backward_args *args);
/* With a direct product, after the last chunk: moves grad_hidden of all rows from their packed indices to their places, by way of dlogit's memory, which is no
 * longer read. */
flp_status flp_backward_scatter_grad_hidden(const flp_backward_execution *run);

/* ---- the vocabulary, chunk by chunk: linear_logp_backward_chunks.c ---- */

flp_status flp_backward_run_chunks(const flp_backward_execution *run);
/* In the forward, for a chunk of rows: multiplies their saved exponentials by the weight. The products replace the packed rows. */
flp_status flp_backward_run_in_forward(const flp_backward_execution *run);
#endif
