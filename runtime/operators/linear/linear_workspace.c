/* The workspace of linear_logp, its backward and linear_cross_entropy: the sizes and lifetimes of its parts. */
#include "operators/linear/linear_workspace.h"

#include "base/dtype.h"
#include "base/int64.h"
#include "params/rows.h"
#include "params/tiles.h"

enum {
    NUMBER = 4, /* bytes, as all of these */
    PAIR = 8,
    TICKET = 8
};

static const char *const step_names[] = {
#define FLP_LINEAR_STEP(name, text) text,
    FLP_LINEAR_STEP_LIST(FLP_LINEAR_STEP)
#undef FLP_LINEAR_STEP
};

static int element_bytes(const flp_linear_work *work)
{
    return flp_dtype_bytes(work->forward->dtype);
}

static int keeps_packed(const flp_linear_work *work)
{
    return flp_vocab_chunks_keep_packed(work->backward, &work->chunks);
}

/* 1: rows are packed for the forward. A shard's forward is a call of its own and reads all rows. */
static int packs_for_forward(const flp_linear_work *work)
{
    return work->splits > 0 && work->forward->vocab_total == 0;
}

int64_t flp_linear_work_forward_stride(const flp_linear_work *work)
{
    return flp_vocab_chunks_row_stride(work->backward);
}

int64_t flp_linear_work_packed_stride(const flp_linear_work *work)
{
    if (!keeps_packed(work))
        return work->backward->grad_hidden_stride;
    return flp_linear_work_forward_stride(work) * (work->chunks.in_forward ? NUMBER / element_bytes(work) : 1);
}

int64_t flp_linear_work_kept_row_blocks(int64_t rows)
{
    return flp_int64_round_up(rows, FLP_BACKWARD_ROW_BLOCK) / FLP_KEPT_BLOCK;
}

int64_t flp_linear_work_kept_words(const flp_linear_work *work)
{
    return (flp_int64_larger(work->chunks.columns, work->chunks.borrowed_columns) / FLP_KEPT_BLOCK + 31) / 32;
}

int64_t flp_linear_work_chunk_rows(const flp_linear_work *work, int64_t rows)
{
    const int64_t chunk = work->chunks.row_chunk;

    return chunk > 0 ? flp_int64_smaller(chunk, rows) : rows;
}

typedef struct {
    const flp_linear_work *work;
    flp_workspace *workspace;
    int64_t rows, chunk_rows;
} layout;

/* The number of rows in a part of valid rows that is used after the forward. With in_forward, the forward processes all chunks of rows before the backward
 * begins. */
static int64_t rows_behind_forward(const layout *to)
{
    return to->work->chunks.in_forward ? to->rows : to->chunk_rows;
}

static void add(const layout *to, flp_linear_part part, const char *name, int64_t bytes, flp_linear_step first, flp_linear_step last)
{
    to->workspace->part[part] = (flp_workspace_part){ .name = name, .bytes = bytes, .first = first, .last = last };
}

static void add_wide(const layout *to, flp_linear_part part, const char *name, int64_t bytes, flp_linear_step first, flp_linear_step last)
{
    add(to, part, name, bytes, first, last);
    to->workspace->part[part].is_wide = 1;
}

static int is_lent(const flp_linear_work *work)
{
    return work->chunks.lent_columns > 0;
}

/* The last step of a part that the forward writes and that computing a block again reads, too; `otherwise`, where no block is computed again. */
static flp_linear_step last_save_exp_step(const flp_linear_work *work, flp_linear_step otherwise)
{
    return is_lent(work) ? FLP_STEP_SAVED_EXP_HIDDEN : otherwise;
}

/* The last step of a part that grad_weight's product and grad_bias read; `otherwise`, where these do not come after grad_hidden. */
static flp_linear_step last_weight_step(const flp_linear_work *work, flp_linear_step otherwise)
{
    return work->chunks.hidden_first || flp_vocab_chunks_finish_first(work->backward, &work->chunks) ? FLP_STEP_WEIGHT_BEHIND : otherwise;
}

/* The first step of a part from which grad_hidden of a chunk of rows is completed behind the next chunk's tiles: it lives through the loop over chunks.
 * `otherwise`, where no other chunk follows. */
static flp_linear_step first_step_of_chunk(const flp_linear_work *work, flp_linear_step otherwise)
{
    return work->chunks.row_chunk > 0 && !work->chunks.in_forward ? FLP_STEP_OFFSETS : otherwise;
}

