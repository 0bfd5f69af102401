/* linear_logp's backward on a GPU path: in which order the chunks of the vocabulary are processed, and in which order their products run. */
#include <string.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/arguments.h"
#include "operators/linear/linear_logp_backward_chunk.h"
#include "params/matrix_product.h"

enum { NARROW = 2 /* a chunk with less than 1/2 of the columns of a slab's first one */ };

/* The head start of grad_weight's product over the end of grad_hidden's, which precedes it in the same chunk. */
static flp_head_start weight_head_start(const flp_backward_execution *run, const flp_tile_work *hidden, int64_t columns)
{
    const flp_tile_work weight = flp_backward_weight_work(run, columns);

    return flp_tile_launch_head_start(&run->call.plan->common, hidden, &weight);
}

/* The width of the chunk that begins at vocabulary entry `first`. */
static int64_t chunk_columns(const flp_backward_execution *run, int64_t first)
{
    return first < run->chunks->saved_columns ? run->chunks->lent_columns : flp_vocab_chunk_at(run->problem, run->chunks, run->rows.rows, first).columns;
}

/* grad_hidden's products of a slab's columns [begin, end), chunk by chunk. The slab's first waits as the slab says, the others before they add to the sums of
 * the one before. */
static flp_status run_hidden_products(const flp_backward_execution *run, const flp_dlogit_chunk *slab, int64_t begin, int64_t end)
{
    flp_dlogit_chunk part = *slab;
    flp_status status = FLP_OK;

    for (int64_t at = begin; status == FLP_OK && at < end; at += part.columns) {
        part.first = slab->first + at;
        part.columns = chunk_columns(run, part.first);
        part.dlogit = slab->dlogit + at * flp_dtype_bytes(run->forward->dtype);
        if (at > 0)
            part.pdl_wait_in_epilogue = FLP_PDL_WAIT_BEFORE_STORE;
        status = flp_backward_run_hidden_product(run, &part);
    }
    return status;
}

/* All products of a chunk or slab, in its order. */
static flp_status run_products(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const int64_t behind = part->hidden_first ? part->columns - part->behind : 0; /* from here on, grad_hidden's products come after grad_weight's */
    flp_status status = flp_backward_run_bias(run, part);

    if (status == FLP_OK)
        status = run_hidden_products(run, part, 0, behind);
    if (status == FLP_OK)
        status = flp_backward_run_weight_product(run, part);
    return status == FLP_OK ? run_hidden_products(run, part, behind, part->columns) : status;
}

/* The product without the rows' factors, which are not known yet. */
flp_status flp_backward_run_in_forward(const flp_backward_execution *run)
{
    const flp_dlogit_chunk part = { .columns = run->forward->vocab, .dlogit = flp_backward_at(run, FLP_PART_DLOGIT), .stride = run->chunks->saved_columns };

    return flp_backward_run_hidden_product(run, &part);
}

/* The whole vocabulary. The rows times their factors, which grad_weight's product reads, are in a place of their own, because grad_hidden overwrites the packed
 * rows. */
static flp_status run_hidden_before_weight(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    flp_backward_execution scaled = *run;
    flp_status status;

    scaled.rows.stride = flp_vocab_chunks_row_stride(run->problem);
    scaled.rows.hidden = flp_backward_at(run, FLP_PART_SCALED_ROWS);
    status = flp_backward_scale_rows(&scaled, 0);
    if (status == FLP_OK)
        status = flp_backward_run_hidden_product(run, part);
    return status == FLP_OK ? flp_backward_run_weight_products(&scaled, part) : status;
}

/* The first chunk, whose exponentials the forward has saved. grad_weight's product reads the rows times their factors, which replace the packed rows; for what
 * follows, the rows are packed again. */
