/* The widths of chunks that a tuning names, and those that are worth a try. */
#include "operators/linear/chunk_tuning.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/int64.h"
#include "operators/linear/linear_budget.h"

static const char prefix[] = "chunks.";
enum { MOST_ROW_CHUNKS = 8, LEAST_ROW_BLOCKS = 2 };
/* The widths that are offered, in quarters of the default's: from half of it to twice. */
static const int quarters[] = { 2, 3, 5, 6, 8 };

/* The widths that a tuning may name, in alphabetic order. unit: of a tuning's numbers. */
typedef struct {
    const char *name;
    size_t at; /* in flp_backward_chunks: int64_t */
    int64_t unit;
    int decides_bits;
} width;
static const width widths[] = {
    { "borrowed", offsetof(flp_backward_chunks, borrowed_columns), FLP_BACKWARD_COLUMNS, 1 },
    { "columns", offsetof(flp_backward_chunks, columns), FLP_BACKWARD_COLUMNS, 1 },
    { "rows", offsetof(flp_backward_chunks, row_chunk), FLP_BACKWARD_ROW_BLOCK, 0 },
    { "saved", offsetof(flp_backward_chunks, saved_columns), FLP_BACKWARD_COLUMNS, 1 },
};
enum { WIDTHS = sizeof(widths) / sizeof(*widths) };

static int64_t *width_of(flp_backward_chunks *chunks, const width *which)
{
    return (int64_t *)(void *)((char *)chunks + which->at);
}

/* 1: the problem has such a width, and it may be changed. A width of the vocabulary's chunks may not where one chunk is the whole vocabulary: with chunks of
 * rows, with `direct`, and where all exponentials are saved. Nor may that of saved exponentials in grad_weight, which are as many as it has room for. The rows
 * of a chunk may where grad_hidden is the only gradient: each row's sum is the same, whatever the chunk. */
static int has_width(const flp_linear_work *work, const flp_backward_chunks *chunks, const width *which)
{
    flp_backward_chunks copy = *chunks;

    if (*width_of(&copy, which) == 0 || (which->at == offsetof(flp_backward_chunks, saved_columns) && chunks->lent_columns > 0))
        return 0;
    if (!which->decides_bits)
        return flp_vocab_chunks_hidden_alone(work->backward);
    return chunks->row_chunk == 0 && !chunks->direct && !flp_vocab_chunks_all_saved(work->backward, chunks);
}

/* 1: the chunks need no other kernels than the chosen ones, and what is to be stored in grad_weight fits there. */
static int is_possible(const flp_linear_work *work, const flp_backward_chunks *chunks)
{
    const flp_linear_logp_backward_problem *normal = work->backward;
    const int64_t first = chunks->saves_exp ? chunks->saved_columns : chunks->columns, all = flp_vocab_chunks_all_columns(normal);

    if (chunks->row_chunk > 0)
        return 1;
    if (chunks->columns > all || first >= all || flp_vocab_chunks_are_direct(normal, chunks->saves_exp, first) != chunks->direct)
        return 0;
    return chunks->borrowed_columns == 0 || flp_vocab_chunks_can_borrow(normal, chunks->saved_columns, chunks->borrowed_columns, chunks->borrowed_rows);
}

/* The chunks of the budget. The loss alone has none. */
static flp_backward_chunks own_chunks(const flp_linear_work *work)
{
    return flp_vocab_chunks_have_gradients(work->backward) ? flp_linear_budget_spend(work) : work->chunks;
}

static const width *find_width(const char *name, size_t length)
{
    for (int i = 0; i < WIDTHS; i++)
        if (strlen(widths[i].name) == length && strncmp(widths[i].name, name, length) == 0)
            return &widths[i];
    return NULL;
}

