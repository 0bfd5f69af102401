/* linear_logp on the CPU path. The rows are processed in groups; each group is divided into units of some sets of rows and one split of the vocabulary, which
 * the thread pool runs. */
#include "operators/linear/linear_logp_cpu.h"
#include "base/status.h"
#include "cpu/large_memory.h"
#include "operators/linear/logit_chunk.h"
#include "operators/linear/row_set.h"
#include "operators/linear/vocab_shard.h"
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_ROWS = 1024, /* rows that share one copy of the weight */
    GROUP_SETS = GROUP_ROWS / FLP_LANES,
    MOST_SPLITS = 64,    /* a fixed number, because the order in which the chunks are summed decides a row's bits */
    UNITS_PER_THREAD = 4 /* at least, if possible, so that all threads finish at about the same time */
};

typedef struct {
    const flp_linear_logp_problem *problem;
    const flp_linear_logp_args *args;
    flp_linear_logp_more more;
    flp_thread_pool *pool;

    const flp_microkernel *kernel;
    int64_t chunks; /* of the vocabulary */
    int splits;

    int rows;                /* of the group: those whose logits are computed */
    int64_t first_set;       /* of the group; sets are numbered through all groups */
    int sets, parts;         /* a set has sixteen rows; a unit has the sets of one part */
    int64_t row[GROUP_ROWS]; /* their indices in the caller's arrays */
    int64_t target[GROUP_ROWS];
    flp_row_targets targets[GROUP_SETS];
    flp_row_transform transform[GROUP_SETS];

    int64_t words;                  /* 32-bit words of a row, as the microkernel reads it */
    float *hidden;                  /* [GROUP_SETS][words][16] */
    flp_row_statistics *statistics; /* [splits][GROUP_SETS] */
    double *sums;                   /* [splits][GROUP_SETS][16]: sum_v w[v] z[v]; NULL where it is not requested */
    double class_weight_sum;
    float *scratch; /* for each thread: weight panel, logits of the group, bias */
} job;

enum { LOGIT_FLOATS = GROUP_SETS * FLP_CHUNK_COLUMNS * FLP_LANES, BIAS_FLOATS = 256, SCRATCH_FLOATS = FLP_CHUNK_PANEL_FLOATS + LOGIT_FLOATS + BIAS_FLOATS };

/* ---- before a group: its rows, and their hidden as the microkernel reads it ---- */

static flp_linear_partial *partial_of(const job *work, int64_t row)
{
    return (flp_linear_partial *)(void *)work->args->partials + row;
}

/* Writes the results of a row without a valid target that do not depend on its logits. A shard leaves the counting of bad targets to the merge. */
static void answer_row(const job *work, int64_t row, flp_row_kind kind, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_logp_args *args = work->args;
    const int blanks = work->more.blanks_others;
    if (args->partials != NULL) {
        *partial_of(work, row) = flp_vocab_shard_nothing();
        return;
    }
    args->logp[row] = kind == FLP_ROW_IGNORED ? 0 : NAN;
    if (kind == FLP_ROW_BAD)
        flp_row_count_bad(row, bad_count, bad_first);
    if (blanks && args->lse != NULL)
        args->lse[row] = 0;
    if (blanks && args->entropy != NULL)
        args->entropy[row] = 0;
}

/* Collects rows from `next` on until the group is full; returns the first row that was not looked at. Rows of which no result needs the logits are left out. */
static int64_t collect_rows(job *work, int64_t next, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_logp_args *args = work->args;
    const int reads = args->lse != NULL || args->entropy != NULL || args->argmax != NULL || args->partials != NULL;
    const int always = !work->more.blanks_others && reads;
    work->rows = 0;
    for (; next < args->rows && work->rows < GROUP_ROWS; next++) {
        int64_t target = flp_row_set_target(work->problem, work->args, next);
        flp_row_kind kind = flp_row_kind_of(work->problem, work->args, target);
        if (kind != FLP_ROW_VALID)
            answer_row(work, next, kind, bad_count, bad_first);
        if (!always && kind != FLP_ROW_VALID)
            continue;
        work->row[work->rows] = next;
        work->target[work->rows++] = target;
    }
    return next;
}

