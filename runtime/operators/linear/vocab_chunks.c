/* The chunks of the vocabulary: where each ends and where its derivatives lie. */
#include "operators/linear/vocab_chunks.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/operator.h"
#include "params/linear_logp.h"

enum {
    ALIGNED_BYTES = 16, /* of rows that TMA reads */
    BORROWED_ALIGNMENT = 256
};

/* An empty shard counts as one tile, in which nothing is ever stored. */
int64_t flp_vocab_chunks_all_columns(const flp_linear_logp_backward_problem *normal)
{
    return flp_int64_round_up(flp_int64_larger(normal->forward.vocab, 1), FLP_BACKWARD_COLUMNS);
}

/* 1: grad_hidden can hold the packed rows until it is written itself: it has their dtype and alignment, and nothing that it held before the call is kept. */
static int packed_in_grad_hidden(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_hidden == normal->forward.dtype && !(normal->accumulate & FLP_ACCUMULATE_HIDDEN) &&
           normal->forward.pointer_alignment >= ALIGNED_BYTES && normal->grad_hidden_stride * flp_dtype_bytes(normal->forward.dtype) % ALIGNED_BYTES == 0;
}

/* The chunk is at least as wide as a row of hidden, because dlogit's memory takes grad_hidden on the way to the rows' places. With the filter there is no
 * single product: the blocks that it skips differ from row to row. */
int flp_vocab_chunks_are_direct(const flp_linear_logp_backward_problem *normal, int saves_exp, int64_t columns)
{
    return columns >= flp_vocab_chunks_all_columns(normal) && columns >= normal->forward.hidden && packed_in_grad_hidden(normal) &&
           (saves_exp || normal->grad_filter_eps == 0);
}

/* Packed rows can wait in grad_hidden for their chunk only where no result is written to grad_hidden before the last chunk of rows. */
int flp_vocab_chunks_keep_packed(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return !packed_in_grad_hidden(normal) || (chunks->row_chunk > 0 && !chunks->direct) || chunks->in_forward;
}

/* Not where grad_hidden overwrites rows that grad_weight's product reads, nor with the filter, which counts its blocks after both products. */
int flp_vocab_chunks_finish_first(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return normal->grad_hidden != FLP_NONE && (normal->grad_weight != FLP_NONE || normal->grad_bias != FLP_NONE) && !chunks->saves_exp &&
           normal->grad_filter_eps == 0 && flp_vocab_chunks_keep_packed(normal, chunks);
}

/* The byte offset in grad_weight of the dlogit of a borrowing chunk that ends at vocabulary entry `end`. */
static int64_t borrowed_at(const flp_linear_logp_backward_problem *normal, int64_t end)
{
    return flp_int64_round_up(end * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), BORROWED_ALIGNMENT);
}

/* 1: after the part of a borrowing chunk from vocabulary entry `first` on, grad_weight has room for dlogit of `rows` rows. */
static int has_room(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows)
{
    const int64_t end = first + columns, all = normal->forward.vocab * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight);

    if (end > normal->forward.vocab || borrowed_at(normal, end) > all)
        return 0;
    return rows * columns * flp_dtype_bytes(normal->forward.dtype) <= all - borrowed_at(normal, end);
}

/* 1: the backward may use grad_weight as scratch until it is written, vocabulary entry by vocabulary entry: nothing in it or between its rows is kept. */
static int is_free(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_weight != FLP_NONE && !(normal->accumulate & FLP_ACCUMULATE_WEIGHT) && normal->forward.weight_layout == FLP_VOCAB_HIDDEN &&
           normal->grad_weight_stride == normal->forward.hidden && normal->forward.pointer_alignment >= ALIGNED_BYTES;
}

int flp_vocab_chunks_can_borrow(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows)
{
    return is_free(normal) && has_room(normal, first, columns, rows);
}

static int64_t lent_rows(int64_t rows)
{
    return flp_int64_round_up(rows, FLP_BACKWARD_ROW_BLOCK);
}

static int64_t lent_bytes(const flp_linear_logp_backward_problem *normal, int64_t columns, int64_t rows)
{
    return lent_rows(rows) * columns * flp_dtype_bytes(normal->forward.dtype);
}

/* The bytes of a contiguous [V, D] grad_weight's first `columns` vocabulary entries. */
static int64_t written_bytes(const flp_linear_logp_backward_problem *normal, int64_t columns)
{
    return columns * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight);
}