/* The index of the valid rows, and the packed rows. */
static void add_rows(const layout *to)
{
    const int64_t blocks = flp_int64_divide_up(to->rows, FLP_BACKWARD_ROW_BLOCK); /* the most chunks of rows that there can be */
    const int64_t row_bytes = flp_linear_work_forward_stride(to->work) * element_bytes(to->work);
    const int has_forward = packs_for_forward(to->work), gradients = flp_vocab_chunks_have_gradients(to->work->backward);
    const flp_linear_step last = gradients ? FLP_STEP_SCATTER : FLP_STEP_LOSSES;

    add(to, FLP_PART_ROW, "row", to->rows * NUMBER, FLP_STEP_INDEX_ROWS,
        !gradients          ? last
        : is_lent(to->work) ? FLP_STEP_UNSCALE_BEHIND
                            : FLP_STEP_UNSCALE_ROWS);
    add(to, FLP_PART_PACKED_INDEX, "packed index", to->rows * NUMBER, FLP_STEP_INDEX_ROWS, last);
    add(to, FLP_PART_COUNTS, "counts", sizeof(flp_backward_counts), FLP_STEP_INDEX_ROWS, last);
    add(to, FLP_PART_CHUNK_COUNTS, "chunk counts", blocks * NUMBER, FLP_STEP_INDEX_ROWS, last);
    if (keeps_packed(to->work) && (has_forward || gradients))
        add_wide(to, FLP_PART_PACKED_ROWS, "packed rows", to->rows * flp_linear_work_packed_stride(to->work) * element_bytes(to->work),
                 has_forward ? FLP_STEP_GATHER : FLP_STEP_GATHER_AGAIN,
                 to->work->chunks.in_forward ? FLP_STEP_FINISH
                 : gradients                 ? last_weight_step(to->work, FLP_STEP_WEIGHT_SECOND)
                                             : FLP_STEP_TILES_AGAIN);
    else if (has_forward && !to->work->losses)
        add_wide(to, FLP_PART_FORWARD_ROWS, "forward's rows", to->rows * row_bytes, FLP_STEP_GATHER, FLP_STEP_TILES_AGAIN);
}

/* linear_logp's own parts. With saved exponentials, the tile kernel writes them once more, for rows that overflowed. */
static void add_forward(const layout *to)
{
    const int64_t sums = to->chunk_rows * to->work->splits;
    const flp_linear_step last = to->work->chunks.saves_exp ? FLP_STEP_TILES_AGAIN : FLP_STEP_COMBINE;

    add_wide(to, FLP_PART_PARTIAL, "partial", sums * PAIR, FLP_STEP_TILES, last);
    if (to->work->argmax)
        add_wide(to, FLP_PART_BEST, "best", sums * PAIR, FLP_STEP_TILES, last);
    if (to->work->entropy)
        add_wide(to, FLP_PART_MOMENT, "moment", sums * NUMBER, FLP_STEP_TILES, last);
    if (to->work->logit_sums)
        add_wide(to, FLP_PART_LOGIT_SUMS, "logit sums", sums * NUMBER, FLP_STEP_TILES, last);
    add(to, FLP_PART_TARGET_LOGIT, "target logit", to->chunk_rows * PAIR, FLP_STEP_TILES, last_save_exp_step(to->work, last));
    if (!to->work->chunks.saves_exp)
        add(to, FLP_PART_TICKET, "ticket", to->rows > 0 ? TICKET : 0, FLP_STEP_TILES, FLP_STEP_TILES);
}

static void add_saved_exp(const layout *to)
{
    add(to, FLP_PART_SAVED_EXP_OFFSET, "saved exponentials' offset", to->rows * NUMBER, FLP_STEP_OFFSETS, last_save_exp_step(to->work, FLP_STEP_DIFFERENTIATE));
    add(to, FLP_PART_OVERFLOW, "overflow", to->rows * NUMBER, FLP_STEP_OFFSETS, FLP_STEP_TILES_AGAIN);
    add(to, FLP_PART_BLOCK_OVERFLOW, "block overflow", (to->rows + 1) * NUMBER, FLP_STEP_OFFSETS, FLP_STEP_TILES_AGAIN);
    add(to, FLP_PART_ROW_FACTOR, "row factor", rows_behind_forward(to) * NUMBER, first_step_of_chunk(to->work, FLP_STEP_DIFFERENTIATE),
        to->work->chunks.in_forward         ? FLP_STEP_FINISH
        : to->work->chunks.part_columns > 0 ? FLP_STEP_SAVED_EXP_SUM
                                            : FLP_STEP_SAVED_EXP_HIDDEN);
}

