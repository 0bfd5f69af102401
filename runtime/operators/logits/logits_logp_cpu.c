/* logits_logp on the CPU path, both directions: the rows are processed in groups, and cut into chunks that the thread pool processes. */
#include "operators/logits/logits_logp_plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "base/int64.h"
#include "base/status.h"
#include "cpu/convert.h"
#include "operators/logits/row_chunk.h"
#include "cpu/target_share.h"

enum { GROUP_CHUNKS = 16384 }; /* bounds the memory of the sums; a group has at least one whole row */

typedef struct {
    int64_t place;  /* index in the arrays of results; -1: none */
    int64_t source; /* index in the arrays of inputs; -1: row_index is out of range */
    int64_t target; /* -1: ignored or bad */
    int is_ignored, is_read;
    float target_logit; /* of a valid target: read before a gradient can overwrite it */
    double scale;
    flp_logits_transform transform;
    flp_logits_factors factors;
} row;

typedef struct {
    const flp_logits_logp_call *call;
    int64_t chunks; /* of a row */
    int64_t count;  /* rows of the group */
    row *rows;
    flp_logits_sums *sums; /* [count][chunks] */
} group;

static int64_t target_at(const flp_logits_logp_call *call, int64_t at)
{
    return call->params.target_bytes == 4 ? ((const int32_t *)call->params.target)[at] : ((const int64_t *)call->params.target)[at];
}

static const char *logits_of(const flp_logits_logp_call *call, const row *row)
{
    return (const char *)call->params.logits + row->source * call->params.logits_stride * flp_dtype_bytes(call->dtype);
}

static int chunk_width(const flp_logits_logp_call *call, int64_t first)
{
    return call->params.vocab - first < FLP_ROW_CHUNK_COLUMNS ? (int)(call->params.vocab - first) : FLP_ROW_CHUNK_COLUMNS;
}

/* Fills in the row. Returns 1 for a bad target or index. */
static int begin_row(const flp_logits_logp_call *call, int64_t number, row *row)
{
    const int wanted = call->params.lse || call->params.entropy || call->params.argmax;
    int64_t given;
    double temperature = call->temperature;

    row->place = row->source = number;
    row->target = -1;
    row->is_ignored = row->is_read = 0;
    row->target_logit = 0;
    if (call->params.row_index) {
        const int64_t index = call->params.row_index[number];
        row->source = index >= 0 && index < call->params.logits_rows ? index : -1;
        row->place = call->params.scatter ? row->source : number;
    }
    if (row->source < 0)
        return 1;
    given = target_at(call, row->source);
    row->is_ignored = call->params.ignores && given == call->params.ignore_index;
    if (!row->is_ignored && given >= 0 && given < call->params.vocab)
        row->target = given;
    row->is_read = !call->params.given_lse && (wanted || row->target >= 0);
    if (row->target >= 0)
        flp_convert_to_f32(call->dtype, logits_of(call, row) + row->target * flp_dtype_bytes(call->dtype), &row->target_logit, 1);
    if (call->params.row_temperature)
        temperature = flp_row_temperature_within_bounds(call->params.row_temperature[row->source]);
    row->scale = flp_row_scale(temperature);
    row->transform = (flp_logits_transform){ (float)row->scale, call->params.softcap };
    return !row->is_ignored && row->target < 0;
}

/* The target's index in the chunk; -1: it is not in it. */
static int target_in_chunk(const flp_logits_logp_call *call, const row *row, int64_t first)
{
    const int64_t target = row->target - first;

    return target >= 0 && target < chunk_width(call, first) ? (int)target : -1;
}

static void sum_chunk(void *data, int64_t index, int thread)
{
    const group *work = data;
    const flp_logits_logp_call *call = work->call;
    const row *row = &work->rows[index / work->chunks];
    const int64_t first = index % work->chunks * FLP_ROW_CHUNK_COLUMNS;

    (void)thread;
    if (row->is_read)
        flp_row_chunk_sum(call->dtype, logits_of(call, row) + first * flp_dtype_bytes(call->dtype), chunk_width(call, first), (int32_t)first,
                          target_in_chunk(call, row, first), &row->transform, &work->sums[index]);
}

static float softened(const row *row)
{
    return flp_row_chunk_soften(row->target_logit, row->transform.softcap);
}

static void find_factors(const flp_logits_logp_call *call, row *row, const flp_row_shares *shares)
{
    const double inverse_temperature = row->scale * flp_ln_2, inverse_sum = exp2(-shares->log2_sum), p = exp(shares->logp);
    const double g = call->params.g_logp[row->place] * inverse_temperature;
    const double g_lse = call->params.g_lse ? call->params.g_lse[row->place] * inverse_temperature : 0;
    const double g_entropy = call->params.g_entropy ? call->params.g_entropy[row->place] * inverse_temperature : 0;
    double power = g_lse - g, target = g * -expm1(shares->logp) + p * g_lse;

    if (g_entropy != 0) {
        power -= g_entropy * (shares->entropy - shares->log2_sum * flp_ln_2);
        if (p != 0) /* else log p may be -inf */
            target -= p * g_entropy * (shares->entropy + shares->logp);
    }
    row->factors = (flp_logits_factors){ .origin = (float)shares->origin,
                                         .log2_sum = (float)shares->log2_sum,
                                         .power = (float)(power * inverse_sum),
                                         .moment = (float)(-g_entropy * flp_ln_2 * inverse_sum),
                                         .target = (float)target };
}