/* The bytes of grad_weight up to the last address at which a block may end. */
static int64_t lending_bytes(const flp_linear_logp_backward_problem *normal)
{
    return written_bytes(normal, normal->forward.vocab) / BORROWED_ALIGNMENT * BORROWED_ALIGNMENT;
}

/* The number of blocks that fit into the first `room` bytes of grad_weight. They lie at the end of the room, one after the other. While a block is read, its
 * own entries of grad_weight are written, and those of the blocks before it have been written: together they must end before the block begins. At the first
 * block, all other blocks are still unread; at the last block, the entries of all blocks are written. If both of these fit, so do those between. The kernels
 * count in int. */
static int64_t most_within(const flp_linear_logp_backward_problem *normal, int64_t columns, int64_t rows, int64_t room)
{
    const int64_t written = written_bytes(normal, columns), block = lent_bytes(normal, columns, rows);
    int64_t blocks;

    if (rows < 1 || room < written + block)
        return 0;
    blocks = flp_int64_smaller((room - written) / block, (room - block) / written);
    blocks = flp_int64_smaller(blocks, normal->forward.vocab / columns);
    return flp_int64_smaller(blocks, INT32_MAX / lent_rows(rows) - 1);
}

int64_t flp_vocab_chunks_row_stride(const flp_linear_logp_backward_problem *normal)
{
    return flp_int64_round_up(normal->forward.hidden, ALIGNED_BYTES / flp_dtype_bytes(normal->forward.dtype));
}

static int64_t scaled_bytes(const flp_linear_logp_backward_problem *normal, int64_t rows)
{
    return flp_int64_round_up(rows * flp_vocab_chunks_row_stride(normal) * flp_dtype_bytes(normal->forward.dtype), BORROWED_ALIGNMENT);
}

int64_t flp_vocab_chunks_most_lent(const flp_linear_logp_backward_problem *normal, int64_t columns, int64_t rows, int64_t scaled_rows)
{
    const int64_t room = lending_bytes(normal), left = room - scaled_bytes(normal, scaled_rows);

    if (!is_free(normal) || left < 0)
        return 0;
    return flp_int64_smaller(most_within(normal, columns, rows, room), left / written_bytes(normal, columns));
}

/* The byte offset in grad_weight of the rows times their factors: at its end, where nothing is written before all blocks and the `early` ones of the rest have
 * been processed. Whoever processes further blocks of the rest asks flp_vocab_chunks_scales_in_place. FLP_SCALED_IN_WORKSPACE: they do not fit. */
static int64_t scaled_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t early)
{
    const int64_t at = lending_bytes(normal) - scaled_bytes(normal, rows);
    const int64_t end = flp_int64_smaller(chunks->saved_columns + early * chunks->lent_columns, normal->forward.vocab);

    return at >= written_bytes(normal, end) ? at : FLP_SCALED_IN_WORKSPACE;
}

int64_t flp_vocab_chunks_rest_blocks(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return chunks->saves_rest ? flp_int64_divide_up(normal->forward.vocab - chunks->saved_columns, chunks->lent_columns) : 0;
}

int64_t flp_vocab_chunks_rest_stride(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return chunks->saves_rest ? flp_int64_round_up(normal->forward.vocab - chunks->saved_columns, FLP_BACKWARD_COLUMNS) : 0;
}

/* 1: a call of so many rows has room in the workspace for `blocks` blocks of the rest. */
static int has_room_for_rest(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t blocks, int64_t rows)
{
    return rows <= chunks->borrowed_rows && (blocks - 1) * lent_bytes(normal, chunks->lent_columns, rows) <= chunks->rest_bytes;
}

/* The bytes of as many blocks of the rest as the workspace has room for, with so many rows or fewer: of one, of two, ... */
static int64_t early_bytes(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows)
{
    const int64_t row_bytes = chunks->lent_columns * flp_dtype_bytes(normal->forward.dtype), rest = flp_vocab_chunks_rest_blocks(normal, chunks);
    int64_t most = 0;

    for (int64_t blocks = 1; blocks <= rest; blocks++) {
        const int64_t most_rows = blocks > 1 ? chunks->rest_bytes / ((blocks - 1) * row_bytes) / FLP_BACKWARD_ROW_BLOCK * FLP_BACKWARD_ROW_BLOCK : rows;

        most = flp_int64_larger(
            most, blocks * lent_bytes(normal, chunks->lent_columns, flp_int64_smaller(rows, flp_int64_smaller(most_rows, chunks->borrowed_rows))));
    }
    return most;
}