/* The index of a row's target among the problem's entries; -1: the target is not valid, or is in another shard. */
static int32_t target_entry(const job *work, int slot)
{
    if (flp_row_kind_of(work->problem, work->args, work->target[slot]) != FLP_ROW_VALID)
        return -1;
    return flp_vocab_shard_entry(work->problem, work->target[slot]);
}

static void gather_set(void *data, int64_t set, int thread)
{
    (void)thread;
    job *work = data;
    const int64_t *row = work->row + set * FLP_LANES;
    int left = work->rows - (int)set * FLP_LANES, count = left < FLP_LANES ? left : FLP_LANES;
    flp_row_set_gather(work->kernel, work->problem, work->args, row, count, work->hidden + set * work->words * FLP_LANES);
    flp_row_set_transform(work->problem, work->args, row, count, &work->transform[set]);
    work->transform[set].wants_moment = work->args->partials != NULL ? work->problem->entropy : work->args->entropy != NULL;
    for (int lane = 0; lane < FLP_LANES; lane++)
        work->targets[set].index[lane] = lane < count ? target_entry(work, (int)set * FLP_LANES + lane) : -1;
}

/* ---- a unit: some sets of rows and one split of the vocabulary ---- */

/* logits: z, after the softcap. */
static void add_sums(const float *class_weights, const float *logits, int width, double *sums)
{
    for (int v = 0; v < width; v++) {
        double weight = class_weights != NULL ? class_weights[v] : 1;
        for (int lane = 0; lane < FLP_LANES; lane++)
            sums[lane] += weight * logits[v * FLP_LANES + lane];
    }
}

/* Adds one chunk's logits to the statistics of one set of rows. */
static void add_logits(job *work, int split, int set, int64_t first, int width, const float *bias, float *logits)
{
    flp_row_statistics_add(&work->statistics[split * GROUP_SETS + set], &work->transform[set], bias, logits, width, (int32_t)first, &work->targets[set]);
    if (work->sums != NULL)
        add_sums(work->more.class_weights != NULL ? work->more.class_weights + first : NULL, logits, width,
                 work->sums + (split * GROUP_SETS + set) * FLP_LANES);
}

/* Where the unit's logits of a chunk are computed; *stride: from one set to the next. With neither bias nor softcap, the statistics do not change the logits:
 * those that are to be saved are then computed in their place, and need no copy. */
static float *place_logits(const job *work, int first_set, int end_set, int64_t chunk, float *scratch, int64_t *stride)
{
    const flp_saved_logits *saved = work->more.saved;
    int changed = work->problem->softcap != 0 || work->problem->bias_dtype != FLP_NONE;
    *stride = FLP_CHUNK_COLUMNS * FLP_LANES;
    if (saved == NULL || changed || work->first_set + end_set > saved->sets)
        return scratch;
    *stride *= saved->chunks;
    return flp_saved_logits_at(saved, work->first_set + first_set, chunk);
}

static void save_logits(const job *work, int set, int64_t chunk, int width, const float *logits)
{
    const flp_saved_logits *saved = work->more.saved;
    if (saved == NULL || work->first_set + set >= saved->sets)
        return;
    float *to = flp_saved_logits_at(saved, work->first_set + set, chunk);
    if (to != logits)
        memcpy(to, logits, (size_t)width * FLP_LANES * sizeof *logits);
}

