/* linear_logp's backward on a GPU path: saved exponentials that are stored in grad_weight until that is written, block by block. */
#include "operators/linear/linear_logp_backward_blocks.h"

#include <string.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "operators/linear/linear_logp_backward_slab.h"
#include "params/matrix_product.h"

/* Where a run of blocks of saved exponentials is stored. */
static char *place_run(const flp_backward_execution *run, const flp_vocab_run *blocks)
{
    return blocks->first >= 0 ? (char *)run->call.args->grad_weight + blocks->first : flp_backward_at(run, FLP_PART_DLOGIT);
}

/* Computes saved exponentials for which the forward had no room. The kernel places each block by its number in the vocabulary, so it gets the address at which
 * block 0 would be. */
static flp_status compute_again(const flp_backward_execution *run, const flp_vocab_run *blocks, int64_t block_rows, flp_linear_step step)
{
    flp_saved_exp saved_exp = flp_linear_logp_backward_saved_exp(&run->call);
    const flp_linear_logp_launch_more more = { .rows = &run->rows, .saved_exp = &saved_exp, .class_weights = run->more->class_weights };
    const int64_t columns = run->chunks->lent_columns, block_bytes = block_rows * columns * flp_dtype_bytes(run->forward->dtype);
    flp_linear_logp_args inputs = { .stream = run->call.args->stream };

    memcpy(&inputs, run->call.args, FLP_LINEAR_INPUT_BYTES);
    saved_exp.terms = (void *)((uintptr_t)place_run(run, blocks) - (uintptr_t)(blocks->begin * block_bytes));
    saved_exp.columns = blocks->end * columns;
    saved_exp.block_columns = columns;
    saved_exp.block_rows = block_rows;
    return flp_linear_logp_launch_blocks(run->more->forward, &inputs, &more, run->call.workspace, step, blocks->begin, blocks->end);
}

/* The execution with the rows times their factors: these are in place of the packed rows, or in a place of their own where the packed rows are needed, too. */
static flp_backward_execution with_scaled_rows(const flp_backward_execution *run, const flp_vocab_lending *lending)
{
    flp_backward_execution scaled = *run;

    if (lending->scaled == FLP_SCALED_IN_PLACE)
        return scaled;
    scaled.rows.stride = flp_vocab_chunks_row_stride(run->problem);
    scaled.rows.hidden = lending->scaled >= 0 ? (char *)run->call.args->grad_weight + lending->scaled : (char *)flp_backward_at(run, FLP_PART_SCALED_ROWS);
    return scaled;
}

/* A run of blocks, stored slab by slab. */
typedef struct {
    flp_vocab_run blocks;
    int64_t slab_blocks, slab_bytes, slab_rows;
    int has_rest;     /* 1: behind them all of the rest, side by side in the workspace; as long as grad_weight is not written, also behind them in the slabs */
    int64_t early;    /* the number of blocks of the rest behind them, one behind the other in the workspace, */
    int64_t distance; /* so many bytes from one to the next */
} slabs;

static int64_t own_slabs(const slabs *all)
{
    return flp_int64_divide_up(all->blocks.end - all->blocks.begin, all->slab_blocks);
}

static int64_t slab_count(const slabs *all)
{
    return own_slabs(all) + all->has_rest + all->early;
}

static flp_dlogit_chunk slab_in_workspace(const flp_backward_execution *run, int64_t first, int64_t columns, int64_t stride, int64_t offset)
{
    return (flp_dlogit_chunk){ .first = first,
                               .columns = flp_int64_smaller(columns, run->forward->vocab - first),
                               .dlogit = (char *)flp_backward_at(run, FLP_PART_DLOGIT) + offset,
                               .stride = stride,
                               .row_factor = run->row_factor };
}

static flp_dlogit_chunk slab_at(const flp_backward_execution *run, const slabs *all, int64_t number)
{
    const int64_t columns = run->chunks->lent_columns, begin = all->blocks.begin + number * all->slab_blocks, behind = number - own_slabs(all);
    flp_dlogit_chunk slab;

    if (behind >= 0 && all->has_rest)
        return slab_in_workspace(run, all->blocks.end * columns, run->forward->vocab, flp_vocab_chunks_rest_stride(run->problem, run->chunks), 0);
    if (behind >= 0)
        return slab_in_workspace(run, (all->blocks.end + behind) * columns, columns, columns, behind * all->distance);
    slab = slab_in_workspace(run, begin * columns, flp_int64_smaller(all->slab_blocks, all->blocks.end - begin) * columns, all->slab_blocks * columns, 0);
    slab.dlogit = place_run(run, &all->blocks) + number * all->slab_bytes;
    return slab;
}