/* An item of a tuning, "chunks.columns=28". */
static flp_status take_item(const flp_linear_work *work, const char *item, flp_backward_chunks *chunks)
{
    const char *name = item + strlen(prefix);
    const size_t length = strcspn(name, "=,");
    const width *which = find_width(name, length);
    char *end = NULL;
    const int64_t number = name[length] == '=' ? strtoll(name + length + 1, &end, 10) : 0;

    if (!which || number < 1 || number > INT32_MAX || (end && *end && *end != ','))
        return flp_status_fail(FLP_BAD_ARGUMENT, "tuning: got %.*s, wanted a width of chunks and its number", (int)strcspn(item, ","), item);
    if (!has_width(work, chunks, which))
        return flp_status_fail(FLP_BAD_ARGUMENT, "tuning: got %.*s, but the problem has no such chunks", (int)strcspn(item, ","), item);
    *width_of(chunks, which) = number * which->unit;
    return FLP_OK;
}

flp_status flp_chunk_tuning_apply(const flp_linear_work *work, const char *tuning, flp_backward_chunks *chunks)
{
    int taken = 0;
    flp_status status = FLP_OK;

    *chunks = own_chunks(work);
    for (const char *item = tuning; status == FLP_OK && *item; item += strcspn(item, ","), item += *item == ',')
        if (strncmp(item, prefix, strlen(prefix)) == 0) {
            status = take_item(work, item, chunks);
            taken = 1;
        }
    if (status != FLP_OK || !taken)
        return status;
    if (!is_possible(work, chunks))
        return flp_status_fail(FLP_BAD_ARGUMENT, "tuning \"%s\": chunks of these widths need other kernels, or room that grad_weight has not", tuning);
    if (work->backward->memory_budget > 0 && flp_linear_budget_bytes(work, chunks) > work->backward->memory_budget)
        return flp_status_fail(FLP_BAD_ARGUMENT, "tuning \"%s\": its chunks take %" PRId64 " bytes, the memory_budget is %" PRId64, tuning,
                               flp_linear_budget_bytes(work, chunks), work->backward->memory_budget);
    return FLP_OK;
}

/* ---- what is worth a try ---- */

static void offer(const flp_linear_work *work, const width *which, int64_t number, int64_t most_bytes, flp_text *tunings)
{
    char tuning[64];
    flp_backward_chunks chunks;

    snprintf(tuning, sizeof(tuning), "%s%s=%" PRId64, prefix, which->name, number);
    if (flp_chunk_tuning_apply(work, tuning, &chunks) == FLP_OK && flp_linear_budget_bytes(work, &chunks) <= most_bytes)
        flp_text_append(tunings, "%s\n", tuning);
}

/* All rows at a time, in two chunks, in three, ...: evenly. */
static void offer_rows(const flp_linear_work *work, const width *which, int64_t own, int64_t most_bytes, flp_text *tunings)
{
    const int64_t blocks = flp_int64_divide_up(work->forward->rows, FLP_BACKWARD_ROW_BLOCK);
    int64_t last = 0;

    for (int chunks = 1; chunks <= MOST_ROW_CHUNKS; chunks++) {
        const int64_t number = flp_int64_divide_up(blocks, chunks);

        if (number >= LEAST_ROW_BLOCKS && number != last && number != own && !(number >= blocks && own >= blocks))
            offer(work, which, number, most_bytes, tunings);
        last = number;
    }
}

static void offer_columns(const flp_linear_work *work, const width *which, int64_t own, int64_t most_bytes, flp_text *tunings)
{
    for (size_t i = 0; i < sizeof(quarters) / sizeof(*quarters); i++) {
        const int64_t number = own * quarters[i] / 4;

        if (number >= 1 && number != own)
            offer(work, which, number, most_bytes, tunings);
    }
}

void flp_chunk_tuning_offer(const flp_linear_work *work, int decides_bits, int64_t most_bytes, flp_text *tunings)
{
    flp_backward_chunks own = own_chunks(work);
    char callers_message[FLP_STATUS_MESSAGE_BYTES];

    flp_status_keep_message(callers_message); /* a tuning that is not possible is no failure of this call */
    for (int i = 0; i < WIDTHS; i++) {
        const width *which = &widths[i];
        const int64_t number = *width_of(&own, which) / which->unit;

        if (which->decides_bits == decides_bits && has_width(work, &own, which))
            (decides_bits ? offer_columns : offer_rows)(work, which, number, most_bytes, tunings);
    }
    flp_status_restore_message(callers_message);
}
