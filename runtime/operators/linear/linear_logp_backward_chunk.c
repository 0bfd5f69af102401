/* linear_logp's backward on a GPU path: the launches of one chunk of the vocabulary. */
#include "operators/linear/linear_logp_backward_chunk.h"

#include <stdatomic.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/arguments.h"
#include "core/call.h"
#include "params/linear_logp_backward.h"
#include "params/matrix_product.h"
#include "params/tiles.h"

enum { WARPGROUPS = 2 /* in the ping-pong schedule, each holds one tile in its accumulators */ };

/* ---- matrices ---- */

static flp_matrix packed_matrix(const flp_backward_execution *run)
{
    return (flp_matrix){ run->rows.hidden, run->forward->dtype, run->rows.rows, run->forward->hidden, run->rows.stride };
}

static flp_matrix dlogit_matrix(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const int64_t before = part->slab_columns > 0 ? flp_int64_divide_up(part->columns, part->slab_columns) - 1 : 0; /* slabs before the last */

    return (flp_matrix){ part->dlogit, run->forward->dtype, before * part->slab_rows + run->rows.rows,
                         part->slab_columns > 0 ? part->slab_columns : part->columns, part->stride };
}

/* The part of weight, or of grad_weight, that belongs to the vocabulary entries from first on. */
static flp_matrix chunk_of(const flp_backward_execution *run, const void *data, flp_dtype dtype, int64_t stride, int64_t first, int64_t columns)
{
    if (run->forward->weight_layout == FLP_HIDDEN_VOCAB)
        return (flp_matrix){ flp_arguments_advance(data, first, dtype), dtype, run->forward->hidden, columns, stride };
    return (flp_matrix){ flp_arguments_advance(data, first * stride, dtype), dtype, columns, run->forward->hidden, stride };
}

/* The columns of a caller's matrix that TMA may write. The kernel itself stores the rest of each row (ragged_store.cuh). */
static flp_matrix whole_vectors(flp_matrix out)
{
    const int64_t elements = FLP_ENGINE_BYTES / flp_dtype_bytes(out.dtype);

    out.columns = flp_int64_larger(1, out.columns / elements) * elements;
    return out;
}

/* ---- the launches of a chunk ---- */

/* The bits in which the gradient filter marks the blocks that it keeps, or NULL. */
static uint32_t *kept_bits(const flp_backward_execution *run)
{
    return run->call.plan->filter ? flp_backward_at(run, FLP_PART_KEPT) : NULL;
}

/* 1: the kernel before dlogit's has itself waited for all that dlogit's kernel reads, because it reads that, too. After saved exponentials in grad_weight, or
 * without grad_hidden's product, it may be a kernel that still gathers the rows. */
static int follows_product(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const int is_first = part->first == run->chunks->saved_columns, is_lent = run->chunks->lent_columns > 0;

    return !run->call.plan->filter && (!is_first || (run->row_factor && run->call.plan->hidden_product && !is_lent));
}

flp_tile_work flp_backward_hidden_work(const flp_backward_execution *run, int64_t columns)
{
    return (flp_tile_work){ .role = FLP_ROLE_HIDDEN_PRODUCT, .rows = run->rows.rows, .columns = run->forward->hidden, .inner = columns };
}

flp_tile_work flp_backward_weight_work(const flp_backward_execution *run, int64_t columns)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;

    return (flp_tile_work){ .role = FLP_ROLE_WEIGHT_PRODUCT,
                            .rows = transposed ? run->forward->hidden : columns,
                            .columns = transposed ? columns : run->forward->hidden,
                            .inner = run->rows.rows };
}