/* The columns of a run's own blocks, and of all that lies in its slabs. */
static int64_t own_columns(const flp_backward_execution *run, const slabs *all)
{
    const int64_t columns = run->chunks->lent_columns;

    return flp_int64_smaller(all->blocks.end * columns, run->forward->vocab) - all->blocks.begin * columns;
}

static int64_t columns_in_slabs(const flp_backward_execution *run, const slabs *all)
{
    return all->has_rest ? run->forward->vocab - all->blocks.begin * run->chunks->lent_columns : own_columns(run, all);
}

/* So many columns from slab `number` on, as slabs that are multiplied at once. */
static flp_dlogit_chunk slabs_from(const flp_backward_execution *run, const slabs *all, int64_t number, int64_t columns)
{
    const int64_t slab_columns = all->slab_blocks * run->chunks->lent_columns;
    flp_dlogit_chunk some = slab_at(run, all, number);

    some.columns = columns;
    if (columns > slab_columns) {
        some.slab_columns = slab_columns;
        some.slab_rows = all->slab_rows;
    }
    return some;
}

/* All blocks of a run. */
static flp_vocab_slab whole_run(const flp_backward_execution *run, const slabs *all)
{
    const int64_t rest = all->has_rest ? flp_vocab_chunks_rest_blocks(run->problem, run->chunks) : all->early, columns = run->chunks->lent_columns;

    return (flp_vocab_slab){ .chunks = all->blocks.end - all->blocks.begin + rest, .last_columns = columns };
}

/* The products of a run of blocks, slab by slab. They begin beside the end of those of the previous slab of the run, and wait for these before they write:
 * grad_hidden's adds to the same sums as the previous block's. */
static flp_status run_slabs_in_turn(const flp_backward_execution *scaled, const slabs *all)
{
    flp_status status = FLP_OK;

    for (int64_t i = 0; status == FLP_OK && i < slab_count(all); i++) {
        const int follows = i > 0 && scaled->call.plan->hidden_product && !scaled->call.plan->bias;
        flp_dlogit_chunk slab = slab_at(scaled, all, i);

        slab.pdl_wait_in_epilogue = follows ? FLP_PDL_WAIT_BEFORE_STORE : FLP_PDL_WAIT_LAST;
        slab.weight_waits_to_store = follows;
        status = flp_backward_run_products(scaled, &slab);
    }
    return status;
}

/* All of grad_hidden's products of a run. Where one launch can add many blocks (flp_backward_adds_blocks), it takes all slabs, and reads the rest behind them.
 * Each further one, and otherwise each of all, begins on the clusters that those before it leave idle, and waits for these before it adds to the sums. */
static flp_status run_hidden_products(const flp_backward_execution *scaled, const slabs *all)
{
    const int64_t together = flp_backward_adds_blocks(scaled) ? own_slabs(all) + all->has_rest : 0; /* slabs that the first launch takes */
    flp_status status = FLP_OK;

    if (together > 0) {
        flp_dlogit_chunk slabs_of_run = slabs_from(scaled, all, 0, columns_in_slabs(scaled, all));

        slabs_of_run.pdl_wait_in_epilogue = FLP_PDL_WAIT_FIRST;
        status = flp_backward_run_hidden_product(scaled, &slabs_of_run);
    }
    for (int64_t i = together; status == FLP_OK && i < slab_count(all); i++) {
        flp_dlogit_chunk slab = slab_at(scaled, all, i);

        slab.pdl_wait_in_epilogue = i > 0 ? FLP_PDL_WAIT_BEFORE_STORE : FLP_PDL_WAIT_FIRST;
        status = flp_backward_run_hidden_products(scaled, &slab, 0, slab.columns);
    }
    return status;
}

