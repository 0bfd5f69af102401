/* linear_logp's backward on a GPU path: the launches for each chunk of the vocabulary, the derivatives by its logits and their products. */
#include <string.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/arguments.h"
#include "core/call.h"
#include "operators/linear/linear_logp_backward.h"
#include "params/linear_logp_backward.h"
#include "operators/linear/matrix_product_launch.h"
#include "params/matrix_product.h"
#include "params/tiles.h"

/* A chunk of the vocabulary. dlogit holds the derivatives by its logits, or the saved exponentials, which times row_factor are the derivatives. */
typedef struct {
    int64_t first, columns;
    char *dlogit; /* [rows][stride] */
    int64_t stride;
    const float *row_factor;    /* NULL: 1 */
    int pdl_wait_in_epilogue;   /* of grad_hidden's product: params/matrix_product.h */
    int finishes_first;         /* 1: grad_hidden is finished before this chunk's grad_weight and grad_bias */
    int hidden_first;           /* 1: grad_weight's product comes after grad_hidden's, on whose idle clusters it begins; grad_bias comes before both */
    int weight_waits_to_store;  /* 1: grad_weight's product begins beside the product before it, and may overwrite what that one reads */
    flp_head_start weight_head; /* of grad_weight's product, with hidden_first */
    flp_tile_work before;       /* the product that precedes the computation of dlogit */
} chunk;

enum { WARPGROUPS = 2 /* in the ping-pong schedule, each holds one tile in its accumulators */ };

/* ---- matrices ---- */

static flp_matrix packed_matrix(const flp_backward_execution *run)
{
    return (flp_matrix){ run->rows.hidden, run->forward->dtype, run->rows.rows, run->forward->hidden, run->rows.stride };
}

static flp_matrix dlogit_matrix(const flp_backward_execution *run, const chunk *part)
{
    return (flp_matrix){ part->dlogit, run->forward->dtype, run->rows.rows, part->columns, part->stride };
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
static int follows_product(const flp_backward_execution *run, const chunk *part)
{
    const int is_first = part->first == run->chunks->saved_columns, is_lent = run->chunks->lent_columns > 0;

    return !run->call.plan->filter && (!is_first || (run->row_factor && run->call.plan->hidden_product && !is_lent));
}

static flp_tile_work hidden_work(const flp_backward_execution *run, int64_t columns)
{
    return (flp_tile_work){ .role = FLP_ROLE_HIDDEN_PRODUCT, .rows = run->rows.rows, .columns = run->forward->hidden, .inner = columns };
}

static flp_tile_work weight_work(const flp_backward_execution *run, int64_t columns)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;

    return (flp_tile_work){ .role = FLP_ROLE_WEIGHT_PRODUCT,
                            .rows = transposed ? run->forward->hidden : columns,
                            .columns = transposed ? columns : run->forward->hidden,
                            .inner = run->rows.rows };
}

/* The head start of grad_weight's product over the end of grad_hidden's, which precedes it in the same chunk. */
static flp_head_start weight_head_start(const flp_backward_execution *run, int64_t columns)
{
    const flp_tile_work hidden = hidden_work(run, columns), weight = weight_work(run, columns);

    return flp_tile_launch_head_start(&run->call.plan->common, &hidden, &weight);
}

static flp_status compute_dlogit(const flp_backward_execution *run, const chunk *part)
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
int64_t flp_backward_least_steps_in_step = 8192;

/* The counter by which the clusters of a product synchronise; NULL: they do not. They do in a product that is the call's only one of its kind, and so long that
 * its clusters would drift apart. */