flp_status flp_backward_compute_dlogit(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const flp_linear_logp_problem *forward = run->forward;
    const int transposed = forward->weight_layout == FLP_HIDDEN_VOCAB;
    flp_grad_logits_params params = {
        .hidden = run->rows.hidden,
        .weight = run->call.args->weight,
        .bias = run->call.args->bias,
        .out = part->dlogit,
        .hidden_stride = run->rows.stride,
        .weight_stride = forward->weight_stride,
        .out_stride = part->stride,
        .gradient = flp_backward_at(run, FLP_PART_GRADIENT),
        .row_count = run->rows.count,
        .class_weights = run->more->class_weights,
        .rows = (int32_t)run->rows.rows,
        .vocab = (int32_t)forward->vocab,
        .first_column = (int32_t)part->first,
        .columns = (int32_t)part->columns,
        .filter = (float)run->problem->grad_filter_eps,
        .factor = run->factor,
        .kept = kept_bits(run),
        .kept_words = (int32_t)flp_linear_work_kept_words(&run->call.plan->work),
        .pdl_wait_in_epilogue = follows_product(run, part),
        .targets = flp_backward_at(run, FLP_PART_TARGETS),
        .softcap = (float)forward->softcap,
        .inverse_softcap = forward->softcap == 0 ? 0 : (float)(1 / forward->softcap),
    };
    const flp_tile_work own = {
        .role = FLP_ROLE_GRAD_LOGITS, .rows = run->rows.rows, .columns = part->columns, .inner = forward->hidden, .most_early = WARPGROUPS
    };
    const flp_tile_launch launch = {
        .a = packed_matrix(run),
        .b = { run->call.args->weight, forward->dtype, transposed ? forward->hidden : forward->vocab, transposed ? forward->vocab : forward->hidden,
               forward->weight_stride },
        .out = dlogit_matrix(run, part),
        .rows = run->rows.rows,
        .columns = part->columns,
        .row_bytes = forward->hidden * flp_dtype_bytes(forward->dtype),
        .params = &params,
        .group = &params.group,
    };

    if (params.pdl_wait_in_epilogue && run->call.plan->hidden_product) {
        const flp_head_start head = flp_tile_launch_head_start(&run->call.plan->common, &part->before, &own);

        params.head_workers = head.workers;
        params.head_tiles = head.tiles;
    }
    flp_workspace_begin_step(run->call.workspace, FLP_STEP_GRAD_LOGITS);
    return flp_tile_launch_run(&run->call.plan->common, FLP_ROLE_GRAD_LOGITS, &launch, run->call.args->stream);
}

/* Measured on an H200: with 15,500 steps a cluster (N 8192, D 4096, V 128256), this gains 5 % in burst and nothing sustained; with 4,000 (N 4096, D 2048,
 * V 131072), it gains nothing, and loses 1 % sustained. */
enum { LEAST_STEPS_IN_STEP = 8192 };

static _Atomic int64_t least_steps_in_step = LEAST_STEPS_IN_STEP;

int64_t flp_backward_set_least_steps_in_step(int64_t steps)
{
    return atomic_exchange(&least_steps_in_step, steps);
}

/* The counter by which the clusters of a product synchronise; NULL: they do not. They do in a product that is the call's only one of its kind, and so long that
 * its clusters would drift apart. */
static uint32_t *meetings_of(const flp_backward_execution *run, flp_role role, const flp_tile_launch *launch, int64_t inner)
{
    const flp_tile_shape shape = flp_tile_launch_shape(&run->call.plan->common, role, launch);
    const int64_t steps = flp_int64_divide_up(inner, run->call.plan->common.kernels[role]->manifest.block_inner);

    if (!run->chunks->hidden_first || flp_int64_divide_up(shape.tiles, shape.clusters) * steps < least_steps_in_step)
        return NULL;
    return &flp_backward_counts_of(run)->meetings[role == FLP_ROLE_HIDDEN_PRODUCT];
}

/* The slabs in which dlogit lies, for kernels that take more than one. */
static void set_slabs(const flp_dlogit_chunk *part, flp_matrix_product_params *params)
{
    params->slab_rows = (int32_t)part->slab_rows;
    params->slab_columns = (int32_t)(part->slab_columns > 0 ? part->slab_columns : flp_int64_round_up(part->columns, FLP_BACKWARD_COLUMNS));
}

/* Elements of a row of A that a launch's tiles read before they go on to the next ones. */
static int64_t inner_at_once(const flp_tile_launch *launch, const flp_matrix_product_params *params)
{
    return params->parts > launch->parts ? params->part_inner : params->inner;
}