static void run_unit(void *data, int64_t index, int thread)
{
    job *work = data;
    const flp_linear_logp_problem *problem = work->problem;
    int split = (int)(index % work->splits), part = (int)(index / work->splits);
    int first_set = part * work->sets / work->parts, end_set = (part + 1) * work->sets / work->parts;
    float *panel = work->scratch + (int64_t)thread * SCRATCH_FLOATS;
    float *scratch = panel + FLP_CHUNK_PANEL_FLOATS, *bias = scratch + LOGIT_FLOATS;

    for (int set = first_set; set < end_set; set++)
        flp_row_statistics_clear(&work->statistics[split * GROUP_SETS + set]);
    for (int i = first_set * FLP_LANES; work->sums != NULL && i < end_set * FLP_LANES; i++)
        work->sums[split * GROUP_SETS * FLP_LANES + i] = 0;
    for (int64_t c = split * work->chunks / work->splits; c < (split + 1) * work->chunks / work->splits; c++) {
        int64_t first = c * FLP_CHUNK_COLUMNS, left = problem->vocab - first, stride;
        int width = left < FLP_CHUNK_COLUMNS ? (int)left : FLP_CHUNK_COLUMNS;
        float *logits = place_logits(work, first_set, end_set, c, scratch, &stride);
        flp_logit_chunk_load_bias(problem, work->args->bias, first, width, bias);
        flp_logit_chunk_compute(work->kernel, problem, work->args->weight, first, width, work->hidden + first_set * work->words * FLP_LANES,
                                end_set - first_set, panel, logits, stride);
        for (int set = first_set; set < end_set; set++) {
            float *of_set = logits + (set - first_set) * stride;
            save_logits(work, set, c, width, of_set);
            add_logits(work, split, set, first, width, bias, of_set);
        }
    }
}

/* ---- after the units: the merge of the splits in index order, then the outputs ---- */

/* sum_v w[v] z[v]. The splits' sums lack the temperature, which is in scale. */
static double logit_sum_of(const job *work, int slot, double scale)
{
    double sum = 0;
    for (int split = 0; split < work->splits; split++)
        sum += work->sums[split * GROUP_SETS * FLP_LANES + slot];
    return sum * scale * flp_ln_2;
}

static float uniform_of(const job *work, int slot, double lse, double scale)
{
    return (float)((work->class_weight_sum * lse - logit_sum_of(work, slot, scale)) / (double)work->problem->vocab);
}

/* The partial has the transform's scale, which is in fp32, because the sums were computed with it. */
static void leave_partial(const job *work, int slot, const flp_row_statistics *total)
{
    const int lane = slot % FLP_LANES, set = slot / FLP_LANES, known = work->targets[set].index[lane] >= 0;
    const flp_other_sums others = {
        .origin = total->origin.lane[lane], .sum = total->sum[lane], .moment = total->moment[lane], .scale = work->transform[set].scale.lane[lane]
    };
    flp_linear_partial *part = partial_of(work, work->row[slot]);
    *part = flp_vocab_shard_partial(&others, known ? &work->targets[set].z[lane] : NULL);
    if (!work->problem->entropy)
        part->moment = 0;
    if (work->sums != NULL)
        part->logit_sum = (float)logit_sum_of(work, slot, others.scale);
    if (work->problem->argmax && work->problem->vocab > 0) {
        part->largest = total->largest.lane[lane];
        part->largest_index = (int32_t)(work->problem->vocab_first + total->largest_index.lane[lane]);
    }
}

/* total: the merged statistics of the row's set. */
static void finish_row(const job *work, int slot, const flp_row_statistics *total)
{
    const flp_linear_logp_args *args = work->args;
    const int64_t row = work->row[slot];
    const int lane = slot % FLP_LANES, known = work->targets[slot / FLP_LANES].index[lane] >= 0;
    const flp_other_sums others = {
        .origin = total->origin.lane[lane], .sum = total->sum[lane], .moment = total->moment[lane], .scale = flp_row_scale(flp_row_temperature(work->args, row))
    };
    const flp_row_shares shares = known ? flp_row_shares_of(&others, work->targets[slot / FLP_LANES].z[lane]) : flp_row_shares_of_others(&others);
    if (args->lse != NULL)
        args->lse[row] = (float)shares.lse;
    if (work->sums != NULL)
        work->more.uniform[row] = uniform_of(work, slot, shares.lse, others.scale);
    if (args->entropy != NULL)
        args->entropy[row] = (float)shares.entropy;
    if (args->argmax != NULL)
        args->argmax[row] = total->largest_index.lane[lane];
    if (known)
        args->logp[row] = (float)shares.logp;
    if (known && work->more.shares != NULL)
        work->more.shares[row] = shares;
}