static uint32_t *meetings_of(const flp_backward_execution *run, flp_role role, const flp_tile_launch *launch, int64_t inner)
{
    const flp_tile_shape shape = flp_tile_launch_shape(&run->call.plan->common, role, launch);
    const int64_t steps = flp_int64_divide_up(inner, run->call.plan->common.kernels[role]->manifest.block_inner);

    if (!run->chunks->hidden_first || flp_int64_divide_up(shape.tiles, shape.clusters) * steps < flp_backward_least_steps_in_step)
        return NULL;
    return &flp_backward_counts_of(run)->meetings[role == FLP_ROLE_HIDDEN_PRODUCT];
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
    launch->row_bytes = flp_int64_larger(FLP_LONG_ROW_BYTES, params->inner * (int64_t)flp_dtype_bytes(launch->a.dtype));
    launch->params = params;
    launch->group = &params->group;
    flp_workspace_begin_step(run->call.workspace, step);
    return flp_tile_launch_run(&run->call.plan->common, role, launch, run->call.args->stream);
}

/* sums += dlogit . weight. All that this reads was complete before grad_weight's product began. With a direct product, grad_hidden = dlogit . weight of the
 * whole vocabulary, which overwrites the packed rows that grad_weight's product has read. */
static flp_status add_to_sums(const flp_backward_execution *run, const chunk *part)
{
    const flp_linear_logp_problem *forward = run->forward;
    const flp_matrix sums = flp_backward_sums(run);
    flp_matrix_product_params params = { .row_count = run->rows.count,
                                         .inner = (int32_t)part->columns,
                                         .pdl_wait_in_epilogue = run->call.plan->weight_product ? part->pdl_wait_in_epilogue : 0,
                                         .row_factor = part->row_factor,
                                         .others = run->call.args->weight,
                                         .others_stride = forward->weight_stride,
                                         .kept_along = FLP_KEPT_ROWS_ALONG_ROWS };
    flp_tile_launch launch = {
        .a = dlogit_matrix(run, part),
        .b = chunk_of(run, run->call.args->weight, forward->dtype, forward->weight_stride, part->first, part->columns),
        .out = flp_backward_is_direct(run) ? whole_vectors(packed_matrix(run)) : sums,
        .rows = run->rows.rows,
        .columns = forward->hidden,
    };

    params.meetings = meetings_of(run, FLP_ROLE_HIDDEN_PRODUCT, &launch, part->columns);
    return run_product(run,
                       run->chunks->in_forward ? FLP_STEP_FORWARD_HIDDEN
                       : part->row_factor      ? FLP_STEP_SAVED_EXP_HIDDEN
                                               : FLP_STEP_HIDDEN,
                       FLP_ROLE_HIDDEN_PRODUCT, &launch, &params);
}

static flp_linear_step weight_step(const flp_backward_execution *run, const chunk *part)
{
    if (part->finishes_first || run->chunks->hidden_first)
        return FLP_STEP_WEIGHT_BEHIND;
    if (part->row_factor)
        return FLP_STEP_SAVED_EXP_WEIGHT;
    return part->hidden_first ? FLP_STEP_WEIGHT_SECOND : FLP_STEP_WEIGHT;
}

/* grad_weight (+)= dlogit^T . hidden, or its transpose where the weight is [D, V]. */
static flp_status write_grad_weight(const flp_backward_execution *run, const chunk *part)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;
    const flp_matrix dlogit = dlogit_matrix(run, part), rows = packed_matrix(run);
    const flp_tile_work work = weight_work(run, part->columns);
    flp_matrix_product_params params = { .inner_count = run->rows.count,
                                         .inner = (int32_t)run->rows.rows,
                                         .pdl_wait_in_epilogue = part->weight_waits_to_store ? FLP_PDL_WAIT_BEFORE_STORE : part->hidden_first,
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

    params.meetings = meetings_of(run, FLP_ROLE_WEIGHT_PRODUCT, &launch, run->rows.rows);
    params.head_workers = part->weight_head.workers;
    params.head_tiles = part->weight_head.tiles;
    return run_product(run, weight_step(run, part), FLP_ROLE_WEIGHT_PRODUCT, &launch, &params);
}

