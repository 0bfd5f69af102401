/* How linear_logp's backward and linear_cross_entropy spend their memory budget. */
#include "operators/linear/linear_budget.h"

#include <inttypes.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"

/* ---- the default's numbers: where none names another source, measured on an H200 (bench/results/NOTES.md). bench/row_chunks.py fits PART_COST, ROW_CHUNK_COST
 * and IDLE_COST to its results. ---- */

enum {
    WIDE_HIDDEN = 3072,        /* from this D on the narrower default_tiles_wide are taken */
    BORROWED_TILES = 66,       /* of a chunk whose dlogit is stored in grad_weight: a tile for each cluster of an H100 or H200 */
    DEFAULT_BORROWED_ROWS = 2, /* times D: for up to this many rows grad_weight has room for such a chunk */
    DEFAULT_LENT_ROWS = 1,     /* times D: up to this many rows nearly all exponentials are saved in grad_weight; with more, some are computed again */
    LEAST_LENT_HIDDEN = 256,   /* with a smaller D, grad_weight has room for hardly any block */
    LENT_STEP = 768,           /* columns: whole tiles of 128, 192 and 256 */
    MOST_LENT_COLUMNS = 22 * LENT_STEP,
    SPARE_HIDDEN = 896,                  /* with a smaller D, calls often have many times 2 D rows, of which grad_weight holds few exponentials: */
    SPARE_BLOCKS = 2,                    /* the workspace then has room for two blocks, */
    SPARE_LENT_COLUMNS = 11 * LENT_STEP, /* each of 66 tiles of 128 columns, one for each cluster of an H100 or H200 */
    WORTH_LENT_PARTS = 2,                /* exponentials in grad_weight are worth it if there are more than 3/2 as many as in the workspace, */
    WORTH_OWN_PARTS = 3,                 /* which are saved for any number of rows */
    BLOCK_COLUMNS = 512,                 /* a block of them costs launches: the time of so many columns of logits, at about N 8192, D 4096, */
    SHORT_HIDDEN = 2048,                 /* and of 4096 / D as many with a smaller D than this */
    LEAST_ROW_CHUNK = 512,               /* rows: with fewer, reading the weight once more for each chunk of rows costs more than the saved exponentials gain */
    WIDE_ROW_CHUNK = 768,                /* rows, with a large vocabulary */
    MOST_ROW_CHUNK = 16384,              /* rows: a chunk's cost is 1/150 of its product's time then */
    STRETCH = 7,                         /* a chunk may become 1/7 wider, so that no small one follows it: 28 tiles 32, 41 tiles 46 */
    HARDLY = 32,                         /* 1/32 more memory counts as hardly more, */
    SAMPLE_ROWS = 8192,                  /* at this number of rows */
    PRODUCT_TILE_ROWS = 128,             /* of grad_hidden's product */
    WIDE_TILE_COLUMNS = 256,             /* of the same; a narrow tile has half, */
    MIDDLE_TILE_COLUMNS = 192,           /* and one for few rows this many */
    NARROW_TILE_PERCENT = 98,            /* a narrow tile's speed, of a wide one's, */
    MIDDLE_TILE_PERCENT = 99,            /* and that of the one for few rows */
    LEAST_VOCAB_IN_PARTS = 49152,        /* with a smaller vocabulary, parts of grad_hidden's product cost many rows more than they gain few */
    LEAST_PART_COLUMNS = 13312,          /* of a part */
    PART_COST = 700,                     /* columns of the vocabulary: what a part's sums cost, which are mostly added beside the next tiles */
    ROW_CHUNK_COST = 110,                /* rows: what reading the weight once more and the launches of a chunk of rows cost */
    IDLE_COST = 770,                     /* thousandths of the time in which multiprocessors have no tile */
    FEWEST_IDLE_COST = 600,              /* the same, of 128 rows or fewer */
    FEW_ROWS = 256,                      /* whose tiles the parts of grad_hidden's product are to be enough for, too; */
    WEIGHT_OF_MANY = 6,                  /* chunks of rows count so much more than these do */
    MULTIPROCESSORS = 132,               /* of an H100 or H200, */
    CLUSTERS = 66,                       /* and clusters of two blocks, which are one tile's columns wide and */
    PRODUCT_CLUSTER_ROWS = 256,          /* so many rows high */
    MILLION = 1000000,
    FEW_TILES = 99,          /* with fewer narrow tiles than this, grad_hidden's product of the whole vocabulary leaves too much of the GPU idle; */
    FEW_TILES_OF_SAVED = 64, /* with fewer than this where it comes from saved exponentials, beside grad_weight's, */
    FEW_TILES_OF_PAIR = 32   /* and with fewer than this where the default saves fewer of them */
};