/* The head start of grad_weight's first product over the last of grad_hidden's. */
static flp_head_start head_start_behind(const flp_backward_execution *scaled, const slabs *all, int64_t columns)
{
    const int64_t block = scaled->chunks->lent_columns;
    const flp_tile_work last = flp_backward_hidden_work(scaled, all->early > 0 ? block : columns_in_slabs(scaled, all));
    flp_vocab_slab whole = whole_run(scaled, all);

    whole.columns = columns;
    return flp_backward_adds_blocks(scaled) ? flp_backward_weight_head_start(scaled, &last, columns) : flp_backward_head_start_behind(scaled, block, &whole);
}

/* The number of own slabs from `number` on that one launch of grad_weight's product takes. */
static int64_t weight_slabs(const flp_backward_execution *run, const slabs *all, int64_t number)
{
    const int64_t most = own_slabs(all) - number, columns = all->slab_blocks * run->chunks->lent_columns;
    const int64_t first = all->blocks.begin * run->chunks->lent_columns + number * columns;

    if (most <= 1 || !run->call.plan->weight_product->manifest.takes_slabs)
        return 1;
    if (all->blocks.first < 0)
        return most;
    return flp_vocab_chunks_slabs_at_once(run->problem, first, columns, all->blocks.first + number * all->slab_bytes, most);
}

/* The same with all of grad_hidden's products first. The first of grad_weight's products overwrites nothing that is read; the others, which may overwrite slabs
 * that are read by all of grad_hidden's and by grad_weight's of the slabs before, wait before they write. */
static flp_status run_slabs_weight_second(const flp_backward_execution *scaled, const slabs *all)
{
    const int64_t columns = all->slab_blocks * scaled->chunks->lent_columns;
    flp_status status = run_hidden_products(scaled, all);

    for (int64_t i = 0, taken; status == FLP_OK && i < slab_count(all); i += taken) {
        flp_dlogit_chunk slab;

        taken = weight_slabs(scaled, all, i);
        slab = taken > 1 ? slabs_from(scaled, all, i, flp_int64_smaller(taken * columns, own_columns(scaled, all) - i * columns)) : slab_at(scaled, all, i);
        slab.weight_goes_second = i == 0;
        slab.weight_waits_to_store = !slab.weight_goes_second;
        slab.weight_head = slab.weight_goes_second ? head_start_behind(scaled, all, slab.columns) : (flp_head_start){ 0, 0 };
        status = flp_backward_run_weight_product(scaled, &slab);
    }
    return status;
}

static flp_status run_blocks(const flp_backward_execution *scaled, const slabs *some)
{
    const int weight_goes_second =
        flp_backward_weight_can_go_second(scaled) && !scaled->call.plan->bias && (flp_backward_adds_blocks(scaled) || flp_backward_run_at_once(scaled, 2));

    return weight_goes_second ? run_slabs_weight_second(scaled, some) : run_slabs_in_turn(scaled, some);
}

/* Moves the rest's saved exponentials from behind the other blocks in grad_weight to the workspace, a slab's part at a time. */
static flp_status move_rest(const flp_backward_execution *run, const flp_vocab_lending *lending)
{
    const int64_t columns = run->chunks->lent_columns, saved = run->chunks->saved_columns, bytes = flp_dtype_bytes(run->forward->dtype);
    const int64_t end = lending->blocks + lending->rest;
    flp_status status = FLP_OK;

    flp_workspace_begin_step(run->call.workspace, FLP_STEP_REST);
    for (int64_t block = lending->blocks, next; status == FLP_OK && block < end; block = next) {
        const int64_t slab = block / lending->slab_blocks, place = block % lending->slab_blocks;

        next = flp_int64_smaller((slab + 1) * lending->slab_blocks, end);
        const flp_packed_copy copy = {
            .from = (char *)run->call.args->grad_weight + lending->first + slab * lending->slab_bytes + place * columns * bytes,
            .from_stride = lending->slab_blocks * columns,
            .to = (char *)flp_backward_at(run, FLP_PART_DLOGIT) + (block * columns - saved) * bytes,
            .to_stride = flp_vocab_chunks_rest_stride(run->problem, run->chunks),
            .columns = flp_int64_smaller(next * columns, run->forward->vocab) - block * columns,
            .is_beside = flp_backward_may_run_beside_order(run),
        };

        status = flp_packed_rows_copy(&run->call, &run->rows, &copy);
    }
    return status;
}

/* 1: the rest is not moved, but some of it computed again right behind the forward, from the packed rows. */
static int computes_early(const flp_vocab_lending *lending)
{
    return lending->rest == 0 && lending->early > 0;
}