static flp_status run_product(const flp_backward_execution *run, flp_linear_step step, flp_role role, flp_tile_launch *launch,
                              flp_matrix_product_params *params)
{
    params->a = launch->a.data;
    params->b = launch->b.data;
    params->out = (void *)(uintptr_t)launch->out.data;
    params->a_stride = launch->a.stride;
    params->b_stride = launch->b.stride;
    params->out_stride = launch->out.stride;
    params->factor = run->inverse_factor;
    params->targets = flp_backward_at(run, FLP_PART_TARGETS);
    params->kept = kept_bits(run);
    params->kept_words = (int32_t)flp_linear_work_kept_words(&run->call.plan->work);
    params->rows = (int32_t)launch->rows;
    params->columns = (int32_t)launch->columns;
    launch->row_bytes = flp_int64_larger(FLP_LONG_ROW_BYTES, inner_at_once(launch, params) * (int64_t)flp_dtype_bytes(launch->a.dtype));
    launch->params = params;
    launch->group = &params->group;
    flp_workspace_begin_step(run->call.workspace, step);
    return flp_tile_launch_run(&run->call.plan->common, role, launch, run->call.args->stream);
}

/* sums += dlogit . weight, block by block. All that this reads was complete before grad_weight's product began. With a direct product, grad_hidden = dlogit .
 * weight of the whole vocabulary, which overwrites the packed rows that grad_weight's product has read. With parts, each part's sums are stored for
 * flp_backward_sum_parts. */
static flp_status add_to_sums(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const flp_linear_logp_problem *forward = run->forward;
    const int has_parts = run->chunks->part_columns > 0;
    const int64_t block = part->row_factor && run->chunks->lent_columns > 0 ? run->chunks->lent_columns : part->columns;
    const int64_t of_part = has_parts ? run->chunks->part_columns : block;
    flp_matrix_product_params params = { .row_count = run->rows.count,
                                         .inner = (int32_t)part->columns,
                                         .pdl_wait_in_epilogue = run->call.plan->weight_product || has_parts ? part->pdl_wait_in_epilogue : FLP_PDL_WAIT_FIRST,
                                         .row_factor = part->row_factor,
                                         .others = run->call.args->weight,
                                         .others_stride = forward->weight_stride,
                                         .kept_along = FLP_KEPT_ROWS_ALONG_ROWS,
                                         .part_rows = flp_vocab_chunks_part_rows(run->rows.rows),
                                         .part_inner = (int32_t)of_part,
                                         .parts = (int32_t)flp_int64_divide_up(part->columns, of_part) };
    flp_tile_launch launch = {
        .a = dlogit_matrix(run, part),
        .b = chunk_of(run, run->call.args->weight, forward->dtype, forward->weight_stride, part->first, part->columns),
        .out = has_parts                     ? flp_backward_parts(run)
               : flp_backward_is_direct(run) ? whole_vectors(packed_matrix(run))
                                             : flp_backward_sums(run),
        .rows = run->rows.rows,
        .columns = forward->hidden,
        .parts = has_parts ? params.parts : 1,
    };

    set_slabs(part, &params);
    params.meetings = meetings_of(run, FLP_ROLE_HIDDEN_PRODUCT, &launch, part->columns);
    return run_product(run,
                       run->chunks->in_forward ? FLP_STEP_FORWARD_HIDDEN
                       : part->row_factor      ? FLP_STEP_SAVED_EXP_HIDDEN
                                               : FLP_STEP_HIDDEN,
                       FLP_ROLE_HIDDEN_PRODUCT, &launch, &params);
}

static flp_linear_step weight_step(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    if (part->finishes_first || run->chunks->hidden_first)
        return FLP_STEP_WEIGHT_BEHIND;
    if (part->row_factor)
        return FLP_STEP_SAVED_EXP_WEIGHT;
    return part->weight_goes_second ? FLP_STEP_WEIGHT_SECOND : FLP_STEP_WEIGHT;
}