/* The default widths of chunks, in tiles of two-byte elements: of the saved exponentials, of a chunk whose dlogit is stored in the workspace, and of one whose
 * dlogit is stored in grad_weight. Products with sums of this length run at nearly the speed of one product of the whole vocabulary. With a number of rows that
 * is a power of two, 41 tiles make nearly whole waves of the 66 clusters of an H100 or H200, and 33 and 66 tiles make whole ones. Where hidden is wide, chunks
 * are narrower, to leave room for the sums of grad_hidden. At N 4096, D 2048 the whole workspace stays below 128 MiB; fusedlogp.h has its bounds. */
typedef struct {
    int64_t saved_exp, own, borrowed;
} tiles;
static const tiles default_tiles = { 47, 41, BORROWED_TILES }, default_tiles_wide = { 31, 28, BORROWED_TILES / 2 };

/* The default bytes of a chunk of rows, where grad_hidden is the only gradient: of its saved exponentials, of those of WIDE_ROW_CHUNK or fewer rows, of the
 * sums of the parts of its product, and of both together, which LEAST_ROW_CHUNK rows may exceed. 304 MiB are 1024 rows with 155,648 entries. */
static const int64_t row_chunk_bytes = INT64_C(304) << 20, most_saved_bytes = INT64_C(384) << 20, most_sums_bytes = INT64_C(96) << 20,
                     most_chunk_bytes = INT64_C(440) << 20;

/* The default slab_bytes: less than the L2 of an H100 or H200 holds, and little beside grad_weight. */
static const int64_t default_slab_bytes = INT64_C(32) << 20;

/* The default rest_bytes: one more block of D rows, of the widest that there are at D 4096. */
static const int64_t default_rest_bytes = INT64_C(56) << 20;

/* The most splits that any of the forward's kernels has: the table lists their tiles, as gen/select/linear_logp.lua does. linear_logp_backward's plan refuses a
 * kernel with more. KEEP IN STEP: tiles_of_steps (gen/emit.lua), by which none is a candidate of a tuning. */
int flp_linear_budget_most_splits(int64_t vocab)
{
    static const struct {
        int block_columns, n_split;
    } kernels[] = { { 256, 132 }, { 192, 132 }, { 168, 132 }, { 128, 132 }, { 128, 108 } };
    int most = 0;

    for (size_t i = 0; i < sizeof(kernels) / sizeof(*kernels); i++)
        most = (int)flp_int64_larger(most, flp_split_compute(vocab, kernels[i].block_columns, kernels[i].n_split).splits);
    return most;
}

flp_linear_work flp_linear_budget_backward_work(const flp_linear_logp_backward_problem *normal)
{
    return (flp_linear_work){
        .forward = &normal->forward,
        .splits = normal->with_forward ? flp_linear_budget_most_splits(normal->forward.vocab) : 0,
        .entropy = normal->g_entropy,
        .backward = normal,
        .chunks.saves_exp = normal->with_forward && !flp_vocab_chunks_no_saved_exp(normal),
    };
}

static int64_t bytes_of_rows(const flp_linear_work *work, const flp_backward_chunks *chunks, int64_t rows)
{
    flp_linear_work tried = *work;
    flp_workspace workspace;

    tried.chunks = *chunks;
    flp_linear_workspace_lay_out(&tried, rows, &workspace);
    return workspace.bytes;
}

int64_t flp_linear_budget_bytes(const flp_linear_work *work, const flp_backward_chunks *chunks)
{
    return bytes_of_rows(work, chunks, work->forward->rows);
}

static int fits(const flp_linear_work *work, const flp_backward_chunks *chunks)
{
    return flp_linear_budget_bytes(work, chunks) <= work->backward->memory_budget;
}

static int64_t all_tiles(const flp_linear_work *work)
{
    return flp_vocab_chunks_all_columns(work->backward) / FLP_BACKWARD_COLUMNS;
}

/* The width of chunks of at most `wide` tiles: a smaller one where the last chunk of the vocabulary's `all` tiles would be small. */
static int64_t even_out(int64_t wide, int64_t all)
{
    const int64_t chunks = flp_int64_divide_up(all, wide);

    return all % wide * 3 < wide ? flp_int64_divide_up(all, chunks) : wide;
}

/* Chunks of these widths, in tiles, after saved_exp columns of saved exponentials. borrowed_rows: that of the chunks. With saved exponentials, widths are not
 * evened out: all that is not in the first chunk is computed anew. */