/* 1: the target has the row's largest logit. total has the largest of the other entries. */
static int target_is_best(const row *row, const flp_logits_sums *total)
{
    if (row->target < 0)
        return 0;
    return row->target_logit > total->largest || (row->target_logit == total->largest && row->target < total->largest_index && total->largest > -INFINITY);
}

static void write_results(const flp_logits_logp_call *call, const row *row, const flp_logits_sums *total, const flp_row_shares *shares)
{
    const int is_row = row->source >= 0;

    if (call->params.lse)
        call->params.lse[row->place] = is_row ? (float)shares->lse : NAN;
    if (call->params.entropy)
        call->params.entropy[row->place] = is_row ? (float)shares->entropy : NAN;
    if (call->params.argmax)
        call->params.argmax[row->place] = !is_row ? 0 : target_is_best(row, total) ? (int32_t)row->target : total->largest_index;
    if (call->params.logp)
        call->params.logp[row->place] = row->is_ignored ? 0 : row->target < 0 ? NAN : (float)shares->logp;
}

static flp_row_shares shares_of_lse(const flp_logits_logp_call *call, const row *row)
{
    const double entropy = call->params.given_entropy ? call->params.given_entropy[row->place] : 0;
    flp_row_shares shares = flp_row_shares_of_lse(call->params.given_lse[row->place], entropy, softened(row), row->scale);

    if (call->params.given_logp)
        shares.logp = call->params.given_logp[row->place];
    return shares;
}

static flp_row_shares merge_chunks(const group *work, int64_t index, flp_logits_sums *total)
{
    const row *row = &work->rows[index];
    flp_other_sums others;

    *total = work->sums[index * work->chunks];
    for (int64_t c = 1; c < work->chunks; c++)
        flp_row_chunk_merge(total, &work->sums[index * work->chunks + c], row->scale);
    others = (flp_other_sums){ .origin = total->origin, .sum = total->sum, .moment = total->moment, .scale = row->scale };
    return row->target >= 0 ? flp_row_shares_of(&others, softened(row)) : flp_row_shares_of_others(&others);
}

/* Merges the chunks in order, writes the results and computes the gradients' factors. */
static void finish_row(void *data, int64_t index, int thread)
{
    const group *work = data;
    const flp_logits_logp_call *call = work->call;
    row *row = &work->rows[index];
    flp_logits_sums total = { 0 };
    flp_row_shares shares = { 0 };

    (void)thread;
    if (row->place < 0)
        return;
    if (call->params.given_lse && row->target >= 0)
        shares = shares_of_lse(call, row);
    else if (row->is_read)
        shares = merge_chunks(work, index, &total);
    if (call->params.grad_logits && row->target >= 0)
        find_factors(call, row, &shares);
    if (!call->params.given_lse)
        write_results(call, row, &total, &shares);
}

static void differentiate_chunk(void *data, int64_t index, int thread)
{
    const group *work = data;
    const flp_logits_logp_call *call = work->call;
    const row *row = &work->rows[index / work->chunks];
    const int64_t first = index % work->chunks * FLP_ROW_CHUNK_COLUMNS;
    const int bytes = flp_dtype_bytes(call->dtype), width = chunk_width(call, first);
    char *gradients;

    (void)thread;
    if (row->place < 0)
        return;
    gradients = (char *)call->params.grad_logits + (row->place * call->params.grad_stride + first) * bytes;
    if (row->target < 0)
        for (int i = 0; i < width * bytes; i++)
            gradients[i] = 0;
    else
        flp_row_chunk_differentiate(call->dtype, logits_of(call, row) + first * bytes, width, &row->transform, &row->factors, target_in_chunk(call, row, first),
                                    gradients);
}

static void run_group(flp_thread_pool *pool, group *work, int64_t first, int64_t *bad_count, int64_t *bad_first)
{
    for (int64_t i = 0; i < work->count; i++)
        if (begin_row(work->call, first + i, &work->rows[i])) {
            ++*bad_count;
            if (first + i < *bad_first)
                *bad_first = first + i;
        }
    if (!work->call->params.given_lse)
        flp_thread_pool_run(pool, work->count * work->chunks, sum_chunk, work);
    flp_thread_pool_run(pool, work->count, finish_row, work);
    if (work->call->params.grad_logits)
        flp_thread_pool_run(pool, work->count * work->chunks, differentiate_chunk, work);
}

flp_status flp_logits_logp_cpu(flp_thread_pool *pool, const flp_logits_logp_call *call, int64_t *bad_count, int64_t *bad_first)
{
    group work = { .call = call, .chunks = flp_int64_divide_up(call->params.vocab, FLP_ROW_CHUNK_COLUMNS) };
    int64_t most = GROUP_CHUNKS / work.chunks > 0 ? GROUP_CHUNKS / work.chunks : 1;
    flp_status status = FLP_OK;

    if (most > call->params.rows)
        most = call->params.rows;
    work.rows = malloc((size_t)most * sizeof(*work.rows));
    work.sums = malloc((size_t)(most * work.chunks) * sizeof(*work.sums));
    if (work.rows && work.sums)
        for (int64_t first = 0; first < call->params.rows; first += work.count) {
            work.count = call->params.rows - first < most ? call->params.rows - first : most;
            run_group(pool, &work, first, bad_count, bad_first);
        }
    else
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path: the sums of %" PRId64 " rows", most);
    free(work.rows);
    free(work.sums);
    return status;
}

const char *flp_logits_logp_cpu_numerics(void)
{
    return "logits_logp:cpu4";
}
