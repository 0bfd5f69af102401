/* How linear_logp's backward spends its memory budget. */
#include "plan/linear_logp_backward_workspace.h"

#include "cpu/convert.h"

enum {
    ROW_BYTES = 32,
    ROW_BLOCK = 256,           /* the tallest cluster of row blocks */
    ALIGNED_BYTES = 16,        /* of rows that the copy engine reads */
    /* Of a row of dlogit: long sums run near the speed of a whole product. 41 tiles of columns make nearly whole waves of the 66 clusters of
     * an H100 or H200 for row counts that are powers of two; where hidden is wide the sums of grad_hidden need the room, and 28 tiles come
     * nearest: at N 8192, D 4096 all of the workspace stays below 256 MiB. */
    DEFAULT_COLUMN_BYTES = 41 * 512, WIDE_COLUMN_BYTES = 28 * 512, WIDE_HIDDEN = 3072
};

static int64_t round_up(int64_t count, int64_t to)
{
    return (count + to - 1) / to * to;
}

static int element_bytes(const flp_linear_logp_backward_problem *normal)
{
    return flp_dtype_bytes(normal->forward.dtype);
}

/* grad_hidden holds the rows that count until it is written itself: where it has their dtype and alignment, and nothing in it is kept. */
static int compact_in_grad_hidden(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_hidden == normal->forward.dtype && !(normal->accumulate & FLP_ACCUMULATE_HIDDEN) &&
           normal->forward.pointer_alignment >= ALIGNED_BYTES && normal->grad_hidden_stride * element_bytes(normal) % ALIGNED_BYTES == 0;
}

static flp_linear_logp_backward_workspace lay_out(const flp_linear_logp_backward_problem *normal, int64_t rows, int64_t columns)
{
    const int64_t hidden = normal->forward.hidden;
    flp_linear_logp_backward_workspace workspace = { .columns = columns, .compact = -1, .sums = -1 };
    int64_t *bytes = &workspace.bytes;

    workspace.gradient = flp_workspace_take(bytes, round_up(rows, ROW_BLOCK) * ROW_BYTES);
    workspace.row = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.place = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.counts = flp_workspace_take(bytes, FLP_BACKWARD_COUNTS_BYTES);
    workspace.compact_stride = normal->grad_hidden_stride;
    if (!compact_in_grad_hidden(normal)) {
        workspace.compact_stride = round_up(hidden, ALIGNED_BYTES / element_bytes(normal));
        workspace.compact = flp_workspace_take(bytes, rows * workspace.compact_stride * element_bytes(normal));
    }
    if (normal->grad_hidden != FLP_NONE)
        workspace.sums = flp_workspace_take(bytes, rows * hidden * (int64_t)sizeof(float));
    workspace.dlogit = flp_workspace_take(bytes, rows * columns * element_bytes(normal));
    return workspace;
}

static int64_t all_columns(const flp_linear_logp_backward_problem *normal)
{
    return round_up(normal->forward.vocab, FLP_BACKWARD_COLUMNS);
}

int64_t flp_linear_logp_backward_least_budget(const flp_linear_logp_backward_problem *normal)
{
    return lay_out(normal, normal->forward.rows, FLP_BACKWARD_COLUMNS).bytes;
}

static int64_t default_columns(const flp_linear_logp_backward_problem *normal)
{
    return (normal->forward.hidden < WIDE_HIDDEN ? DEFAULT_COLUMN_BYTES : WIDE_COLUMN_BYTES) / element_bytes(normal);
}

/* As many columns for any number of rows, so that a row of grad_hidden has the same bits in every batch. */
int64_t flp_linear_logp_backward_default_budget(const flp_linear_logp_backward_problem *normal)
{
    const int64_t columns = default_columns(normal), all = all_columns(normal);

    return lay_out(normal, normal->forward.rows, columns < all ? columns : all).bytes;
}

/* The widest chunk within the budget, evened out where the last one would be a small one. */
flp_linear_logp_backward_workspace flp_linear_logp_backward_workspace_lay_out(const flp_linear_logp_backward_problem *normal, int64_t rows)
{
    const int64_t all = all_columns(normal) / FLP_BACKWARD_COLUMNS;
    const int64_t tile_bytes = normal->forward.rows * FLP_BACKWARD_COLUMNS * element_bytes(normal);
    const int64_t budget = normal->memory_budget ? normal->memory_budget : flp_linear_logp_backward_default_budget(normal);
    const int64_t left = budget - lay_out(normal, normal->forward.rows, 0).bytes;
    int64_t fit = tile_bytes > 0 ? left / tile_bytes : default_columns(normal) / FLP_BACKWARD_COLUMNS;
    int64_t chunks;

    fit = fit < 1 ? 1 : fit < all ? fit : all;
    chunks = (all + fit - 1) / fit;
    if (all % fit * 3 < fit)
        fit = (all + chunks - 1) / chunks;
    return lay_out(normal, rows, fit * FLP_BACKWARD_COLUMNS);
}