static flp_status write_grad_bias(const flp_backward_execution *run, const chunk *part)
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
    const unsigned blocks = (unsigned)((part->columns + FLP_BIAS_COLUMNS - 1) / FLP_BIAS_COLUMNS);

    flp_workspace_begin_step(run->call.workspace, part->finishes_first ? FLP_STEP_BIAS_BEHIND : part->row_factor ? FLP_STEP_SAVED_EXP_BIAS : FLP_STEP_BIAS);
    return flp_call_launch(run->call.plan->bias, blocks, run->call.args->stream, parameters);
}

static flp_status run_bias(const flp_backward_execution *run, const chunk *part)
{
    return run->call.plan->bias ? write_grad_bias(run, part) : FLP_OK;
}

static flp_status run_weight_product(const flp_backward_execution *run, const chunk *part)
{
    return run->call.plan->weight_product ? write_grad_weight(run, part) : FLP_OK;
}

/* The launches that do not use grad_hidden's sums. */
static flp_status run_weight_products(const flp_backward_execution *run, const chunk *part)
{
    const flp_status status = run_bias(run, part);

    return status == FLP_OK ? run_weight_product(run, part) : status;
}

static flp_status run_hidden_product(const flp_backward_execution *run, const chunk *part)
{
    return run->call.plan->hidden_product && run->rows.rows > 0 ? add_to_sums(run, part) : FLP_OK;
}

/* All products of a chunk, in its order. */
static flp_status run_products(const flp_backward_execution *run, const chunk *part)
{
    flp_status status = run_bias(run, part);

    if (status == FLP_OK && !part->hidden_first)
        status = run_weight_product(run, part);
    if (status == FLP_OK)
        status = run_hidden_product(run, part);
    return status == FLP_OK && part->hidden_first ? run_weight_product(run, part) : status;
}

/* The product without the rows' factors, which are not known yet. */
flp_status flp_backward_run_in_forward(const flp_backward_execution *run)
{
    const chunk part = { .columns = run->forward->vocab, .dlogit = flp_backward_at(run, FLP_PART_DLOGIT), .stride = run->chunks->saved_columns };

    return add_to_sums(run, &part);
}

/* The whole vocabulary. The rows times their factors, which grad_weight's product reads, are in a place of their own, because grad_hidden overwrites the packed
 * rows. */
static flp_status run_hidden_before_weight(const flp_backward_execution *run, const chunk *part)
{
    flp_backward_execution scaled = *run;
    flp_status status;

    scaled.rows.stride = flp_vocab_chunks_row_stride(run->problem);
    scaled.rows.hidden = flp_backward_at(run, FLP_PART_SCALED_ROWS);
    status = flp_backward_scale_rows(&scaled, 0);
    if (status == FLP_OK)
        status = run_hidden_product(run, part);
    return status == FLP_OK ? run_weight_products(&scaled, part) : status;
}

/* The first chunk, whose exponentials the forward has saved. grad_weight's product reads the rows times their factors, which replace the packed rows; for what
 * follows, the rows are packed again. */
static flp_status run_saved_exp(const flp_backward_execution *run)
{
    const int64_t vocab = run->forward->vocab, stride = run->chunks->saved_columns;
    const int hidden_first = run->chunks->hidden_first && run->rows.rows > 0;
    const chunk part = { .columns = stride < vocab ? stride : vocab,
                         .dlogit = flp_backward_at(run, FLP_PART_DLOGIT),
                         .stride = stride,
                         .row_factor = run->row_factor,
                         .hidden_first = hidden_first,
                         .weight_head = hidden_first ? weight_head_start(run, stride < vocab ? stride : vocab) : (flp_head_start){ 0, 0 },
                         .pdl_wait_in_epilogue = flp_backward_is_direct(run) && !hidden_first ? FLP_PDL_WAIT_BEFORE_STORE : 0 };
    flp_status status;

    if (hidden_first)
        return run_hidden_before_weight(run, &part);
    status = run->rows.rows > 0 && run->call.plan->weight_product ? flp_backward_scale_rows(run, 0) : FLP_OK;
    if (status == FLP_OK)
        status = run_weight_products(run, &part);
    if (status == FLP_OK && run->rows.rows > 0 && !flp_backward_is_direct(run))
        status = flp_backward_gather_rows(run, FLP_STEP_UNSCALE_ROWS, 1);
    return status == FLP_OK ? run_hidden_product(run, &part) : status;
}

