/* The products of a slab of neighbouring chunks. */
#include "operators/linear/linear_logp_backward_slab.h"

#include "base/dtype.h"
#include "base/int64.h"
#include "params/matrix_product.h"

enum { FULL = 10 /* several waves of tiles are full if they leave no more than 1/10 of the clusters idle */ };

flp_head_start flp_backward_weight_head_start(const flp_backward_execution *run, const flp_tile_work *hidden, int64_t columns)
{
    const flp_tile_work weight = flp_backward_weight_work(run, columns);

    return flp_tile_launch_head_start(&run->call.plan->common, hidden, &weight);
}

int64_t flp_backward_chunk_columns(const flp_backward_execution *run, int64_t first)
{
    const flp_backward_chunks *chunks = run->chunks;

    if (first < chunks->saved_columns || chunks->saves_rest)
        return flp_int64_smaller(chunks->lent_columns, run->forward->vocab - first);
    return flp_vocab_chunk_at(run->problem, chunks, run->rows.rows, first).columns;
}

flp_status flp_backward_run_hidden_products(const flp_backward_execution *run, const flp_dlogit_chunk *slab, int64_t begin, int64_t end)
{
    flp_dlogit_chunk part = *slab;
    flp_status status = FLP_OK;

    for (int64_t at = begin; status == FLP_OK && at < end; at += part.columns) {
        part.first = slab->first + at;
        part.columns = flp_backward_chunk_columns(run, part.first);
        part.dlogit = slab->dlogit + at * flp_dtype_bytes(run->forward->dtype);
        if (at > 0)
            part.pdl_wait_in_epilogue = FLP_PDL_WAIT_BEFORE_STORE;
        status = flp_backward_run_hidden_product(run, &part);
    }
    return status;
}

flp_status flp_backward_run_products(const flp_backward_execution *run, const flp_dlogit_chunk *part)
{
    const int64_t behind = part->weight_goes_second ? part->columns - part->behind : 0; /* from here on, grad_hidden's products come after grad_weight's */
    flp_status status = flp_backward_run_bias(run, part);

    if (status == FLP_OK)
        status = flp_backward_run_hidden_products(run, part, 0, behind);
    if (status == FLP_OK)
        status = flp_backward_run_weight_product(run, part);
    return status == FLP_OK ? flp_backward_run_hidden_products(run, part, behind, part->columns) : status;
}

int flp_backward_weight_can_go_second(const flp_backward_execution *run)
{
    const flp_linear_logp_backward_plan *plan = run->call.plan;

    return plan->hidden_product && plan->weight_product && !plan->filter && run->rows.rows > 0 && !flp_backward_is_direct(run);
}

/* The shape of grad_hidden's product. */
static flp_tile_shape hidden_shape(const flp_backward_execution *run)
{
    const flp_tile_launch launch = { .rows = run->rows.rows, .columns = run->forward->hidden };

    return flp_tile_launch_shape(&run->call.plan->common, FLP_ROLE_HIDDEN_PRODUCT, &launch);
}

int flp_backward_run_at_once(const flp_backward_execution *run, int64_t count)
{
    const flp_tile_shape shape = hidden_shape(run);

    return count * shape.tiles <= shape.clusters;
}

int flp_backward_adds_blocks(const flp_backward_execution *run)
{
    const flp_kernel *product = run->call.plan->hidden_product;
    flp_tile_shape shape;
    int64_t waves;

    if (!product || !product->manifest.takes_slabs || flp_backward_run_at_once(run, 2))
        return 0;
    shape = hidden_shape(run);
    waves = flp_int64_divide_up(shape.tiles, shape.clusters);
    return waves == 1 || shape.tiles * FULL >= waves * shape.clusters * (FULL - 1);
}

flp_head_start flp_backward_head_start_behind(const flp_backward_execution *run, int64_t widest, const flp_vocab_slab *size)
{
    const int are_beside = size->chunks > 1 && flp_backward_run_at_once(run, 2);
    flp_tile_work hidden = flp_backward_hidden_work(run, are_beside ? widest : size->last_columns);

    hidden.rows *= are_beside ? size->chunks : 1;
    return flp_backward_weight_head_start(run, &hidden, size->columns);
}