static flp_status run_saved_exp(const flp_backward_execution *run)
{
    const int64_t stride = run->chunks->saved_columns, columns = flp_int64_smaller(stride, run->forward->vocab);
    const int hidden_first = run->chunks->hidden_first && run->rows.rows > 0;
    const flp_tile_work hidden = flp_backward_hidden_work(run, columns);
    const flp_dlogit_chunk part = { .columns = columns,
                                    .dlogit = flp_backward_at(run, FLP_PART_DLOGIT),
                                    .stride = stride,
                                    .row_factor = run->row_factor,
                                    .hidden_first = hidden_first,
                                    .weight_head = hidden_first ? weight_head_start(run, &hidden, columns) : (flp_head_start){ 0, 0 },
                                    .pdl_wait_in_epilogue = flp_backward_is_direct(run) && !hidden_first ? FLP_PDL_WAIT_BEFORE_STORE : 0 };
    flp_status status;

    if (hidden_first)
        return run_hidden_before_weight(run, &part);
    status = run->rows.rows > 0 && run->call.plan->weight_product ? flp_backward_scale_rows(run, 0) : FLP_OK;
    if (status == FLP_OK)
        status = flp_backward_run_weight_products(run, &part);
    if (status == FLP_OK && run->rows.rows > 0 && !flp_backward_is_direct(run))
        status = flp_backward_gather_rows(run, FLP_STEP_UNSCALE_ROWS, 1);
    return status == FLP_OK ? flp_backward_run_hidden_product(run, &part) : status;
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

/* 1: `count` of grad_hidden's products have their clusters all at once. */
static int run_at_once(const flp_backward_execution *run, int64_t count)
{
    const flp_tile_launch launch = { .rows = run->rows.rows, .columns = run->forward->hidden };
    const flp_tile_shape shape = flp_tile_launch_shape(&run->call.plan->common, FLP_ROLE_HIDDEN_PRODUCT, &launch);

    return count * shape.tiles <= shape.clusters;
}

/* The head start of grad_weight's product of size->columns entries over the end of grad_hidden's products of size->chunks chunks. None of these is wider than
 * the first, of `widest` entries. Where they run beside one another, each holds its clusters until the one before it ends: all do as long as the first one. */
static flp_head_start head_start_behind(const flp_backward_execution *run, int64_t widest, const flp_vocab_slab *size)
{
    const int are_beside = size->chunks > 1 && run_at_once(run, 2);
    flp_tile_work hidden = flp_backward_hidden_work(run, are_beside ? widest : size->last_columns);

    hidden.rows *= are_beside ? size->chunks : 1;
    return weight_head_start(run, &hidden, size->columns);
}

/* A run of blocks, stored slab by slab. */
typedef struct {
    flp_vocab_run blocks;
    int64_t slab_blocks, slab_bytes;
} slabs;

static flp_dlogit_chunk slab_at(const flp_backward_execution *run, const slabs *all, int64_t begin)
{
    const int64_t columns = run->chunks->lent_columns;

    return (flp_dlogit_chunk){ .first = begin * columns,
                               .columns = flp_int64_smaller(all->slab_blocks, all->blocks.end - begin) * columns,
                               .dlogit = place_run(run, &all->blocks) + (begin - all->blocks.begin) / all->slab_blocks * all->slab_bytes,
                               .stride = all->slab_blocks * columns,
                               .row_factor = run->row_factor };
}

/* The products of a run of blocks, slab by slab. They begin beside the end of those of the previous slab of the run, and wait for these before they write:
 * grad_hidden's adds to the same sums as the previous block's. */
static flp_status run_slabs_in_turn(const flp_backward_execution *scaled, const slabs *all)
{
    flp_status status = FLP_OK;

    for (int64_t begin = all->blocks.begin; status == FLP_OK && begin < all->blocks.end; begin += all->slab_blocks) {
        const int follows = begin > all->blocks.begin && scaled->call.plan->hidden_product && !scaled->call.plan->bias;
        flp_dlogit_chunk slab = slab_at(scaled, all, begin);

        slab.pdl_wait_in_epilogue = follows ? FLP_PDL_WAIT_BEFORE_STORE : 1;
        slab.weight_waits_to_store = follows;
        status = run_products(scaled, &slab);
    }
    return status;
}

/* The same with all of grad_hidden's products first: each begins on the clusters that those before it leave idle, and waits for these before it adds to the
 * sums. The first of grad_weight's products overwrites nothing that is read; the others, which may overwrite slabs that are read by all of grad_hidden's and by
 * grad_weight's of the slab before, likewise wait before they write. */
static flp_status run_slabs_hidden_first(const flp_backward_execution *scaled, const slabs *all)
{
    const int64_t columns = scaled->chunks->lent_columns;
    flp_status status = FLP_OK;

    for (int64_t begin = all->blocks.begin; status == FLP_OK && begin < all->blocks.end; begin += all->slab_blocks) {
        flp_dlogit_chunk slab = slab_at(scaled, all, begin);

        slab.pdl_wait_in_epilogue = begin > all->blocks.begin ? FLP_PDL_WAIT_BEFORE_STORE : 0;
        status = run_hidden_products(scaled, &slab, 0, slab.columns);
    }
    for (int64_t begin = all->blocks.begin; status == FLP_OK && begin < all->blocks.end; begin += all->slab_blocks) {
        flp_dlogit_chunk slab = slab_at(scaled, all, begin);
        const flp_vocab_slab behind_all = { slab.columns, all->blocks.end - all->blocks.begin, columns, -1 };

        slab.hidden_first = begin == all->blocks.begin;
        slab.weight_waits_to_store = !slab.hidden_first;
        slab.weight_head = slab.hidden_first ? head_start_behind(scaled, columns, &behind_all) : (flp_head_start){ 0, 0 };
        status = flp_backward_run_weight_product(scaled, &slab);
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
    const int hidden_first = can_go_hidden_first(run) && !run->call.plan->bias && run_at_once(run, 2);
    slabs some = { { 0, lending.again > 0 ? lending.blocks : all, lending.first }, lending.slab_blocks, lending.slab_bytes };
    flp_status status = run->rows.rows > 0 ? flp_backward_scale_rows(&scaled, 1) : FLP_OK;

    while (status == FLP_OK) {
        status = hidden_first ? run_slabs_hidden_first(&scaled, &some) : run_slabs_in_turn(&scaled, &some);
        if (status != FLP_OK || some.blocks.end == all)
            break;
        some.blocks = flp_vocab_chunks_again(run->problem, run->chunks, &lending, run->rows.rows, some.blocks.end);
        status = compute_again(run, &some.blocks, lending.slab_bytes);
    }
    return status == FLP_OK && run->rows.rows > 0 && lending.again == 0 && run->chunks->saved_columns < run->forward->vocab
               ? flp_backward_gather_rows(run, FLP_STEP_UNSCALE_BEHIND, 0)
               : status;
}

static flp_status run_all_saved_exp(const flp_backward_execution *run)
{
    return run->chunks->lent_columns > 0 ? run_lent(run) : run_saved_exp(run);
}

/* Where dlogit is stored: in grad_weight, after what this slab writes of it, or in the workspace. */
static char *place_dlogit(const flp_backward_execution *run, const flp_vocab_slab *size)
{
    return size->borrowed >= 0 ? (char *)run->call.args->grad_weight + size->borrowed : flp_backward_at(run, FLP_PART_DLOGIT);
}

/* The last slab, where an exchange of grad_hidden is to run beside its other launches. */
static flp_status finish_hidden_first(const flp_backward_execution *run, const flp_dlogit_chunk *slab)
{
    flp_status status = run_hidden_products(run, slab, 0, slab->columns);

    if (status == FLP_OK)
        status = flp_backward_finish_grad_hidden(run);
    if (status == FLP_OK)
        status = flp_backward_mark_grad_hidden(run->call.args);
    return status == FLP_OK ? flp_backward_run_weight_products(run, slab) : status;
}

/* 1: the product for grad_hidden of a slab's last chunk is to come after grad_weight's. Before it, it would hold its clusters idle for longer than it uses
 * them, and leave grad_weight's product few others. */
static int last_goes_behind(const flp_backward_execution *run, const flp_vocab_slab *size, int64_t widest)
{
    return size->last_columns * NARROW < widest && !run_at_once(run, size->chunks + 1);
}

/* Chooses the order of a slab's products. */
static void order_products(const flp_backward_execution *run, const flp_vocab_slab *size, flp_dlogit_chunk *slab)
{
    const int64_t widest = chunk_columns(run, slab->first);
    flp_vocab_slab before_weight = *size;

    if (slab->finishes_first || !can_go_hidden_first(run))
        return;
    if (last_goes_behind(run, size, widest)) {
        slab->behind = size->last_columns;
        before_weight.chunks--;
        before_weight.last_columns = widest;
    }
    slab->weight_head = head_start_behind(run, widest, &before_weight);
    slab->hidden_first = slab->weight_head.workers > 0;
}

static flp_tile_work last_product(const flp_backward_execution *run, const flp_vocab_slab *size, const flp_dlogit_chunk *slab)
{
    flp_tile_work work = flp_backward_weight_work(run, size->columns);

    work.head_tiles = (int64_t)slab->weight_head.workers * slab->weight_head.tiles; /* all tiles, or more, where the idle clusters have time for all */
    return slab->hidden_first && slab->behind == 0 ? work : flp_backward_hidden_work(run, size->last_columns);
}

/* *before: the product that precedes this slab; receives the slab's last product. */
static flp_status run_slab(const flp_backward_execution *run, int64_t first, const flp_vocab_slab *size, flp_tile_work *before)
{
    flp_dlogit_chunk slab = { .first = first,
                              .columns = size->columns,
                              .dlogit = place_dlogit(run, size),
                              .stride = flp_int64_round_up(size->columns, FLP_BACKWARD_COLUMNS),
                              .finishes_first = first + size->columns >= run->forward->vocab && flp_backward_finishes_first(run),
                              .before = *before };
    flp_status status;

    order_products(run, size, &slab);
    slab.pdl_wait_in_epilogue = flp_backward_is_direct(run) ? FLP_PDL_WAIT_BEFORE_STORE : !slab.finishes_first && !slab.hidden_first;
    *before = last_product(run, size, &slab);
    status = run->rows.rows > 0 ? flp_backward_compute_dlogit(run, &slab) : FLP_OK;
    if (status == FLP_OK)
        status = slab.finishes_first ? finish_hidden_first(run, &slab) : run_products(run, &slab);
    return status == FLP_OK && run->call.plan->filter ? flp_backward_count_kept(run, size->columns) : status;
}

flp_status flp_backward_run_chunks(const flp_backward_execution *run)
{
    flp_tile_work before = flp_backward_hidden_work(run, run->chunks->saved_columns);
    flp_status status = run->chunks->in_forward  ? FLP_OK
                        : run->row_factor        ? run_all_saved_exp(run)
                        : run->call.plan->filter ? flp_backward_count_kept(run, 0)
                                                 : FLP_OK;

    for (int64_t first = run->chunks->saved_columns; status == FLP_OK && first < run->forward->vocab;) {
        const flp_vocab_slab size = flp_vocab_slab_at(run->problem, run->chunks, run->rows.rows, first);

        status = run_slab(run, first, &size, &before);
        first += size.columns;
    }
    return status;
}