static flp_backward_chunks chunks_behind(const flp_linear_work *work, int64_t saved_exp, tiles wide, int64_t borrowed_rows)
{
    const int saves_exp = work->chunks.saves_exp;
    const int64_t borrowed = wide.borrowed * FLP_BACKWARD_COLUMNS;
    const int borrows = borrowed > 0 && flp_vocab_chunks_can_borrow(work->backward, saved_exp, borrowed, borrowed_rows);
    const int64_t own = saves_exp || borrows ? wide.own : even_out(wide.own, all_tiles(work));

    return (flp_backward_chunks){
        .saves_exp = saves_exp,
        .direct = flp_vocab_chunks_are_direct(work->backward, saves_exp, saves_exp ? saved_exp : own * FLP_BACKWARD_COLUMNS),
        .columns = own * FLP_BACKWARD_COLUMNS,
        .saved_columns = saved_exp,
        .borrowed_columns = borrows ? borrowed : 0,
        .borrowed_rows = borrowed_rows,
    };
}

static flp_backward_chunks chunks_of(const flp_linear_work *work, tiles wide, int64_t borrowed_rows)
{
    return chunks_behind(work, work->chunks.saves_exp ? wide.saved_exp * FLP_BACKWARD_COLUMNS : 0, wide, borrowed_rows);
}

/* How much of an H100's or H200's multiprocessors the waves of a product in parts keep busy, of `rows` rows with the whole weight, in thousandths: also what a
 * tile has behind hidden's end counts as idle. KEEP IN STEP: time_in_parts (gen/select/linear_logp_backward.lua), the inverse, by which the tiles of up to
 * 1024 rows are chosen. */
static int64_t filled_waves(int64_t rows, int64_t hidden, int64_t tile_columns, int64_t parts)
{
    const int64_t tiles = parts * flp_int64_divide_up(rows, PRODUCT_CLUSTER_ROWS) * flp_int64_divide_up(hidden, tile_columns);

    return 1000 * parts * rows * hidden / (flp_int64_round_up(tiles, CLUSTERS) * PRODUCT_CLUSTER_ROWS * tile_columns);
}

static int64_t filled_wide(const flp_linear_work *work, int64_t rows, int64_t parts)
{
    return filled_waves(rows, work->forward->hidden, WIDE_TILE_COLUMNS, parts);
}

static int64_t filled_narrow(const flp_linear_work *work, int64_t rows, int64_t parts)
{
    return filled_waves(rows, work->forward->hidden, WIDE_TILE_COLUMNS / 2, parts) * NARROW_TILE_PERCENT / 100;
}

/* 1: narrow tiles fill so many more multiprocessors that they are faster, although they read more of both operands for each flop. No chunk that is taken has
 * more than MOST_ROW_CHUNK rows; with those that are tried for their bytes alone, filled_waves would overflow. */
static int are_narrow_tiles_faster(const flp_linear_work *work, int64_t row_chunk, int64_t parts)
{
    const int64_t rows = flp_int64_smaller(row_chunk, MOST_ROW_CHUNK);

    return filled_wide(work, rows, parts) < filled_narrow(work, rows, parts);
}

/* What idle multiprocessors cost a product in parts, in millionths of its time with full waves of wide tiles. Part of their time the kernels before and behind
 * use. */
static int64_t idle_cost(int64_t filled)
{
    return filled > 0 ? IDLE_COST * (1000 - filled) * 1000 / filled : IDLE_COST * MILLION;
}

/* What a step loses, in the same unit, where the rows are processed in chunks of so many, and grad_hidden's product in so many parts. */
static int64_t cost_of_row_chunk(const flp_linear_work *work, int64_t rows, int64_t parts)
{
    const int64_t sums = parts > 1 ? parts * PART_COST * MILLION / flp_int64_larger(work->forward->vocab, 1) : 0;

    return idle_cost(flp_int64_larger(filled_wide(work, rows, parts), filled_narrow(work, rows, parts))) + ROW_CHUNK_COST * MILLION / rows + sums;
}

/* The fastest chunk of at most so many rows. One of more than MOST_ROW_CHUNK would be hardly faster, in more memory. */
static int64_t fastest_row_chunk(const flp_linear_work *work, int64_t most, int64_t parts)
{
    int64_t best = LEAST_ROW_CHUNK;

    for (int64_t rows = best; rows <= flp_int64_smaller(most, MOST_ROW_CHUNK); rows += FLP_BACKWARD_ROW_BLOCK)
        if (cost_of_row_chunk(work, rows, parts) < cost_of_row_chunk(work, best, parts))
            best = rows;
    return best;
}