/* Where a run of blocks of saved exponentials is stored. */
static char *place_run(const flp_backward_execution *run, const flp_vocab_run *blocks)
{
    return blocks->first >= 0 ? (char *)run->call.args->grad_weight + blocks->first : flp_backward_at(run, FLP_PART_DLOGIT);
}

/* Computes saved exponentials for which the forward had no room. The kernel places each block by its number in the vocabulary, so it gets the address at which
 * block 0 would be. */
static flp_status compute_again(const flp_backward_execution *run, const flp_vocab_run *blocks, int64_t block_bytes)
{
    flp_saved_exp saved_exp = flp_linear_logp_backward_saved_exp(&run->call);
    const flp_linear_logp_launch_more more = { .rows = &run->rows, .saved_exp = &saved_exp, .class_weights = run->more->class_weights };
    flp_linear_logp_args inputs = { .stream = run->call.args->stream };

    memcpy(&inputs, run->call.args, FLP_LINEAR_INPUT_BYTES);
    saved_exp.terms = (void *)((uintptr_t)place_run(run, blocks) - (uintptr_t)(blocks->begin * block_bytes));
    saved_exp.columns = blocks->end * run->chunks->lent_columns;
    return run->rows.rows > 0 ? flp_linear_logp_launch_blocks(run->more->forward, &inputs, &more, run->call.workspace, blocks->begin, blocks->end) : FLP_OK;
}

/* The execution with the rows times their factors: these are in place of the packed rows, or in a place of their own where the packed rows are needed, too. */
static flp_backward_execution with_scaled_rows(const flp_backward_execution *run, const flp_vocab_lending *lending)
{
    flp_backward_execution scaled = *run;

    if (lending->again == 0)
        return scaled;
    scaled.rows.stride = flp_vocab_chunks_row_stride(run->problem);
    scaled.rows.hidden = lending->scaled >= 0 ? (char *)run->call.args->grad_weight + lending->scaled : (char *)flp_backward_at(run, FLP_PART_SCALED_ROWS);
    return scaled;
}

/* 1: grad_hidden's product may come before grad_weight's. Not if it is direct, because it then overwrites the rows, which grad_weight's product reads. Not with
 * the filter, which leaves tiles of all lengths, so that nobody knows which clusters are idle when. Where grad_weight's tiles are so long that an idle cluster
 * has no time for one, it has for those of the next chunk's derivatives: grad_hidden's product then comes second. */
static int can_go_hidden_first(const flp_backward_execution *run)
{
    const flp_linear_logp_backward_plan *plan = run->call.plan;

    return plan->hidden_product && plan->weight_product && !plan->filter && run->rows.rows > 0 && !flp_backward_is_direct(run);
}

/* 1: grad_hidden's product leaves at least half of the clusters idle. */
static int leaves_half_idle(const flp_backward_execution *run)
{
    const flp_tile_launch launch = { .rows = run->rows.rows, .columns = run->forward->hidden };
    const flp_tile_shape shape = flp_tile_launch_shape(&run->call.plan->common, FLP_ROLE_HIDDEN_PRODUCT, &launch);

    return 2 * shape.tiles <= shape.clusters;
}

static chunk block_of(const flp_backward_execution *run, const flp_vocab_run *blocks, int64_t block, int64_t block_bytes)
{
    const int64_t columns = run->chunks->lent_columns;

    return (chunk){ .first = block * columns,
                    .columns = columns,
                    .dlogit = place_run(run, blocks) + (block - blocks->begin) * block_bytes,
                    .stride = columns,
                    .row_factor = run->row_factor };
}

/* The products of a run of blocks, block by block. They begin beside the end of those of the previous block of the run, and wait for these before they write:
 * grad_hidden's adds to the same sums as the previous block's. */