/* linear_cross_entropy's results of each row, and the loss' derivatives by them. */
static void add_losses(const layout *to)
{
    static const struct {
        flp_linear_part part, derivative;
        const char *name, *derivative_name;
    } of_row[] = {
        { FLP_PART_LOGP, FLP_PART_G_LOGP, "logp", "g_logp" },
        { FLP_PART_LSE, FLP_PART_G_LSE, "lse", "g_lse" },
        { FLP_PART_ENTROPY, FLP_PART_G_ENTROPY, "entropy", "g_entropy" },
        { FLP_PART_LOGIT_SUM, FLP_PART_G_SUM, "logit sum", "g_sum" },
    };
    const int64_t bytes = to->rows * NUMBER;

    for (size_t i = 0; i < sizeof(of_row) / sizeof(*of_row); i++) {
        add(to, of_row[i].part, of_row[i].name, bytes, FLP_STEP_COMBINE, FLP_STEP_DIFFERENTIATE);
        add(to, of_row[i].derivative, of_row[i].derivative_name, bytes, FLP_STEP_TILES_AGAIN, FLP_STEP_DIFFERENTIATE); /* losses are computed beside these */
    }
}

/* 1: what is computed again finds the rows times their factors in the workspace. */
static int has_scaled_rows(const layout *to)
{
    return flp_vocab_chunks_lending(to->work->backward, &to->work->chunks, to->chunk_rows).scaled == FLP_SCALED_IN_WORKSPACE;
}

/* The rows times their factors, where the rows themselves are needed beside them. */
static void add_scaled_rows(const layout *to)
{
    if (to->work->chunks.hidden_first || (is_lent(to->work) && has_scaled_rows(to)))
        add_wide(to, FLP_PART_SCALED_ROWS, "scaled rows", to->chunk_rows * flp_linear_work_forward_stride(to->work) * element_bytes(to->work),
                 FLP_STEP_ORDER_TARGETS, last_weight_step(to->work, FLP_STEP_SAVED_EXP_WEIGHT));
}

static int saves_in_dlogit(const layout *to)
{
    const flp_backward_chunks *chunks = &to->work->chunks;

    return chunks->saves_exp && !(is_lent(to->work) && flp_vocab_chunks_lending(to->work->backward, chunks, to->chunk_rows).first >= 0);
}

/* What slabs take, or the rest's saved exponentials. A plan's workspace must be large enough for any smaller number of rows. */
static int64_t joined_bytes(const layout *to)
{
    const flp_backward_chunks *chunks = &to->work->chunks;

    if (chunks->saves_rest)
        return flp_vocab_chunks_rest_bytes(to->work->backward, chunks, to->chunk_rows);
    return flp_vocab_chunks_slab_bytes(to->work->backward, chunks, to->chunk_rows);
}

/* From the forward on, dlogit's part holds the saved exponentials, unless these are stored in grad_weight. */
static void add_dlogit(const layout *to)
{
    const flp_backward_chunks *chunks = &to->work->chunks;
    const int64_t rows =
        is_lent(to->work) && to->chunk_rows > chunks->borrowed_rows ? flp_int64_round_up(to->chunk_rows, FLP_BACKWARD_ROW_BLOCK) : to->chunk_rows;
    const int64_t elements = rows * flp_vocab_chunks_widest(chunks, to->chunk_rows);
    const int64_t staged = chunks->direct ? to->rows * to->work->forward->hidden : 0, bytes = flp_int64_larger(elements, staged) * element_bytes(to->work);

    add_wide(to, FLP_PART_DLOGIT, "dlogit", flp_int64_larger(bytes, joined_bytes(to)),
             saves_in_dlogit(to)  ? FLP_STEP_TILES
             : chunks->saves_rest ? FLP_STEP_ORDER_TARGETS
             : is_lent(to->work)  ? FLP_STEP_SAVED_EXP_BLOCK
                                  : FLP_STEP_GRAD_LOGITS,
             chunks->in_forward ? FLP_STEP_FORWARD_HIDDEN
             : chunks->direct   ? FLP_STEP_SCATTER
                                : last_weight_step(to->work, FLP_STEP_WEIGHT_SECOND));
}

/* The sums of the parts of grad_hidden's product, until they are added: with chunks of rows behind the next chunk's tiles. Else the product may begin beside the
 * derivatives of rows. */