/* The bytes of a row's saved exponentials of the whole vocabulary. */
static int64_t saved_row_bytes(const flp_linear_work *work)
{
    return flp_vocab_chunks_all_columns(work->backward) * flp_dtype_bytes(work->forward->dtype);
}

static int64_t usual_row_chunk(const flp_linear_work *work, int64_t parts)
{
    const int64_t saved = saved_row_bytes(work), sums = parts > 1 ? parts * work->forward->hidden * (int64_t)sizeof(float) : 0;
    const int64_t most = flp_int64_larger(row_chunk_bytes / saved, flp_int64_smaller(WIDE_ROW_CHUNK, most_saved_bytes / saved));

    return fastest_row_chunk(work, flp_int64_smaller(most, flp_int64_smaller(most_chunk_bytes / (saved + sums), sums > 0 ? most_sums_bytes / sums : most)),
                             parts);
}

/* What 256 rows lose, which have tiles of a third width, too. */
static int64_t cost_of_few(const flp_linear_work *work, int64_t parts)
{
    const int64_t others = flp_int64_larger(filled_wide(work, FEW_ROWS, parts), filled_narrow(work, FEW_ROWS, parts));
    const int64_t middle = filled_waves(FEW_ROWS, work->forward->hidden, MIDDLE_TILE_COLUMNS, parts) * MIDDLE_TILE_PERCENT / 100;

    return idle_cost(flp_int64_larger(others, middle));
}

/* What 128 rows or fewer lose, which reading the weight bounds: they do where there are more tiles than multiprocessors, so that some compute twice as many as
 * others. KEEP IN STEP: tile_of_hidden_alone (gen/select/linear_logp_backward.lua), which chooses their tiles. */
static int64_t cost_of_fewest(const flp_linear_work *work, int64_t parts)
{
    const int64_t tiles = parts * flp_int64_divide_up(work->forward->hidden, WIDE_TILE_COLUMNS / 2), whole = flp_int64_round_up(tiles, MULTIPROCESSORS);

    return tiles > MULTIPROCESSORS ? FEWEST_IDLE_COST * (whole - tiles) * 1000 / tiles : 0;
}

/* What so many parts cost the usual chunks of rows, which count most, 256 rows, and 128 or fewer. */
static int64_t cost_of_parts(const flp_linear_work *work, int64_t parts)
{
    return WEIGHT_OF_MANY * cost_of_row_chunk(work, usual_row_chunk(work, parts), parts) + cost_of_few(work, parts) + cost_of_fewest(work, parts);
}

/* The number of parts of grad_hidden's product: at most so many that one row of wide tiles fills the multiprocessors. It does not depend on the number of
 * rows, because the parts decide bits. */
static int64_t choose_parts(const flp_linear_work *work)
{
    const int64_t row_of_tiles = flp_int64_divide_up(work->forward->hidden, WIDE_TILE_COLUMNS);
    const int64_t most = flp_int64_smaller(MULTIPROCESSORS / row_of_tiles, work->forward->vocab / LEAST_PART_COLUMNS);
    int64_t best = 1;

    if (!work->chunks.saves_exp || !flp_vocab_chunks_hidden_alone(work->backward) || work->forward->vocab < LEAST_VOCAB_IN_PARTS)
        return 1;
    for (int64_t parts = 2; parts <= most; parts++)
        if (cost_of_parts(work, parts) < cost_of_parts(work, best))
            best = parts;
    return best;
}

/* One chunk that is the whole vocabulary, with chunks of row_chunk rows (0: of all rows), and in so many parts. Without losses, the upstream gradients of a
 * chunk of rows are not known when the forward has processed it, so chunks of rows then mean in_forward. */
static flp_backward_chunks whole(const flp_linear_work *work, int64_t row_chunk, int64_t parts)
{
    const int64_t all = all_tiles(work);
    flp_backward_chunks chunks = chunks_of(work, (tiles){ all, all, 0 }, 0);

    chunks.row_chunk = row_chunk;
    chunks.in_forward = row_chunk > 0 && !work->losses;
    chunks.narrow = row_chunk > 0 && flp_vocab_chunks_hidden_alone(work->backward) && are_narrow_tiles_faster(work, row_chunk, parts);
    chunks.direct &= !chunks.in_forward;
    chunks.part_columns = parts > 1 ? flp_int64_round_up(flp_int64_divide_up(work->forward->vocab, parts), FLP_PART_STEP) : 0;
    return chunks;
}

