/* linear_logp's backward on a GPU path: the chunks of the vocabulary, first to last. */
#include "base/int64.h"
#include "operators/linear/linear_logp_backward_blocks.h"
#include "operators/linear/linear_logp_backward_slab.h"
#include "params/matrix_product.h"

enum { NARROW = 2 /* a chunk with less than 1/2 of the columns of a slab's first one */ };

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
    status = flp_backward_scale_rows(&scaled, FLP_STEP_SCALE_ROWS, 0, flp_backward_may_run_beside_order(run));
    if (status == FLP_OK)
        status = flp_backward_run_hidden_product(run, part);
    return status == FLP_OK ? flp_backward_run_weight_products(&scaled, part) : status;
}

/* 1: behind the saved exponentials the rows are packed again, and grad_hidden's sums set to 0. A product in parts adds to no sums, and nothing follows it; but
 * a backward that takes what its forward left must clear the forward's mark. */
static int gathers_behind(const flp_backward_execution *run)
{
    return run->rows.rows > 0 && !flp_backward_is_direct(run) && (run->chunks->part_columns == 0 || run->takes);
}

/* When grad_hidden's product begins. In parts it follows the derivatives of rows, of which it reads nothing but, in a backward that takes what its forward left,
 * the number of rows. Otherwise a direct product that comes behind grad_weight's overwrites what that reads. */
static int hidden_wait(const flp_backward_execution *run, int hidden_first)
{
    if (run->chunks->part_columns > 0)
        return run->takes ? FLP_PDL_WAIT_FIRST : FLP_PDL_WAIT_LAST;
    return flp_backward_is_direct(run) && !hidden_first ? FLP_PDL_WAIT_BEFORE_STORE : FLP_PDL_WAIT_FIRST;
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
                                    .weight_goes_second = hidden_first,
                                    .weight_head = hidden_first ? flp_backward_weight_head_start(run, &hidden, columns) : (flp_head_start){ 0, 0 },
                                    .pdl_wait_in_epilogue = hidden_wait(run, hidden_first) };
    flp_status status;

    if (hidden_first)
        return run_hidden_before_weight(run, &part);
    status = run->rows.rows > 0 && run->call.plan->weight_product ? flp_backward_scale_rows(run, FLP_STEP_SCALE_ROWS, 0, flp_backward_may_run_beside_order(run))
                                                                  : FLP_OK;
    if (status == FLP_OK)
        status = flp_backward_run_weight_products(run, &part);
    if (status == FLP_OK && gathers_behind(run))
        status = flp_backward_gather_rows(run, FLP_STEP_UNSCALE_ROWS, 1);
    return status == FLP_OK ? flp_backward_run_hidden_product(run, &part) : status;
}

static flp_status run_all_saved_exp(const flp_backward_execution *run)
{
    return run->chunks->lent_columns > 0 ? flp_backward_run_lent(run) : run_saved_exp(run);
}

/* Where dlogit is stored: in grad_weight, after what this slab writes of it, or in the workspace. */
static char *place_dlogit(const flp_backward_execution *run, const flp_vocab_slab *size)
{
    return size->borrowed >= 0 ? (char *)run->call.args->grad_weight + size->borrowed : flp_backward_at(run, FLP_PART_DLOGIT);
}

/* The last slab, where an exchange of grad_hidden is to run beside its other launches. */
static flp_status finish_hidden_first(const flp_backward_execution *run, const flp_dlogit_chunk *slab)
{
    flp_status status = flp_backward_run_hidden_products(run, slab, 0, slab->columns);

    if (status == FLP_OK)
        status = flp_backward_finish_grad_hidden(run, FLP_STEP_FINISH, 0);
    if (status == FLP_OK)
        status = flp_backward_mark_grad_hidden(run->call.args);
    return status == FLP_OK ? flp_backward_run_weight_products(run, slab) : status;
}

/* 1: the product for grad_hidden of a slab's last chunk is to come after grad_weight's. Before it, it would hold its clusters idle for longer than it uses
 * them, and leave grad_weight's product few others. */
static int last_goes_behind(const flp_backward_execution *run, const flp_vocab_slab *size, int64_t widest)
{
    return size->last_columns * NARROW < widest && !flp_backward_run_at_once(run, size->chunks + 1);
}

/* Chooses the order of a slab's products. */
static void order_products(const flp_backward_execution *run, const flp_vocab_slab *size, flp_dlogit_chunk *slab)
{
    const int64_t widest = flp_backward_chunk_columns(run, slab->first);
    flp_vocab_slab before_weight = *size;

    if (slab->finishes_first || !flp_backward_weight_can_go_second(run))
        return;
    if (last_goes_behind(run, size, widest)) {
        slab->behind = size->last_columns;
        before_weight.chunks--;
        before_weight.last_columns = widest;
    }
    slab->weight_head = flp_backward_head_start_behind(run, widest, &before_weight);
    slab->weight_goes_second = slab->weight_head.workers > 0;
}

static flp_tile_work last_product(const flp_backward_execution *run, const flp_vocab_slab *size, const flp_dlogit_chunk *slab)
{
    flp_tile_work work = flp_backward_weight_work(run, size->columns);

    work.head_tiles = (int64_t)slab->weight_head.workers * slab->weight_head.tiles; /* all tiles, or more, where the idle clusters have time for all */
    return slab->weight_goes_second && slab->behind == 0 ? work : flp_backward_hidden_work(run, size->last_columns);
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
    slab.pdl_wait_in_epilogue = flp_backward_is_direct(run)                      ? FLP_PDL_WAIT_BEFORE_STORE
                                : slab.finishes_first || slab.weight_goes_second ? FLP_PDL_WAIT_FIRST
                                                                                 : FLP_PDL_WAIT_LAST;
    *before = last_product(run, size, &slab);
    status = run->rows.rows > 0 ? flp_backward_compute_dlogit(run, &slab) : FLP_OK;
    if (status == FLP_OK)
        status = slab.finishes_first ? finish_hidden_first(run, &slab) : flp_backward_run_products(run, &slab);
    return status == FLP_OK && run->call.plan->filter ? flp_backward_count_kept(run, size->columns) : status;
}

flp_status flp_backward_run_chunks(const flp_backward_execution *run)
{
    flp_tile_work before = flp_backward_hidden_work(run, run->chunks->saved_columns);
    flp_status status = run->chunks->in_forward  ? FLP_OK
                        : run->row_factor        ? run_all_saved_exp(run)
                        : run->call.plan->filter ? flp_backward_count_kept(run, 0)
                                                 : FLP_OK;

    if (status != FLP_OK || flp_vocab_chunks_all_saved(run->problem, run->chunks))
        return status;
    for (int64_t first = run->chunks->saved_columns; status == FLP_OK && first < run->forward->vocab;) {
        const flp_vocab_slab size = flp_vocab_slab_at(run->problem, run->chunks, run->rows.rows, first);

        status = run_slab(run, first, &size, &before);
        first += size.columns;
    }
    return status;
}