int64_t flp_vocab_chunks_rest_bytes(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows)
{
    const int64_t moved = flp_int64_smaller(rows, chunks->rest_rows) * flp_vocab_chunks_rest_stride(normal, chunks) * flp_dtype_bytes(normal->forward.dtype);

    return rows > chunks->rest_rows ? flp_int64_larger(moved, early_bytes(normal, chunks, rows)) : moved;
}

int64_t flp_vocab_chunks_most_rest_rows(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    const int64_t rest = flp_vocab_chunks_rest_blocks(normal, chunks), all = chunks->saved_columns / chunks->lent_columns + rest;
    const int64_t bytes = flp_dtype_bytes(normal->forward.dtype), row_bytes = chunks->lent_columns * bytes, room = lending_bytes(normal);
    const int64_t wider = flp_int64_larger(flp_vocab_chunks_rest_stride(normal, chunks) - chunks->lent_columns, 1);
    const int64_t at_first_block = (room - written_bytes(normal, chunks->lent_columns)) / (all * row_bytes);
    const int64_t at_last_block = (room - written_bytes(normal, chunks->saved_columns)) / ((rest + 1) * row_bytes);
    const int64_t rows = flp_int64_smaller(chunks->rest_bytes / (wider * bytes), flp_int64_smaller(at_first_block, at_last_block));

    return flp_int64_smaller(rows, INT32_MAX / all) / FLP_BACKWARD_ROW_BLOCK * FLP_BACKWARD_ROW_BLOCK;
}

/* The number of blocks that fit into dlogit's memory in the workspace. */
static int64_t most_in_workspace(const flp_backward_chunks *chunks, int64_t rows)
{
    return flp_vocab_chunks_widest(chunks, rows) / chunks->lent_columns;
}

/* 1: `slabs` slabs of saved exponentials, which follow one another to the end of grad_weight, are not overwritten before they have been read: while a slab is
 * read, its own entries of grad_weight and those of the slabs before it are written. This is so for all slabs of the first saved_columns columns if it is for
 * the first and the last two, of which the last may be narrower. What lies behind these columns is moved before anything is written. */
static int slabs_fit(const flp_linear_logp_backward_problem *normal, int64_t saved_columns, int64_t slabs, int64_t slab_columns, int64_t slab_bytes)
{
    const int64_t room = lending_bytes(normal), last = flp_int64_divide_up(saved_columns, slab_columns), before_last = flp_int64_larger(last - 1, 1);

    return written_bytes(normal, flp_int64_smaller(slab_columns, saved_columns)) + slabs * slab_bytes <= room &&
           written_bytes(normal, saved_columns) + (slabs + 1 - last) * slab_bytes <= room &&
           written_bytes(normal, flp_int64_smaller(before_last * slab_columns, saved_columns)) + (slabs + 1 - before_last) * slab_bytes <= room;
}

/* 1: a kernel's multiplication by a rounded reciprocal (params/linear_logp.h) divides each column by slab_columns exactly. */
static int divides_exactly(int64_t saved_columns, int64_t slab_columns)
{
    return saved_columns / FLP_SAVED_BLOCK_UNIT <= UINT32_MAX / (slab_columns / FLP_SAVED_BLOCK_UNIT);
}

/* How many of all blocks, of block_bytes each, a slab may have where there are several slabs. 1 always fits. */
static int64_t most_slab_blocks(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t all, int64_t block_bytes)
{
    const int64_t columns = chunks->lent_columns, saved = chunks->saved_columns, left = lending_bytes(normal) - written_bytes(normal, saved);
    int64_t slabs = flp_int64_divide_up(all, flp_int64_larger(left / block_bytes, 1)), blocks = flp_int64_divide_up(all, slabs);

    while (blocks > 1 && !(divides_exactly(all * columns, blocks * columns) &&
                           slabs_fit(normal, saved, flp_int64_divide_up(all, blocks), blocks * columns, blocks * block_bytes)))
        blocks = flp_int64_divide_up(all, ++slabs);
    return blocks;
}

/* Joins the blocks, and those of the rest that are saved, to as few slabs as grad_weight has room for. A single slab needs no rows beyond its last one, which a
 * store may cover. */