/* The widths of chunks with `count` tiles in the workspace. */
static tiles limited_tiles(const flp_linear_work *work, int64_t count)
{
    return (tiles){ count, count, flp_int64_larger(count, flp_int64_smaller(all_tiles(work) / 2, BORROWED_TILES)) };
}

static flp_backward_chunks limited(const flp_linear_work *work, int64_t count)
{
    return chunks_of(work, limited_tiles(work, count), work->forward->rows);
}

/* How many of the multiprocessors the waves of grad_weight's product have a tile for, of so many vocabulary entries, in thousandths. */
static int64_t filled_by_weight(int64_t columns, int64_t hidden)
{
    const int64_t tiles = flp_int64_divide_up(columns, PRODUCT_TILE_ROWS) * flp_int64_divide_up(hidden, WIDE_TILE_COLUMNS);

    return 1000 * tiles / flp_int64_round_up(tiles, MULTIPROCESSORS);
}

/* What blocks of this width save, in columns whose logits need not be computed again. A block costs its launches, and waves of grad_weight's product that are
 * not full. rest: the number of the rest's blocks, whose launches cost as much. */
static int64_t worth_of_lent(int64_t columns, int64_t blocks, int64_t rest, int64_t hidden)
{
    const int64_t block_columns = hidden < SHORT_HIDDEN ? 2 * BLOCK_COLUMNS * SHORT_HIDDEN / hidden : BLOCK_COLUMNS;

    return blocks * (columns * filled_by_weight(columns, hidden) / 1000) - (blocks + rest) * block_columns;
}

/* Where saved exponentials are to be stored in grad_weight: in blocks of least_columns to most_columns columns, as many as have room at `rows` rows, and
 * besides them the rows times their factors, at scaled_rows rows. saves_rest: the rest of the vocabulary is to have such blocks, too. */
typedef struct {
    int64_t least_columns, most_columns, rows, scaled_rows;
    int saves_rest;
} lent_room;

/* The best width of such blocks, and in *blocks how many there are; 0: none. Only with losses: else the forward is a call of its own, which is not given
 * grad_weight. */
static int64_t choose_lent(const flp_linear_work *work, const lent_room *room, int64_t *blocks)
{
    int64_t best = 0, most_worth = INT64_MIN;

    *blocks = 0;
    for (int64_t columns = room->least_columns; work->chunks.saves_exp && work->losses && columns <= room->most_columns; columns += LENT_STEP) {
        const int64_t most = flp_vocab_chunks_most_lent(work->backward, columns, room->rows, room->scaled_rows);
        const int64_t rest = room->saves_rest ? flp_int64_divide_up(work->forward->vocab - most * columns, columns) : 0;
        const int64_t worth = worth_of_lent(columns, most, rest, work->forward->hidden);

        if (most < 1 || worth <= most_worth)
            continue;
        best = columns;
        most_worth = worth;
        *blocks = most;
    }
    return best;
}

/* Chunks with as many saved exponentials in grad_weight as it has room for. wide: the widths of the chunks after these. */
static flp_backward_chunks lend(const flp_linear_work *work, tiles wide, const lent_room *room)
{
    int64_t blocks;
    const int64_t columns = choose_lent(work, room, &blocks);
    flp_backward_chunks chunks = chunks_behind(work, blocks * columns, wide, room->rows);

    chunks.lent_columns = columns;
    chunks.direct = 0;
    return chunks;
}

/* The same chunks with saved exponentials of the rest of the vocabulary, too. `most`: as wide a chunk may be in the workspace. Where a block and the rows times
 * their factors take no more, the workspace has room for the latter. Whole blocks must fit the kernels' int. */
static flp_backward_chunks with_rest(const flp_linear_work *work, const flp_backward_chunks *lent, int64_t most)
{
    flp_backward_chunks chunks = *lent;

    if (chunks.lent_columns == 0 || chunks.saved_columns >= work->forward->vocab || work->forward->vocab > INT32_MAX - chunks.lent_columns)
        return chunks;
    chunks.saves_rest = 1;
    chunks.columns = chunks.lent_columns;
    chunks.rest_bytes = default_rest_bytes;
    chunks.rest_rows = flp_vocab_chunks_most_rest_rows(work->backward, &chunks);
    chunks.keeps_scaled = chunks.lent_columns + flp_vocab_chunks_row_stride(work->backward) <= most * FLP_BACKWARD_COLUMNS;
    return chunks;
}

