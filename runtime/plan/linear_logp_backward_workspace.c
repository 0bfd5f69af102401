/* How linear_logp's backward spends its memory budget. */
#include "plan/linear_logp_backward_workspace.h"

#include "cpu/convert.h"

enum {
    ROW_BYTES = 32, TARGET_BYTES = 8, TERM_BYTES = 16,
    ROW_BLOCK = 256,           /* the tallest cluster of row blocks */
    FILTER_BLOCK = 64,         /* KEEP IN STEP: templates/common/kept_blocks.cuh */
    ALIGNED_BYTES = 16,        /* of rows that the copy engine reads */
    BORROWED_ALIGNMENT = 256,
    WIDE_HIDDEN = 3072,
    LEAST_ROW_CHUNK = 512      /* below, reading the weight anew for each chunk of rows costs more than the stash saves */
};

/* How wide the chunks are, in columns. own: of one whose dlogit lies in the workspace; stash: of the first, where the forward leaves one; borrowed:
 * of one whose dlogit lies in grad_weight, where that is written later. */
typedef struct {
    int64_t stash, own, borrowed;
    int64_t borrowed_rows; /* chunks are as wide as `borrowed` as long as grad_weight has room for so many rows */
} widths;

/* The default, in tiles of two-byte elements. Long sums run near the speed of a whole product. 41 tiles make nearly whole waves of the 66 clusters of
 * an H100 or H200 for row counts that are powers of two, 33 and 66 whole ones; where hidden is wide the sums of grad_hidden need the room. At
 * N 4096, D 2048 all of the workspace stays below 128 MiB, at N 8192, D 4096 below 256 MiB. */
static const widths default_tiles = { 47, 41, 66, 0 }, default_tiles_wide = { 31, 28, 33, 0 };
enum { BORROWED_TILES = 66, DEFAULT_BORROWED_ROWS = 2 /* times D */ };

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
static int is_direct(const flp_linear_logp_backward_problem *normal, int stashes, int64_t stash_columns)
{
    return stashes && stash_columns >= all_columns(normal) && stash_columns >= normal->forward.hidden && compact_in_grad_hidden(normal);
}

/* grad_weight is nobody's but the backward's until it is written, vocabulary entry by vocabulary entry, where nothing in it or between its rows is
 * kept. */
static int can_borrow(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_weight != FLP_NONE && !(normal->accumulate & FLP_ACCUMULATE_WEIGHT) && normal->forward.weight_layout == FLP_VOCAB_HIDDEN &&
           normal->grad_weight_stride == normal->forward.hidden && normal->forward.pointer_alignment >= ALIGNED_BYTES;
}

/* Where dlogit of a borrowing chunk up to `end` begins in grad_weight. */
static int64_t borrowed_at(const flp_linear_logp_backward_problem *normal, int64_t end)
{
    return round_up(end * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), BORROWED_ALIGNMENT);
}

/* Room for dlogit of so many rows behind a borrowing chunk from `first` on. */
static int has_room(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows)
{
    const int64_t end = first + columns, all = normal->forward.vocab * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight);

    return end <= normal->forward.vocab && borrowed_at(normal, end) + rows * columns * element_bytes(normal) <= all;
}

flp_vocab_chunk flp_linear_logp_backward_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_linear_logp_backward_workspace *layout,
                                                     int64_t first)
{
    const int64_t left = normal->forward.vocab - first, wide = layout->borrowed_columns;

    if (wide > 0 && has_room(normal, first, wide, layout->borrowed_rows))
        return (flp_vocab_chunk){ wide, has_room(normal, first, wide, layout->chunk_rows) ? borrowed_at(normal, first + wide) : -1 };
    return (flp_vocab_chunk){ left < layout->columns ? left : layout->columns, -1 };
}

static int64_t larger(int64_t a, int64_t b)
{
    return a > b ? a : b;
}

/* The widest chunk whose dlogit or stash lies in the workspace. */
static int64_t widest(const flp_linear_logp_backward_workspace *workspace)
{
    const int64_t borrowed = workspace->chunk_rows > workspace->borrowed_rows ? workspace->borrowed_columns : 0;

    return larger(larger(workspace->columns, workspace->stash_columns), borrowed);
}

static void take_stash_arrays(int64_t rows, flp_linear_logp_backward_workspace *workspace)
{
    int64_t *const arrays[] = { &workspace->offset, &workspace->overflow, &workspace->block_overflow };

    for (size_t i = 0; i < sizeof(arrays) / sizeof(arrays[0]); i++)
        *arrays[i] = flp_workspace_take(&workspace->bytes, (rows + 1) * 4);
    workspace->row_factor = flp_workspace_take(&workspace->bytes, workspace->chunk_rows * (int64_t)sizeof(float));
}