static void add_parts(const layout *to)
{
    const flp_backward_chunks *chunks = &to->work->chunks;
    const int64_t rows = flp_vocab_chunks_parts(to->work->backward, chunks) * flp_vocab_chunks_part_rows(to->chunk_rows);

    if (chunks->part_columns > 0)
        add_wide(to, FLP_PART_PARTS, "parts", rows * to->work->forward->hidden * NUMBER, chunks->row_chunk > 0 ? FLP_STEP_OFFSETS : FLP_STEP_DIFFERENTIATE,
                 chunks->in_forward ? FLP_STEP_FORWARD_SUM : FLP_STEP_SAVED_EXP_SUM);
}

/* The sums are zeroed by the gathering that comes before the first product. */
static void add_gradients(const layout *to)
{
    const flp_linear_logp_backward_problem *backward = to->work->backward;
    const int64_t rows = rows_behind_forward(to);
    const flp_linear_step zeroed = is_lent(to->work)                                 ? FLP_STEP_ORDER_TARGETS
                                   : to->work->chunks.saves_exp                      ? FLP_STEP_UNSCALE_ROWS
                                   : to->work->losses && packs_for_forward(to->work) ? FLP_STEP_GATHER
                                                                                     : FLP_STEP_GATHER_AGAIN;

    add(to, FLP_PART_GRADIENT, "gradient", flp_int64_round_up(rows, FLP_BACKWARD_ROW_BLOCK) * (int64_t)sizeof(flp_row_gradient),
        to->work->chunks.in_forward   ? FLP_STEP_OFFSETS
        : packs_for_forward(to->work) ? FLP_STEP_COMBINE
                                      : FLP_STEP_DIFFERENTIATE,
        FLP_STEP_GRAD_LOGITS);
    add(to, FLP_PART_TARGETS, "targets", rows * (int64_t)sizeof(flp_row_target), first_step_of_chunk(to->work, FLP_STEP_DIFFERENTIATE),
        last_weight_step(to->work, FLP_STEP_FINISH));
    if (backward->grad_weight != FLP_NONE)
        add(to, FLP_PART_TARGET_ORDER, "target order", rows * (int64_t)sizeof(flp_sorted_target), FLP_STEP_ORDER_TARGETS,
            last_weight_step(to->work, FLP_STEP_WEIGHT_SECOND));
    if (backward->grad_filter_eps > 0)
        add(to, FLP_PART_KEPT, "kept", flp_linear_work_kept_row_blocks(to->rows) * flp_linear_work_kept_words(to->work) * NUMBER, FLP_STEP_CLEAR_FILTER,
            FLP_STEP_COUNT_FILTER);
    add_dlogit(to);
    add_scaled_rows(to);
    add_parts(to);
    if (backward->grad_hidden != FLP_NONE && !to->work->chunks.direct && !to->work->chunks.in_forward)
        add_wide(to, FLP_PART_SUMS, "sums", rows * to->work->forward->hidden * NUMBER, first_step_of_chunk(to->work, zeroed), FLP_STEP_FINISH);
}

void flp_linear_workspace_lay_out(const flp_linear_work *work, int64_t rows, flp_workspace *workspace)
{
    const layout to = { work, workspace, rows, flp_linear_work_chunk_rows(work, rows) };

    _Static_assert((int)FLP_LINEAR_PARTS <= (int)FLP_WORKSPACE_PARTS, "FLP_WORKSPACE_PARTS is too small");
    *workspace = (flp_workspace){ .steps = step_names, .loop = { { FLP_STEP_GRAD_LOGITS, FLP_STEP_COUNT_FILTER } } };
    if (work->chunks.row_chunk > 0)
        workspace->loop[1] = (flp_workspace_loop){ FLP_STEP_TILES, work->chunks.in_forward ? FLP_STEP_FORWARD_SUM : FLP_STEP_FINISH };
    if (is_lent(work))
        workspace->loop[1] = (flp_workspace_loop){ FLP_STEP_UNSCALE_FOR_REST, FLP_STEP_SAVED_EXP_HIDDEN };
    if (work->forward->vocab_total > 0)
        add(&to, FLP_PART_ENTRY, "entry", rows * NUMBER, FLP_STEP_SHARD_TARGETS, work->backward ? FLP_STEP_DIFFERENTIATE : FLP_STEP_COMBINE);
    if (work->backward)
        add_rows(&to);
    if (work->splits > 0)
        add_forward(&to);
    if (work->chunks.saves_exp)
        add_saved_exp(&to);
    if (work->losses)
        add_losses(&to);
    if (work->backward && flp_vocab_chunks_have_gradients(work->backward))
        add_gradients(&to);
    flp_workspace_lay_out(workspace);
}