static flp_backward_chunks lending(const flp_linear_work *work, int64_t count)
{
    const lent_room room = { .least_columns = LENT_STEP, .most_columns = MOST_LENT_COLUMNS, .rows = work->forward->rows };

    return lend(work, limited_tiles(work, count), &room);
}

int64_t flp_linear_budget_least(const flp_linear_work *work)
{
    const flp_backward_chunks all = whole(work, 0, 1), one = limited(work, 1);

    return flp_int64_smaller(flp_linear_budget_bytes(work, &all), flp_linear_budget_bytes(work, &one));
}

flp_status flp_linear_budget_check(const flp_linear_work *work)
{
    const int64_t budget = work->backward->memory_budget, least = budget == 0 ? 0 : flp_linear_budget_least(work);

    if (budget >= least)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "memory_budget: got %" PRId64 ", wanted 0 or at least %" PRId64 " bytes for %" PRId64 " rows", budget, least,
                           work->forward->rows);
}

/* The width, in tiles, of the chunks for the `left` tiles of the vocabulary: `wide`, but up to `most` where one or two chunks are then enough, as they often
 * are for a shard. Each further chunk costs a wave in each product that is not full, and one more read and write of all sums of grad_hidden. */
static int64_t stretch(int64_t wide, int64_t most, int64_t left)
{
    const int64_t chunks = flp_int64_divide_up(left, most);

    return chunks == 1 || chunks == 2 ? flp_int64_divide_up(left, chunks) : flp_int64_smaller(wide, left);
}

/* 1: one chunk of the whole vocabulary, with which grad_hidden needs no sums, takes hardly more memory than chunks of `most` tiles and the sums. This is
 * computed for SAMPLE_ROWS rows, so that it does not depend on the problem's rows. */
static int is_whole_hardly_larger(const flp_linear_work *work, int64_t most)
{
    const flp_backward_chunks all = whole(work, 0, choose_parts(work)), parts = chunks_of(work, (tiles){ most, most, 0 }, 0);
    const int64_t bytes = bytes_of_rows(work, &parts, SAMPLE_ROWS);

    return all.direct && bytes_of_rows(work, &all, SAMPLE_ROWS) <= bytes + bytes / HARDLY;
}

/* 1: calls of more than 2 D rows have spare blocks of saved exponentials in the workspace. */
static int has_spare(const flp_linear_work *work)
{
    return work->forward->hidden < SPARE_HIDDEN;
}

/* So many times D rows, and no more than a problem may have: bytes of more could not be counted. */
static int64_t times_hidden(const flp_linear_work *work, int64_t times)
{
    return flp_int64_smaller(times * work->forward->hidden, FLP_PROBLEM_ROWS_MAX);
}

/* The default room in grad_weight. own: the width of a chunk in the workspace, in tiles. */
static lent_room default_room(const flp_linear_work *work, int64_t own)
{
    const int64_t widest = flp_int64_smaller(own * FLP_BACKWARD_COLUMNS, MOST_LENT_COLUMNS);

    return (lent_room){
        .least_columns = has_spare(work) ? SPARE_LENT_COLUMNS : LENT_STEP,
        .most_columns = has_spare(work) ? SPARE_LENT_COLUMNS : widest,
        .rows = times_hidden(work, DEFAULT_LENT_ROWS),
        .scaled_rows = times_hidden(work, DEFAULT_BORROWED_ROWS),
        .saves_rest = 1,
    };
}

/* 1: exponentials in grad_weight are worth it. With spare blocks they are if these can be filled, so that calls of many rows have no fewer. */
static int is_worth_lending(const flp_linear_work *work, const flp_backward_chunks *lent, const flp_backward_chunks *own)
{
    if (has_spare(work))
        return lent->saved_columns >= SPARE_BLOCKS * SPARE_LENT_COLUMNS;
    return lent->saved_columns * WORTH_LENT_PARTS > own->saved_columns * WORTH_OWN_PARTS;
}

/* 1: blocks can be computed again for as many rows as the problem has: kernels count the rows of all of the vocabulary's blocks, one behind the other, in int. */
static int can_count_rows(const flp_linear_work *work, const flp_backward_chunks *lent)
{
    const int64_t blocks = flp_int64_divide_up(work->forward->vocab, flp_int64_larger(lent->lent_columns, 1));

    return flp_int64_round_up(work->forward->rows, FLP_BACKWARD_ROW_BLOCK) <= INT32_MAX / flp_int64_larger(blocks, 1);
}

/* The widths of the default chunks do not depend on the number of rows, so that a row of grad_hidden has the same bits in every batch; but for those rows that
 * are too many for blocks. */