/* What of the rest is in the workspace right behind the forward. */
static flp_status fill_rest(const flp_backward_execution *run, const flp_vocab_lending *lending)
{
    const int64_t first = run->chunks->saved_columns / run->chunks->lent_columns;
    const flp_vocab_run early = { first, first + lending->early, -1 };

    if (run->rows.rows == 0)
        return FLP_OK;
    if (computes_early(lending))
        return compute_again(run, &early, lending->slab_rows, FLP_STEP_REST);
    return lending->rest > 0 ? move_rest(run, lending) : FLP_OK;
}

/* The blocks of the rest that were not in the workspace with the others: one by one. Computing a block takes the packed rows, and grad_weight's product takes
 * them times their factors, which are in place of the packed rows or in `scaled`. */
static flp_status compute_rest(const flp_backward_execution *run, const flp_backward_execution *scaled, const flp_vocab_lending *lending)
{
    const int64_t first = run->chunks->saved_columns / run->chunks->lent_columns, end = first + flp_vocab_chunks_rest_blocks(run->problem, run->chunks);
    int is_replaced = lending->scaled == FLP_SCALED_IN_PLACE; /* 1: the packed rows are not there */
    flp_status status = FLP_OK;

    for (int64_t block = first + lending->early; status == FLP_OK && block < end; block++) {
        const int in_place = flp_vocab_chunks_scales_in_place(run->problem, run->chunks, lending, block);
        const slabs one = { .blocks = { block, block + 1, -1 }, .slab_blocks = 1 };

        if (is_replaced)
            status = flp_backward_gather_rows(run, FLP_STEP_UNSCALE_FOR_REST, 0);
        if (status == FLP_OK)
            status = compute_again(run, &one.blocks, lending->slab_rows, FLP_STEP_SAVED_EXP_BLOCK);
        if (status == FLP_OK && in_place)
            status = flp_backward_scale_rows(run, FLP_STEP_SCALE_FOR_REST, 0, 0);
        if (status == FLP_OK)
            status = run_blocks(in_place ? run : scaled, &one);
        is_replaced = in_place;
    }
    return status;
}

/* What follows the blocks in grad_weight: blocks of the rest, or derivatives, for which the rows are packed again. */
static flp_status run_behind_lent(const flp_backward_execution *run, const flp_backward_execution *scaled, const flp_vocab_lending *lending)
{
    if (run->chunks->saves_rest)
        return lending->rest > 0 ? FLP_OK : compute_rest(run, scaled, lending);
    return run->rows.rows > 0 && lending->again == 0 && run->chunks->saved_columns < run->forward->vocab
               ? flp_backward_gather_rows(run, FLP_STEP_UNSCALE_BEHIND, 0)
               : FLP_OK;
}

flp_status flp_backward_run_lent(const flp_backward_execution *run)
{
    const int64_t columns = run->chunks->lent_columns, all = run->chunks->saved_columns / columns;
    const flp_vocab_lending lending = flp_vocab_chunks_lending(run->problem, run->chunks, run->rows.rows);
    const flp_backward_execution scaled = with_scaled_rows(run, &lending);
    slabs some = { .blocks = { 0, lending.again > 0 ? lending.blocks : all, lending.first },
                   .slab_blocks = lending.slab_blocks,
                   .slab_bytes = lending.slab_bytes,
                   .slab_rows = lending.slab_rows,
                   .has_rest = lending.rest > 0,
                   .early = lending.early,
                   .distance = lending.slab_rows * columns * flp_dtype_bytes(run->forward->dtype) };
    flp_status status = fill_rest(run, &lending);

    if (status == FLP_OK && run->rows.rows > 0)
        status = flp_backward_scale_rows(&scaled, FLP_STEP_SCALE_ROWS, 1, flp_backward_may_run_beside_order(run) && !computes_early(&lending));
    while (status == FLP_OK) {
        status = run_blocks(&scaled, &some);
        if (status != FLP_OK || some.blocks.end == all)
            break;
        some.blocks = flp_vocab_chunks_again(run->problem, run->chunks, &lending, run->rows.rows, some.blocks.end);
        status = compute_again(run, &some.blocks, lending.slab_rows, FLP_STEP_SAVED_EXP_BLOCK);
    }
    return status == FLP_OK ? run_behind_lent(run, &scaled, &lending) : status;
}