static int has_gradients(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_hidden != FLP_NONE || normal->grad_weight != FLP_NONE || normal->grad_bias != FLP_NONE;
}

/* Rows wait in grad_hidden for their chunk only where nothing is put in its place there before the last chunk. */
static int keeps_compact(const flp_linear_logp_backward_problem *normal, int stashes, int64_t row_chunk, int64_t stash_columns)
{
    return !compact_in_grad_hidden(normal) || (row_chunk > 0 && !is_direct(normal, stashes, stash_columns));
}

/* row_chunk: 0: all rows at a time. */
static flp_linear_logp_backward_workspace lay_out(const flp_linear_logp_backward_problem *normal, int stashes, int64_t rows, int64_t row_chunk,
                                                  const widths *wide)
{
    const int64_t hidden = normal->forward.hidden, at_a_time = row_chunk > 0 && row_chunk < rows ? row_chunk : rows;
    const int64_t chunk_rows = has_gradients(normal) ? at_a_time : 0;
    const int direct = is_direct(normal, stashes, wide->stash);
    flp_linear_logp_backward_workspace workspace = { .chunk_rows = chunk_rows, .columns = wide->own, .stash_columns = stashes ? wide->stash : 0,
                                                     .borrowed_columns = wide->borrowed, .borrowed_rows = wide->borrowed_rows,
                                                     .compact = -1, .sums = -1 };
    const int64_t dlogits = chunk_rows * widest(&workspace), staged = direct ? rows * hidden : 0;
    int64_t *bytes = &workspace.bytes;

    workspace.gradient = flp_workspace_take(bytes, round_up(chunk_rows, ROW_BLOCK) * ROW_BYTES);
    workspace.row = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.place = flp_workspace_take(bytes, rows * (int64_t)sizeof(int32_t));
    workspace.targets = flp_workspace_take(bytes, chunk_rows * TARGET_BYTES);
    workspace.terms = normal->grad_weight != FLP_NONE ? flp_workspace_take(bytes, chunk_rows * TERM_BYTES) : -1;
    workspace.counts = flp_workspace_take(bytes, FLP_BACKWARD_COUNTS_BYTES);
    workspace.chunk_counts = flp_workspace_take(bytes, round_up(rows, ROW_BLOCK) / ROW_BLOCK * (int64_t)sizeof(int32_t)); /* for the lowest chunks */
    workspace.forward_stride = round_up(hidden, ALIGNED_BYTES / element_bytes(normal));
    workspace.compact_stride = normal->grad_hidden_stride;
    if (keeps_compact(normal, stashes, row_chunk, wide->stash)) {
        workspace.compact_stride = workspace.forward_stride;
        workspace.compact = flp_workspace_take(bytes, rows * workspace.compact_stride * element_bytes(normal));
    }
    if (stashes)
        take_stash_arrays(rows, &workspace);
    workspace.kept = -1;
    if (normal->grad_filter_eps > 0) {
        workspace.kept_words = (larger(wide->own, wide->borrowed) / FILTER_BLOCK + 31) / 32;
        workspace.kept = flp_workspace_take(bytes, round_up(rows, ROW_BLOCK) / FILTER_BLOCK * workspace.kept_words * (int64_t)sizeof(uint32_t));
    }
    workspace.dlogit = flp_workspace_take(bytes, larger(dlogits, staged) * element_bytes(normal));
    workspace.scratch = stashes ? *bytes : workspace.dlogit;
    if (normal->grad_hidden != FLP_NONE && !direct)
        workspace.sums = flp_workspace_take(bytes, chunk_rows * hidden * (int64_t)sizeof(float));
    return workspace;
}

/* All chunks alike, none borrowing. */
static widths even_widths(int64_t columns)
{
    return (widths){ columns, columns, 0, 0 };
}

static int64_t bytes_with(const flp_linear_logp_backward_problem *normal, int stashes, int64_t row_chunk, const widths *wide)
{
    return lay_out(normal, stashes, normal->forward.rows, row_chunk, wide).bytes;
}

int64_t flp_linear_logp_backward_least_budget(const flp_linear_logp_backward_problem *normal)
{
    const widths least = even_widths(FLP_BACKWARD_COLUMNS);

    return bytes_with(normal, 1, 0, &least);
}

static int64_t tiles_of(const flp_linear_logp_backward_problem *normal, int64_t tiles)
{
    const int64_t columns = tiles * 2 / element_bytes(normal) * FLP_BACKWARD_COLUMNS, all = all_columns(normal);

    return columns < all ? columns : all;
}

/* As wide for any number of rows, so that a row of grad_hidden has the same bits in every batch. */
static widths default_widths(const flp_linear_logp_backward_problem *normal)
{
    const widths *tiles = normal->forward.hidden < WIDE_HIDDEN ? &default_tiles : &default_tiles_wide;

    return (widths){ tiles_of(normal, tiles->stash), tiles_of(normal, tiles->own), tiles_of(normal, tiles->borrowed),
                     DEFAULT_BORROWED_ROWS * normal->forward.hidden };
}