static flp_status run_blocks_in_turn(const flp_backward_execution *scaled, const flp_vocab_run *blocks, int64_t block_bytes)
{
    flp_status status = FLP_OK;

    for (int64_t block = blocks->begin; status == FLP_OK && block < blocks->end; block++) {
        const int follows = block > blocks->begin && scaled->call.plan->hidden_product && !scaled->call.plan->bias;
        chunk part = block_of(scaled, blocks, block, block_bytes);

        part.pdl_wait_in_epilogue = follows ? FLP_PDL_WAIT_BEFORE_STORE : 1;
        part.weight_waits_to_store = follows;
        status = run_products(scaled, &part);
    }
    return status;
}

/* The same with all of grad_hidden's products first: each begins on the clusters that those before it leave idle, and waits for these before it adds to the
 * sums. grad_weight's products, which may overwrite blocks that are read by all of grad_hidden's and by grad_weight's of the block before, likewise wait before
 * they write. */
static flp_status run_blocks_hidden_first(const flp_backward_execution *scaled, const flp_vocab_run *blocks, int64_t block_bytes)
{
    flp_status status = FLP_OK;

    for (int64_t block = blocks->begin; status == FLP_OK && block < blocks->end; block++) {
        chunk part = block_of(scaled, blocks, block, block_bytes);

        part.pdl_wait_in_epilogue = block > blocks->begin ? FLP_PDL_WAIT_BEFORE_STORE : 0;
        status = run_hidden_product(scaled, &part);
    }
    for (int64_t block = blocks->begin; status == FLP_OK && block < blocks->end; block++) {
        chunk part = block_of(scaled, blocks, block, block_bytes);

        part.weight_waits_to_store = 1;
        status = run_weight_product(scaled, &part);
    }
    return status;
}

/* The same for saved exponentials in grad_weight, a run of blocks at a time: what is written of grad_weight may overwrite blocks that both products have
 * read. */
static flp_status run_lent(const flp_backward_execution *run)
{
    const int64_t columns = run->chunks->lent_columns, all = run->chunks->saved_columns / columns;
    const flp_vocab_lending lending = flp_vocab_chunks_lending(run->problem, run->chunks, run->rows.rows);
    const flp_backward_execution scaled = with_scaled_rows(run, &lending);
    const int64_t block_bytes = lending.block_rows * columns * flp_dtype_bytes(run->forward->dtype);
    const int hidden_first = can_go_hidden_first(run) && !run->call.plan->bias && leaves_half_idle(run);
    flp_vocab_run blocks = { 0, lending.again > 0 ? lending.blocks : all, lending.first };
    flp_status status = run->rows.rows > 0 ? flp_backward_scale_rows(&scaled, 1) : FLP_OK;

    while (status == FLP_OK) {
        status = hidden_first ? run_blocks_hidden_first(&scaled, &blocks, block_bytes) : run_blocks_in_turn(&scaled, &blocks, block_bytes);
        if (status != FLP_OK || blocks.end == all)
            break;
        blocks = flp_vocab_chunks_again(run->problem, run->chunks, &lending, run->rows.rows, blocks.end);
        status = compute_again(run, &blocks, block_bytes);
    }
    return status == FLP_OK && run->rows.rows > 0 && lending.again == 0 && run->chunks->saved_columns < run->forward->vocab
               ? flp_backward_gather_rows(run, FLP_STEP_UNSCALE_BEHIND, 0)
               : status;
}

static flp_status run_all_saved_exp(const flp_backward_execution *run)
{
    return run->chunks->lent_columns > 0 ? run_lent(run) : run_saved_exp(run);
}