static void finish_set(void *data, int64_t index, int thread)
{
    (void)thread;
    job *work = data;
    flp_row_statistics total = work->statistics[index];
    for (int split = 1; split < work->splits; split++)
        flp_row_statistics_merge(&total, &work->statistics[split * GROUP_SETS + index], &work->transform[index]);
    for (int lane = 0; lane < FLP_LANES; lane++) {
        int slot = (int)index * FLP_LANES + lane;
        if (slot >= work->rows)
            break;
        if (work->args->partials != NULL)
            leave_partial(work, slot, &total);
        else
            finish_row(work, slot, &total);
    }
}

static void run_group(job *work)
{
    int wanted = UNITS_PER_THREAD * flp_thread_pool_threads(work->pool);
    work->sets = (work->rows + FLP_LANES - 1) / FLP_LANES;
    work->parts = (wanted + work->splits - 1) / work->splits;
    if (work->parts > work->sets)
        work->parts = work->sets;
    flp_thread_pool_run(work->pool, work->sets, gather_set, work);
    flp_thread_pool_run(work->pool, (int64_t)work->splits * work->parts, run_unit, work);
    flp_thread_pool_run(work->pool, work->sets, finish_set, work);
}

/* ---- memory ---- */

static double class_weight_sum(const job *work)
{
    double sum = 0;
    for (int64_t v = 0; v < work->problem->vocab; v++)
        sum += work->more.class_weights != NULL ? work->more.class_weights[v] : 1;
    return sum;
}

static flp_status prepare(job *work)
{
    int64_t sets = (work->args->rows + FLP_LANES - 1) / FLP_LANES;
    if (sets > GROUP_SETS)
        sets = GROUP_SETS;
    int threads = flp_thread_pool_threads(work->pool), wants_sums = work->more.uniform != NULL || work->more.logit_sums;
    work->kernel = flp_microkernel_of(work->problem->dtype);
    work->words = flp_microkernel_words(work->kernel, work->problem->hidden);
    work->chunks = (work->problem->vocab + FLP_CHUNK_COLUMNS - 1) / FLP_CHUNK_COLUMNS;
    work->splits = work->chunks < MOST_SPLITS ? (int)work->chunks : MOST_SPLITS;
    if (work->splits == 0) /* an empty shard */
        work->splits = 1;
    work->hidden = flp_large_memory_allocate(sets * work->words * FLP_LANES, sizeof(float));
    work->statistics = flp_large_memory_allocate((int64_t)work->splits * GROUP_SETS, sizeof(flp_row_statistics));
    work->scratch = flp_large_memory_allocate((int64_t)threads * SCRATCH_FLOATS, sizeof(float));
    if (wants_sums) {
        work->sums = flp_large_memory_allocate((int64_t)work->splits * GROUP_SETS * FLP_LANES, sizeof *work->sums);
        work->class_weight_sum = class_weight_sum(work);
    }
    if (work->hidden == NULL || work->statistics == NULL || work->scratch == NULL || (wants_sums && work->sums == NULL))
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path: %" PRId64 " rows of %" PRId64 " floats, %d threads", sets * FLP_LANES,
                               work->problem->hidden, threads);
    return FLP_OK;
}

flp_status flp_linear_logp_cpu(flp_thread_pool *pool, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                               const flp_linear_logp_more *more, int64_t *bad_count, int64_t *bad_first)
{
    if (args->rows == 0)
        return FLP_OK;
    job *work = calloc(1, sizeof *work);
    if (work == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path");
    work->problem = problem;
    work->args = args;
    work->pool = pool;
    if (more != NULL)
        work->more = *more;
    flp_status status = prepare(work);
    for (int64_t next = 0; status == FLP_OK && next < args->rows;) {
        next = collect_rows(work, next, bad_count, bad_first);
        if (work->rows == 0)
            continue;
        run_group(work);
        work->first_set += work->sets;
    }
    free(work->hidden);
    free(work->statistics);
    free(work->sums);
    free(work->scratch);
    free(work);
    return status;
}

void flp_linear_logp_cpu_numerics(flp_dtype dtype, flp_text *text)
{
    flp_text_append(text, "linear_logp:cpu4:%s", flp_microkernel_of(dtype)->arithmetic);
}