static void widen_slabs(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, flp_vocab_lending *lending)
{
    const int64_t all = lending->blocks + lending->rest, columns = all * chunks->lent_columns;
    const int64_t single = flp_int64_round_up(rows * columns * flp_dtype_bytes(normal->forward.dtype), BORROWED_ALIGNMENT);

    if (slabs_fit(normal, chunks->saved_columns, 1, columns, single)) {
        lending->slab_blocks = all;
        lending->slab_bytes = single;
    } else {
        lending->slab_blocks = most_slab_blocks(normal, chunks, all, lending->slab_bytes);
        lending->slab_bytes *= lending->slab_blocks;
    }
    lending->first = lending_bytes(normal) - flp_int64_divide_up(all, lending->slab_blocks) * lending->slab_bytes;
}

/* How many blocks of the rest are saved behind the others, or computed again right behind the forward. */
static void place_rest(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t rest,
                       flp_vocab_lending *lending)
{
    if (rows <= chunks->rest_rows)
        lending->rest = rest;
    else
        while (lending->early < rest && has_room_for_rest(normal, chunks, lending->early + 1, rows))
            lending->early++;
}

/* Where some blocks, or only blocks of the rest, are computed again later: finds a place for the rows times their factors. It is not worth one for the rest
 * alone if these then leave too little room for the other blocks. */
static void place_scaled(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t all,
                         flp_vocab_lending *lending)
{
    const int64_t at = chunks->keeps_scaled ? FLP_SCALED_IN_WORKSPACE : scaled_at(normal, chunks, rows, lending->early);
    const int64_t blocks = at >= 0 ? most_within(normal, chunks->lent_columns, rows, at) : lending->blocks;

    if (!chunks->keeps_scaled && lending->blocks >= all && (at < 0 || blocks < all))
        return;
    lending->scaled = at;
    lending->blocks = blocks;
}

flp_vocab_lending flp_vocab_chunks_lending(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows)
{
    const int64_t all = chunks->saved_columns / chunks->lent_columns, columns = chunks->lent_columns;
    const int64_t in_workspace = flp_int64_smaller(all, most_in_workspace(chunks, rows)), block_bytes = lent_bytes(normal, columns, rows);
    const int64_t rest = flp_vocab_chunks_rest_blocks(normal, chunks);
    flp_vocab_lending lending = { .blocks = most_within(normal, columns, rows, lending_bytes(normal)),
                                  .slab_blocks = 1,
                                  .slab_bytes = block_bytes,
                                  .slab_rows = lent_rows(rows),
                                  .scaled = FLP_SCALED_IN_PLACE };

    place_rest(normal, chunks, rows, rest, &lending);
    if (rows > 0 && (lending.blocks < all || lending.rest + lending.early < rest))
        place_scaled(normal, chunks, rows, all, &lending);
    lending.blocks = flp_int64_smaller(lending.blocks, all);
    lending.first = (lending.scaled >= 0 ? lending.scaled : lending_bytes(normal)) - lending.blocks * block_bytes;
    if (lending.blocks < in_workspace) {
        lending.blocks = in_workspace;
        lending.first = -1;
    }
    lending.again = rows > 0 ? all - lending.blocks : 0;
    if (rows > 0 && lending.again == 0 && lending.first >= 0 && lending.scaled < 0)
        widen_slabs(normal, chunks, rows, &lending);
    return lending;
}

int flp_vocab_chunks_scales_in_place(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, const flp_vocab_lending *lending,
                                     int64_t block)
{
    const int64_t end = flp_int64_smaller((block + 1) * chunks->lent_columns, normal->forward.vocab);

    return lending->scaled == FLP_SCALED_IN_PLACE || (lending->scaled >= 0 && written_bytes(normal, end) > lending->scaled);
}

flp_vocab_run flp_vocab_chunks_again(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, const flp_vocab_lending *lending,
                                     int64_t rows, int64_t begin)
{
    const int64_t columns = chunks->lent_columns, left = chunks->saved_columns / columns - begin;
    const int64_t end = lending->scaled >= 0 ? lending->scaled : lending_bytes(normal);
    const int64_t lent = flp_int64_smaller(left, most_within(normal, columns, rows, end - written_bytes(normal, begin * columns)));
    const int64_t own = flp_int64_smaller(left, most_in_workspace(chunks, rows));

    if (lent > 0 && lent >= own)
        return (flp_vocab_run){ begin, begin + lent, end - lent * lent_bytes(normal, columns, rows) };
    return (flp_vocab_run){ begin, begin + flp_int64_larger(1, own), -1 };
}