static widths with_borrowing(const flp_linear_logp_backward_problem *normal, int stashes, widths wide)
{
    if (!can_borrow(normal) || !has_room(normal, stashes ? wide.stash : 0, wide.borrowed, wide.borrowed_rows))
        wide.borrowed = 0;
    return wide;
}

int64_t flp_linear_logp_backward_default_budget(const flp_linear_logp_backward_problem *normal)
{
    const widths wide = with_borrowing(normal, 1, default_widths(normal));

    return bytes_with(normal, 1, 0, &wide);
}

/* So that the last chunk is not a small one. */
static int64_t even_out(int64_t tiles, int64_t all)
{
    const int64_t chunks = (all + tiles - 1) / tiles;

    return all % tiles * 3 < tiles ? (all + chunks - 1) / chunks : tiles;
}

static widths widths_within_budget(const flp_linear_logp_backward_problem *normal, int stashes)
{
    const int64_t rows = normal->forward.rows, all = all_columns(normal) / FLP_BACKWARD_COLUMNS;
    const int64_t tile_bytes = rows * FLP_BACKWARD_COLUMNS * element_bytes(normal);
    const widths whole = even_widths(all_columns(normal)), nothing = even_widths(0);
    const int64_t borrowed = all / 2 < BORROWED_TILES ? all / 2 : BORROWED_TILES;
    int64_t fit;

    if (bytes_with(normal, stashes, 0, &whole) <= normal->memory_budget)
        return whole;
    fit = (normal->memory_budget - bytes_with(normal, stashes, 0, &nothing)) / tile_bytes;
    fit = (fit < 1 ? 1 : fit < all ? fit : all) * FLP_BACKWARD_COLUMNS;
    return (widths){ fit, fit, larger(fit, borrowed * FLP_BACKWARD_COLUMNS), rows };
}

/* With a stash, what is not in the first chunk is computed anew: there is nothing to even out. */
static widths choose_widths(const flp_linear_logp_backward_problem *normal, int stashes, int64_t row_chunk)
{
    const int limited = normal->memory_budget > 0 && normal->forward.rows > 0;
    widths wide;

    if (row_chunk > 0)
        return even_widths(all_columns(normal));
    wide = with_borrowing(normal, stashes, limited ? widths_within_budget(normal, stashes) : default_widths(normal));
    if (!stashes && wide.borrowed == 0)
        wide.own = even_out(wide.own / FLP_BACKWARD_COLUMNS, all_columns(normal) / FLP_BACKWARD_COLUMNS) * FLP_BACKWARD_COLUMNS;
    return wide;
}

flp_linear_logp_backward_workspace flp_linear_logp_backward_workspace_lay_out(const flp_linear_logp_backward_problem *normal, int stashes,
                                                                              int64_t row_chunk, int64_t rows)
{
    const widths wide = choose_widths(normal, stashes, row_chunk);

    return lay_out(normal, stashes, rows, row_chunk, &wide);
}

int flp_linear_logp_backward_is_direct(const flp_linear_logp_backward_problem *normal, int64_t row_chunk)
{
    return is_direct(normal, 1, choose_widths(normal, 1, row_chunk).stash);
}

static int row_chunk_fits(const flp_linear_logp_backward_problem *normal, int64_t row_chunk)
{
    const widths whole = even_widths(all_columns(normal));

    return bytes_with(normal, 1, row_chunk, &whole) <= normal->memory_budget;
}

/* A multiple of ROW_BLOCK; 0: not even the least. */
static int64_t most_rows(const flp_linear_logp_backward_problem *normal)
{
    int64_t low = LEAST_ROW_CHUNK / ROW_BLOCK, high = round_up(normal->forward.rows, ROW_BLOCK) / ROW_BLOCK;

    if (!row_chunk_fits(normal, LEAST_ROW_CHUNK))
        return 0;
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;

        if (row_chunk_fits(normal, middle * ROW_BLOCK))
            low = middle;
        else
            high = middle;
    }
    return low * ROW_BLOCK;
}

int64_t flp_linear_logp_backward_row_chunk(const flp_linear_logp_backward_problem *normal)
{
    const int adds_weight = normal->grad_weight == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_WEIGHT;
    const int adds_bias = normal->grad_bias == FLP_NONE || (normal->grad_bias == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_BIAS);
    const int64_t rows = adds_weight && adds_bias ? most_rows(normal) : 0;
    int64_t chunks;

    if (rows == 0)
        return 0;
    chunks = (normal->forward.rows + rows - 1) / rows;
    return chunks > 1 ? round_up((normal->forward.rows + chunks - 1) / chunks, ROW_BLOCK) : 0;
}