/* grad_weight (+)= dlogit^T . hidden, or its transpose where the weight is [D, V]. */
static flp_status write_grad_weight(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;
    const flp_matrix dlogit = dlogit_matrix(run, part), rows = packed_matrix(run);
    const flp_tile_work work = flp_backward_weight_work(run, part->columns);
    flp_matrix_product_params params = { .inner_count = run->rows.count,
                                         .inner = (int32_t)run->rows.rows,
                                         .pdl_wait_in_epilogue = part->weight_waits_to_store ? FLP_PDL_WAIT_BEFORE_STORE
                                                                 : part->weight_goes_second  ? FLP_PDL_WAIT_LAST
                                                                                             : FLP_PDL_WAIT_FIRST,
                                         .sorted_targets = flp_backward_at(run, FLP_PART_TARGET_ORDER),
                                         .others = run->call.args->hidden,
                                         .others_stride = run->forward->hidden_stride,
                                         .first_target = (int32_t)part->first,
                                         .kept_along = transposed ? FLP_KEPT_COLUMNS_ALONG_COLUMNS : FLP_KEPT_ROWS_ALONG_COLUMNS };
    flp_tile_launch launch = {
        .a = transposed ? rows : dlogit,
        .b = transposed ? dlogit : rows,
        .out =
            whole_vectors(chunk_of(run, run->call.args->grad_weight, run->problem->grad_weight, run->problem->grad_weight_stride, part->first, part->columns)),
        .rows = work.rows,
        .columns = work.columns,
        .multiprocessors_left = part->finishes_first ? run->call.args->multiprocessors_left : 0,
    };

    set_slabs(part, &params);
    params.meetings = meetings_of(run, FLP_ROLE_WEIGHT_PRODUCT, &launch, run->rows.rows);
    params.head_workers = part->weight_head.workers;
    params.head_tiles = part->weight_head.tiles;
    return run_product(run, weight_step(run, part), FLP_ROLE_WEIGHT_PRODUCT, &launch, &params);
}

static flp_status write_grad_bias(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    flp_backward_bias_params params = {
        .gradients = part->dlogit,
        .out = (void *)(uintptr_t)flp_arguments_advance(run->call.args->grad_bias, part->first, run->problem->grad_bias),
        .stride = part->stride,
        .row_count = run->rows.count,
        .factor = run->inverse_factor,
        .rows = (int32_t)run->rows.rows,
        .columns = (int32_t)part->columns,
        .row_factor = part->row_factor,
        .targets = flp_backward_at(run, FLP_PART_TARGETS),
        .first_column = (int32_t)part->first,
    };
    void *parameters[] = { &params };
    const unsigned blocks = (unsigned)flp_int64_divide_up(part->columns, FLP_BIAS_COLUMNS);

    flp_workspace_begin_step(run->call.workspace, part->finishes_first ? FLP_STEP_BIAS_BEHIND : part->row_factor ? FLP_STEP_SAVED_EXP_BIAS : FLP_STEP_BIAS);
    return flp_call_launch(run->call.plan->bias, blocks, run->call.args->stream, parameters);
}

flp_status flp_backward_run_bias(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    return run->call.plan->bias ? write_grad_bias(run, part) : FLP_OK;
}

flp_status flp_backward_run_weight_product(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    return run->call.plan->weight_product ? write_grad_weight(run, part) : FLP_OK;
}

/* The launches that do not use grad_hidden's sums. */
flp_status flp_backward_run_weight_products(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const flp_status status = flp_backward_run_bias(run, part);

    return status == FLP_OK ? flp_backward_run_weight_product(run, part) : status;
}

flp_status flp_backward_run_hidden_product(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    return run->call.plan->hidden_product && run->rows.rows > 0 ? add_to_sums(run, part) : FLP_OK;
}

/* Counts and clears the filter's bits. columns: those of the chunk to which the bits belong; 0 before the first chunk: only clears. */
flp_status flp_backward_count_kept(const flp_backward_execution *run, int64_t columns)
{
    flp_backward_filter_params params = {
        .kept = kept_bits(run),
        .statistics = (flp_tally *)(uintptr_t)run->call.plan->statistics,
        .row_count = run->rows.count,
        .words = (int32_t)(flp_linear_work_kept_row_blocks(run->rows.rows) * flp_linear_work_kept_words(&run->call.plan->work)),
        .rows = (int32_t)run->rows.rows,
        .columns = (int32_t)columns,
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->call.workspace, columns == 0 ? FLP_STEP_CLEAR_FILTER : FLP_STEP_COUNT_FILTER);
    return flp_call_launch(run->call.plan->filter, 1, run->call.args->stream, parameters);
}