static flp_backward_chunks default_widths(const flp_linear_work *work)
{
    const tiles *wide = work->forward->hidden < WIDE_HIDDEN ? &default_tiles : &default_tiles_wide;
    const int64_t bytes = flp_dtype_bytes(work->forward->dtype), all = all_tiles(work), own = wide->own * 2 / bytes, most = own + own / STRETCH;
    const int64_t saved_exp = stretch(wide->saved_exp * 2 / bytes, flp_int64_larger(most, wide->saved_exp * 2 / bytes), all);
    const int64_t left = work->chunks.saves_exp ? flp_int64_larger(all - saved_exp, 1) : all, borrowed = flp_int64_smaller(wide->borrowed * 2 / bytes, all);
    const lent_room room = default_room(work, own);
    flp_backward_chunks own_chunks, lent;

    if (is_whole_hardly_larger(work, most))
        return whole(work, 0, choose_parts(work));
    own_chunks = chunks_of(work, (tiles){ saved_exp, stretch(own, most, left), borrowed }, room.scaled_rows);
    if (work->forward->hidden < LEAST_LENT_HIDDEN)
        return own_chunks;
    lent = lend(work, (tiles){ 0, own, 0 }, &room);
    if (!is_worth_lending(work, &lent, &own_chunks) || !can_count_rows(work, &lent))
        return own_chunks;
    lent.spare_columns = has_spare(work) ? SPARE_BLOCKS * SPARE_LENT_COLUMNS : 0;
    return with_rest(work, &lent, most);
}

/* The default chunks. The filter counts its blocks chunk by chunk. */
static flp_backward_chunks by_default(const flp_linear_work *work)
{
    flp_backward_chunks chunks = default_widths(work);

    chunks.slab_bytes = work->backward->grad_filter_eps > 0 ? 0 : default_slab_bytes;
    return chunks;
}

/* The largest count below high whose chunks fit the budget; `low`, if none above it does. */
static int64_t most_that_fits(const flp_linear_work *work, flp_backward_chunks (*chunks_at)(const flp_linear_work *work, int64_t count), int64_t low,
                              int64_t high)
{
    while (low + 1 < high) {
        const int64_t middle = low + (high - low) / 2;
        const flp_backward_chunks tried = chunks_at(work, middle);

        if (fits(work, &tried))
            low = middle;
        else
            high = middle;
    }
    return low;
}

/* Chunks of which one is the whole vocabulary of all rows. Not with grad_bias, whose kernel comes between the two products. */
static int can_go_hidden_first(const flp_linear_work *work, const flp_backward_chunks *all)
{
    return all->saves_exp && all->direct && work->backward->grad_weight != FLP_NONE && work->backward->grad_bias == FLP_NONE;
}

/* The chunks `all`, with hidden_first where that is possible and the rows times their factors fit, too. */
static flp_backward_chunks with_hidden_first(const flp_linear_work *work, const flp_backward_chunks *all)
{
    flp_backward_chunks chunks = *all;

    chunks.hidden_first = can_go_hidden_first(work, all);
    return fits(work, &chunks) ? chunks : *all;
}

/* 1: grad_hidden's product has so few tiles for its sums over the whole vocabulary that the default's chunks, whose products run side by side, are faster.
 * usual: these chunks. With losses they are so only where they keep exponentials in grad_weight; behind another forward they compute most logits twice, which
 * only very few rows make up for. */
static int has_few_tiles(const flp_linear_work *work, const flp_backward_chunks *usual)
{
    const flp_linear_logp_backward_problem *normal = work->backward;
    const int64_t tiles = normal->forward.rows * normal->forward.hidden / (PRODUCT_TILE_ROWS * WIDE_TILE_COLUMNS / 2); /* parts of tiles are parts */

    if (normal->grad_hidden == FLP_NONE || normal->grad_weight == FLP_NONE)
        return 0;
    if (!work->chunks.saves_exp)
        return tiles < FEW_TILES;
    if (work->losses)
        return tiles < FEW_TILES_OF_SAVED && usual->lent_columns > 0;
    return tiles < FEW_TILES_OF_PAIR && !(normal->accumulate & FLP_ACCUMULATE_WEIGHT);
}

