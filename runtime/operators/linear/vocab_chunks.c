/* The chunks of the vocabulary: where each ends and where its derivatives lie. */
#include "operators/linear/vocab_chunks.h"

#include "base/dtype.h"
#include "base/int64.h"

enum {
    ALIGNED_BYTES = 16, /* of rows that the copy engine reads */
    BORROWED_ALIGNMENT = 256
};

/* An empty shard has room for a tile, which nothing comes to. */
int64_t flp_vocab_chunks_all_columns(const flp_linear_logp_backward_problem *normal)
{
    return flp_int64_round_up(flp_int64_larger(normal->forward.vocab, 1), FLP_BACKWARD_COLUMNS);
}

/* grad_hidden holds the packed rows until it is written itself: where it has their dtype and alignment, and nothing in it is kept. */
static int packed_in_grad_hidden(const flp_linear_logp_backward_problem *normal)
{
    return normal->grad_hidden == normal->forward.dtype && !(normal->accumulate & FLP_ACCUMULATE_HIDDEN) &&
           normal->forward.pointer_alignment >= ALIGNED_BYTES && normal->grad_hidden_stride * flp_dtype_bytes(normal->forward.dtype) % ALIGNED_BYTES == 0;
}

/* dlogit's room then takes the rows while they are put in their places. What the filter passes over differs from row to row. */
int flp_vocab_chunks_are_direct(const flp_linear_logp_backward_problem *normal, int saves_exp, int64_t columns)
{
    return columns >= flp_vocab_chunks_all_columns(normal) && columns >= normal->forward.hidden && packed_in_grad_hidden(normal) &&
           (saves_exp || (normal->grad_hidden != FLP_NONE && normal->grad_filter_eps == 0));
}

/* Rows wait in grad_hidden for their chunk only where nothing is put in its place there before the last chunk. */
int flp_vocab_chunks_keep_packed(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return !packed_in_grad_hidden(normal) || (chunks->row_chunk > 0 && !chunks->direct) || chunks->in_forward;
}

/* Not where grad_hidden takes the place of rows that grad_weight's product reads, nor where the filter counts behind both. */
int flp_vocab_chunks_finish_first(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return normal->grad_hidden != FLP_NONE && (normal->grad_weight != FLP_NONE || normal->grad_bias != FLP_NONE) && !chunks->saves_exp &&
           normal->grad_filter_eps == 0 && flp_vocab_chunks_keep_packed(normal, chunks);
}

/* Where dlogit of a borrowing chunk up to `end` begins in grad_weight. */
static int64_t borrowed_at(const flp_linear_logp_backward_problem *normal, int64_t end)
{
    return flp_int64_round_up(end * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight), BORROWED_ALIGNMENT);
}

/* Room for dlogit of so many rows behind a borrowing chunk from `first` on. */
static int has_room(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows)
{
    const int64_t end = first + columns, all = normal->forward.vocab * normal->forward.hidden * flp_dtype_bytes(normal->grad_weight);

    return end <= normal->forward.vocab && borrowed_at(normal, end) + rows * columns * flp_dtype_bytes(normal->forward.dtype) <= all;
}

/* grad_weight is nobody's but the backward's until it is written, vocabulary entry by vocabulary entry, where nothing in it or between its rows is
 * kept. */
int flp_vocab_chunks_can_borrow(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows)
{
    return normal->grad_weight != FLP_NONE && !(normal->accumulate & FLP_ACCUMULATE_WEIGHT) && normal->forward.weight_layout == FLP_VOCAB_HIDDEN &&
           normal->grad_weight_stride == normal->forward.hidden && normal->forward.pointer_alignment >= ALIGNED_BYTES && has_room(normal, first, columns, rows);
}

flp_vocab_chunk flp_vocab_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first)
{
    const int64_t left = normal->forward.vocab - first, wide = chunks->borrowed_columns;

    if (wide > 0 && has_room(normal, first, wide, chunks->borrowed_rows))
        return (flp_vocab_chunk){ wide, has_room(normal, first, wide, rows) ? borrowed_at(normal, first + wide) : -1 };
    return (flp_vocab_chunk){ left < chunks->columns ? left : chunks->columns, -1 };
}

int64_t flp_vocab_chunks_widest(const flp_backward_chunks *chunks, int64_t rows)
{
    return flp_int64_larger(flp_int64_larger(chunks->columns, chunks->saved_columns), rows > chunks->borrowed_rows ? chunks->borrowed_columns : 0);
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
    if (normal->forward.vocab > INT32_MAX - FLP_BACKWARD_COLUMNS) /* a whole number of tiles, in the kernels' int */
        return "the vocabulary is too large";
    return NULL;
}

const char *flp_vocab_chunks_hint(const flp_backward_chunks *chunks)
{
    if (!chunks->saves_exp)
        return chunks->direct ? ":direct" : "";
    if (chunks->in_forward)
        return chunks->narrow ? ":saved_exp:in_forward:narrow" : ":saved_exp:in_forward";
    return chunks->direct ? ":saved_exp:direct" : ":saved_exp";
}
