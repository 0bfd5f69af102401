/* How linear_logp's backward spends its memory budget. */
#include "plan/linear_logp_backward_workspace.h"

#include "cpu/convert.h"

enum {
    ROW_BYTES = 32,
    ROW_BLOCK = 256,           /* the tallest cluster of row blocks */
    FILTER_BLOCK = 64,         /* KEEP IN STEP: templates/common/kept_blocks.cuh */
    ALIGNED_BYTES = 16,        /* of rows that the copy engine reads */
    /* Of a row of dlogit: long sums run near the speed of a whole product. 41 tiles of columns make nearly whole waves of the 66 clusters of
     * an H100 or H200 for row counts that are powers of two; where hidden is wide the sums of grad_hidden need the room, and 28 tiles come
     * nearest: at N 8192, D 4096 all of the workspace stays below 256 MiB. */
    LEAST_ROW_CHUNK = 512,     /* below, reading the weight anew for each chunk of rows costs more than the stash saves */
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

static int64_t all_columns(const flp_linear_logp_backward_problem *normal)
{
    return round_up(normal->forward.vocab, FLP_BACKWARD_COLUMNS);
}

/* One product of a stash of the whole vocabulary, whose room then takes the rows while they are put in their places. */
static int is_direct(const flp_linear_logp_backward_problem *normal, int stashes, int64_t columns)
{
    return stashes && columns >= all_columns(normal) && columns >= normal->forward.hidden && compact_in_grad_hidden(normal);
}

static void take_stash_arrays(int64_t rows, flp_linear_logp_backward_workspace *workspace)
{
    int64_t *const arrays[] = { &workspace->offset, &workspace->target_logit, &workspace->row_factor, &workspace->overflow,
                                &workspace->block_overflow };

    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        *arrays[i] = flp_workspace_take(&workspace->bytes, (rows + 1) * 4);
}

static flp_linear_logp_backward_workspace lay_out(const flp_linear_logp_backward_problem *normal, int stashes, int64_t rows, int64_t columns)
{
    const int64_t hidden = normal->forward.hidden;
    flp_linear_logp_backward_workspace workspace = { .columns = columns, .stash_columns = stashes ? columns : 0, .compact = -1, .sums = -1 };
    int64_t *bytes = &workspace.bytes;

    workspace.gradient = flp_workspace_take(bytes, round_up(rows, ROW_BLOCK) * ROW_BYTES);
    workspace.row = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.place = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.counts = flp_workspace_take(bytes, FLP_BACKWARD_COUNTS_BYTES);
    workspace.forward_stride = round_up(hidden, ALIGNED_BYTES / element_bytes(normal));
    workspace.compact_stride = normal->grad_hidden_stride;
    if (!compact_in_grad_hidden(normal)) {
        workspace.compact_stride = workspace.forward_stride;
        workspace.compact = flp_workspace_take(bytes, rows * workspace.compact_stride * element_bytes(normal));
    }
    if (stashes)
        take_stash_arrays(rows, &workspace);
    workspace.kept = -1;
    if (normal->grad_filter_eps > 0) {
        workspace.kept_words = (columns / FILTER_BLOCK + 31) / 32;
        workspace.kept = flp_workspace_take(bytes, round_up(rows, ROW_BLOCK) / FILTER_BLOCK * workspace.kept_words * (int64_t)sizeof(uint32_t));
    }
    workspace.dlogit = flp_workspace_take(bytes, rows * columns * element_bytes(normal));
    workspace.scratch = stashes ? *bytes : workspace.dlogit;
    if (normal->grad_hidden != FLP_NONE && !is_direct(normal, stashes, columns))
        workspace.sums = flp_workspace_take(bytes, rows * hidden * (int64_t)sizeof(float));
    return workspace;
}

int64_t flp_linear_logp_backward_least_budget(const flp_linear_logp_backward_problem *normal)
{
    return lay_out(normal, 1, normal->forward.rows, FLP_BACKWARD_COLUMNS).bytes;
}

static int64_t default_columns(const flp_linear_logp_backward_problem *normal)
{
    const int64_t bytes = normal->forward.hidden < WIDE_HIDDEN ? DEFAULT_COLUMN_BYTES : WIDE_COLUMN_BYTES, all = all_columns(normal);
    const int64_t columns = bytes / element_bytes(normal);

    return columns < all ? columns : all;
}

/* As many columns for any number of rows, so that a row of grad_hidden has the same bits in every batch. */
int64_t flp_linear_logp_backward_default_budget(const flp_linear_logp_backward_problem *normal)
{
    return lay_out(normal, 1, normal->forward.rows, default_columns(normal)).bytes;
}

/* The widest chunk within the budget, evened out where the last one would be a small one; but with a stash what is not in the first is
 * computed anew. */
static int64_t choose_columns(const flp_linear_logp_backward_problem *normal, int stashes)
{
    const int64_t rows = normal->forward.rows, all = all_columns(normal) / FLP_BACKWARD_COLUMNS;
    const int64_t tile_bytes = rows * FLP_BACKWARD_COLUMNS * element_bytes(normal);
    int64_t fit = default_columns(normal) / FLP_BACKWARD_COLUMNS, chunks;

    if (normal->memory_budget > 0 && tile_bytes > 0) {
        if (lay_out(normal, stashes, rows, all_columns(normal)).bytes <= normal->memory_budget)
            return all_columns(normal);
        fit = (normal->memory_budget - lay_out(normal, stashes, rows, 0).bytes) / tile_bytes;
    }
    fit = fit < 1 ? 1 : fit < all ? fit : all;
    chunks = (all + fit - 1) / fit;
    if (!stashes && all % fit * 3 < fit)
        fit = (all + chunks - 1) / chunks;
    return fit * FLP_BACKWARD_COLUMNS;
}

flp_linear_logp_backward_workspace flp_linear_logp_backward_workspace_lay_out(const flp_linear_logp_backward_problem *normal, int stashes,
                                                                              int64_t rows)
{
    return lay_out(normal, stashes, rows, choose_columns(normal, stashes));
}

int flp_linear_logp_backward_is_direct(const flp_linear_logp_backward_problem *normal)
{
    return is_direct(normal, 1, choose_columns(normal, 1));
}

int64_t flp_linear_logp_backward_row_chunk(const flp_linear_logp_backward_problem *normal)
{
    const int adds_weight = normal->grad_weight == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_WEIGHT;
    const int adds_bias = normal->grad_bias == FLP_NONE || (normal->grad_bias == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_BIAS);
    int64_t rows = normal->memory_budget / lay_out(normal, 1, ROW_BLOCK, all_columns(normal)).bytes * ROW_BLOCK, chunks;

    if (!adds_weight || !adds_bias || rows < LEAST_ROW_CHUNK)
        return 0;
    chunks = (normal->forward.rows + rows - 1) / rows;
    return chunks > 1 ? round_up((normal->forward.rows + chunks - 1) / chunks, ROW_BLOCK) : 0;
}