/* The widest chunks that fit; chunks of one tile do. With few tiles the default's, which take little memory: their products run side by side. */
static flp_backward_chunks within_budget(const flp_linear_work *work)
{
    const flp_backward_chunks lent = lending(work, 1), usual = by_default(work);
    const int64_t parts = choose_parts(work);
    const flp_backward_chunks least = whole(work, LEAST_ROW_CHUNK, parts);
    flp_backward_chunks all = whole(work, 0, parts), own;

    if (has_few_tiles(work, &usual) && fits(work, &usual))
        return usual;
    if (!fits(work, &all) && !fits(work, &least)) /* else chunks of rows come in parts, as fewer and more rows do */
        all = whole(work, 0, 1);
    if (fits(work, &all))
        return with_hidden_first(work, &all);
    own = limited(work, most_that_fits(work, limited, 1, all_tiles(work)));
    return lent.saved_columns > own.saved_columns && fits(work, &lent) ? lending(work, most_that_fits(work, lending, 1, all_tiles(work))) : own;
}

static flp_backward_chunks blocks_in_parts(const flp_linear_work *work, int64_t row_blocks)
{
    return whole(work, row_blocks * FLP_BACKWARD_ROW_BLOCK, choose_parts(work));
}

static flp_backward_chunks blocks_in_one_part(const flp_linear_work *work, int64_t row_blocks)
{
    return whole(work, row_blocks * FLP_BACKWARD_ROW_BLOCK, 1);
}

/* The most rows of a chunk that fit the budget, with the whole vocabulary saved: a multiple of FLP_BACKWARD_ROW_BLOCK. 0: not even LEAST_ROW_CHUNK fit. */
static int64_t most_rows(const flp_linear_work *work, int64_t parts)
{
    const int64_t all = flp_int64_divide_up(work->forward->rows, FLP_BACKWARD_ROW_BLOCK);
    const flp_backward_chunks least = whole(work, LEAST_ROW_CHUNK, parts);

    if (!fits(work, &least))
        return 0;
    return most_that_fits(work, parts > 1 ? blocks_in_parts : blocks_in_one_part, LEAST_ROW_CHUNK / FLP_BACKWARD_ROW_BLOCK, all) * FLP_BACKWARD_ROW_BLOCK;
}

/* How many rows at a time have room for saved exponentials of the whole vocabulary; 0: too few, or all. Only where grad_weight and grad_bias are not requested,
 * or are added to in fp32, so that each chunk of rows can add its part. */
static int64_t choose_row_chunk(const flp_linear_work *work, int64_t parts)
{
    const flp_linear_logp_backward_problem *normal = work->backward;
    const int is_known = work->losses || flp_vocab_chunks_hidden_alone(normal); /* 1: upstream gradients are known in time, or not needed in time */
    const int adds_weight = normal->grad_weight == FLP_NONE || (normal->grad_weight == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_WEIGHT);
    const int adds_bias = normal->grad_bias == FLP_NONE || (normal->grad_bias == FLP_F32 && normal->accumulate & FLP_ACCUMULATE_BIAS);
    const int64_t rows = is_known && adds_weight && adds_bias ? most_rows(work, parts) : 0;
    int64_t chunks;

    if (rows == 0)
        return 0;
    chunks = flp_int64_divide_up(normal->forward.rows, rows);
    if (chunks > 1 && flp_vocab_chunks_hidden_alone(normal))
        return fastest_row_chunk(work, rows, parts);
    return chunks > 1 ? flp_int64_round_up(flp_int64_divide_up(normal->forward.rows, chunks), FLP_BACKWARD_ROW_BLOCK) : 0;
}

/* The same without a budget, only where grad_hidden is the only gradient. It does not depend on the problem's rows. A row's bits do not depend on its chunk,
 * because no part of its sum does. */
static int64_t default_row_chunk(const flp_linear_work *work, int64_t parts)
{
    const int64_t rows = usual_row_chunk(work, parts);

    return flp_vocab_chunks_hidden_alone(work->backward) && rows * saved_row_bytes(work) <= most_saved_bytes ? rows : 0;
}

flp_backward_chunks flp_linear_budget_spend(const flp_linear_work *work)
{
    const int has_budget = work->backward->memory_budget > 0 && work->forward->rows > 0;
    const flp_backward_chunks chunks = has_budget ? within_budget(work) : by_default(work);
    int64_t parts = choose_parts(work), row_chunk;

    if (!chunks.saves_exp || chunks.saved_columns >= work->forward->vocab)
        return chunks;
    row_chunk = has_budget ? choose_row_chunk(work, parts) : default_row_chunk(work, parts);
    if (row_chunk == 0 && has_budget) { /* the sums of the parts may have no room */
        parts = 1;
        row_chunk = choose_row_chunk(work, parts);
    }
    return row_chunk > 0 ? whole(work, row_chunk, parts) : chunks;
}