/* Counts and clears the filter's bits. columns: those of the chunk to which the bits belong; 0 before the first chunk: only clears. */
static flp_status count_kept(const flp_backward_execution *run, int64_t columns)
{
    const int64_t row_blocks = (run->rows.rows + 255) / 256 * 4;
    flp_backward_filter_params params = {
        .kept = kept_bits(run),
        .statistics = (flp_tally *)(uintptr_t)run->call.plan->statistics,
        .row_count = run->rows.count,
        .words = (int32_t)(row_blocks * flp_linear_work_kept_words(&run->call.plan->work)),
        .rows = (int32_t)run->rows.rows,
        .columns = (int32_t)columns,
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->call.workspace, columns == 0 ? FLP_STEP_CLEAR_FILTER : FLP_STEP_COUNT_FILTER);
    return flp_call_launch(run->call.plan->filter, 1, run->call.args->stream, parameters);
}

/* Where dlogit is stored: in grad_weight, after what this chunk writes of it, or in the workspace. */
static char *place_dlogit(const flp_backward_execution *run, const flp_vocab_chunk *size)
{
    return size->borrowed >= 0 ? (char *)run->call.args->grad_weight + size->borrowed : flp_backward_at(run, FLP_PART_DLOGIT);
}

/* The last chunk, where an exchange of grad_hidden is to run beside its other launches. */
static flp_status finish_hidden_first(const flp_backward_execution *run, const chunk *part)
{
    flp_status status = run_hidden_product(run, part);

    if (status == FLP_OK)
        status = flp_backward_finish_grad_hidden(run);
    if (status == FLP_OK)
        status = flp_backward_mark_grad_hidden(run->call.args);
    return status == FLP_OK ? run_weight_products(run, part) : status;
}

/* *before: the product that precedes this chunk; receives the chunk's last product. */
static flp_status run_chunk(const flp_backward_execution *run, int64_t first, const flp_vocab_chunk *size, flp_tile_work *before)
{
    const int64_t stride = (size->columns + FLP_BACKWARD_COLUMNS - 1) / FLP_BACKWARD_COLUMNS * FLP_BACKWARD_COLUMNS;
    const int finishes_first = first + size->columns >= run->forward->vocab && flp_backward_finishes_first(run);
    const flp_head_start weight_head = !finishes_first && can_go_hidden_first(run) ? weight_head_start(run, size->columns) : (flp_head_start){ 0, 0 };
    const int hidden_first = weight_head.workers > 0, is_second = !finishes_first && !hidden_first;
    const chunk part = { .first = first,
                         .columns = size->columns,
                         .dlogit = place_dlogit(run, size),
                         .stride = stride,
                         .pdl_wait_in_epilogue = flp_backward_is_direct(run) ? FLP_PDL_WAIT_BEFORE_STORE : is_second,
                         .finishes_first = finishes_first,
                         .hidden_first = hidden_first,
                         .weight_head = weight_head,
                         .before = *before };
    flp_status status = run->rows.rows > 0 ? compute_dlogit(run, &part) : FLP_OK;

    *before = hidden_first ? weight_work(run, size->columns) : hidden_work(run, size->columns);
    before->head_tiles = (int64_t)weight_head.workers * weight_head.tiles; /* all tiles, or more, where the idle clusters have time for all */
    if (status == FLP_OK)
        status = finishes_first ? finish_hidden_first(run, &part) : run_products(run, &part);
    return status == FLP_OK && run->call.plan->filter ? count_kept(run, size->columns) : status;
}

flp_status flp_backward_run_chunks(const flp_backward_execution *run)
{
    const int64_t rows = flp_linear_work_chunk_rows(&run->call.plan->work, run->call.args->rows);
    flp_tile_work before = hidden_work(run, run->chunks->saved_columns);
    flp_status status = run->chunks->in_forward ? FLP_OK : run->row_factor ? run_all_saved_exp(run) : run->call.plan->filter ? count_kept(run, 0) : FLP_OK;

    for (int64_t first = run->chunks->saved_columns; status == FLP_OK && first < run->forward->vocab;) {
        const flp_vocab_chunk size = flp_vocab_chunk_at(run->problem, run->chunks, rows, first);

        status = run_chunk(run, first, &size, &before);
        first += size.columns;
    }
    return status;
}