int64_t flp_vocab_chunks_slabs_at_once(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t slab_columns, int64_t at, int64_t most)
{
    int64_t slabs = 1;

    while (slabs < most && written_bytes(normal, flp_int64_smaller(first + (slabs + 1) * slab_columns, normal->forward.vocab)) <= at)
        slabs++;
    return slabs;
}

flp_vocab_chunk flp_vocab_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first)
{
    const int64_t left = normal->forward.vocab - first, wide = chunks->borrowed_columns;

    if (wide > 0 && has_room(normal, first, wide, chunks->borrowed_rows))
        return (flp_vocab_chunk){ wide, has_room(normal, first, wide, rows) ? borrowed_at(normal, first + wide) : -1 };
    return (flp_vocab_chunk){ flp_int64_smaller(left, chunks->columns), -1 };
}

static int64_t dlogit_bytes(const flp_linear_logp_backward_problem *normal, int64_t rows, int64_t columns)
{
    return rows * flp_int64_round_up(columns, FLP_BACKWARD_COLUMNS) * flp_dtype_bytes(normal->forward.dtype);
}

flp_vocab_slab flp_vocab_slab_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first)
{
    flp_vocab_chunk chunk = flp_vocab_chunk_at(normal, chunks, rows, first);
    flp_vocab_slab slab = { chunk.columns, 1, chunk.columns, chunk.borrowed };

    while (first + slab.columns < normal->forward.vocab) {
        chunk = flp_vocab_chunk_at(normal, chunks, rows, first + slab.columns);
        if (dlogit_bytes(normal, rows, slab.columns + chunk.columns) > chunks->slab_bytes)
            break;
        slab = (flp_vocab_slab){ slab.columns + chunk.columns, slab.chunks + 1, chunk.columns, -1 };
    }
    return slab;
}

int64_t flp_vocab_chunks_slab_bytes(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows)
{
    return flp_int64_smaller(chunks->slab_bytes, dlogit_bytes(normal, rows, flp_int64_larger(normal->forward.vocab - chunks->saved_columns, 0)));
}

int64_t flp_vocab_chunks_widest(const flp_backward_chunks *chunks, int64_t rows)
{
    const int64_t saved = chunks->lent_columns > 0 ? 0 : chunks->saved_columns, wide = flp_int64_larger(chunks->borrowed_columns, chunks->lent_columns);
    const int64_t spare = flp_int64_larger(wide, chunks->spare_columns);

    return flp_int64_larger(flp_int64_larger(chunks->columns, saved), rows > chunks->borrowed_rows ? spare : 0);
}

const char *flp_vocab_chunks_no_saved_exp(const flp_linear_logp_backward_problem *normal)
{
    if (normal->forward.dtype != FLP_BF16)
        return "it takes bf16's range of exponents";
    if (normal->forward.softcap != 0)
        return "softcap's slope differs from logit to logit";
    if (normal->g_entropy)
        return "the entropy's derivative differs from logit to logit";
    if (normal->grad_filter_eps > 0)
        return "grad_filter_eps is compared with derivatives, which its numbers are not yet";
    if (normal->forward.vocab > INT32_MAX - FLP_BACKWARD_COLUMNS) /* rounded up to whole tiles, it must fit the kernels' int */
        return "the vocabulary is too large";
    return NULL;
}

int64_t flp_vocab_chunks_parts(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return chunks->part_columns > 0 ? flp_int64_divide_up(normal->forward.vocab, chunks->part_columns) : 1;
}

int64_t flp_vocab_chunks_part_rows(int64_t rows)
{
    return flp_int64_round_up(rows, FLP_BACKWARD_ROW_BLOCK);
}

void flp_vocab_chunks_hint(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, char *text)
{
    const char *product = chunks->in_forward ? ":in_forward" : chunks->direct ? ":direct" : flp_vocab_chunks_all_saved(normal, chunks) ? ":all_saved" : "";
    int length = snprintf(text, FLP_HINT_BYTES, "%s%s%s%s", chunks->saves_exp ? ":saved_exp" : "", product, chunks->hidden_first ? ":hidden_first" : "",
                          chunks->narrow ? ":narrow" : "");

    if (chunks->part_columns > 0)
        snprintf(text + length, (size_t)(FLP_HINT_BYTES - length), ":parts%" PRId64, flp_vocab_chunks_parts(normal, chunks));
}
