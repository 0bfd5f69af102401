/* linear_logp's backward on the CPU path: which rows are valid, in which order the phases run, and their memory. */
#include "operators/linear/linear_logp_cpu.h"
#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "cpu/large_memory.h"
#include "operators/linear/linear_logp_backward_job.h"
#include "operators/linear/linear_logp_plan.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- memory ---- */

/* Stores the address of count x bytes in *to. Returns 0 where there is no memory. */
static int allocate(void *to, int64_t count, size_t bytes)
{
    void *made = flp_large_memory_allocate(count, bytes);
    memcpy(to, &made, sizeof made);
    return made != NULL;
}

static flp_status prepare(flp_backward_job *job)
{
    const flp_linear_logp_backward_problem *problem = job->problem;
    int64_t depth = problem->forward.hidden, sets = (job->args->rows + FLP_LANES - 1) / FLP_LANES;
    int64_t group_sets = flp_int64_smaller(sets, FLP_BACKWARD_GROUP_SETS), block_chunks;
    int threads = flp_thread_pool_threads(job->pool);
    job->kernel = flp_microkernel_of(problem->forward.dtype);
    job->words = flp_microkernel_words(job->kernel, depth);
    job->chunks = (problem->forward.vocab + FLP_CHUNK_COLUMNS - 1) / FLP_CHUNK_COLUMNS;
    job->panels = (depth + FLP_LANES - 1) / FLP_LANES;
    block_chunks = flp_int64_smaller(job->chunks, FLP_BACKWARD_BLOCK_CHUNKS);
    int complete = allocate(&job->row, job->args->rows, sizeof *job->row) && allocate(&job->hidden_sets, group_sets * job->words * FLP_LANES, sizeof(float)) &&
                   allocate(&job->derivatives, block_chunks * FLP_BACKWARD_GROUP_SETS * FLP_BACKWARD_LOGITS, sizeof(float)) &&
                   allocate(&job->scratch, (int64_t)threads * FLP_BACKWARD_SCRATCH, sizeof(float));
    if (job->kernel->packed == 2)
        complete = complete && allocate(&job->pairs, block_chunks * FLP_BACKWARD_GROUP_SETS * (FLP_BACKWARD_LOGITS / 2), sizeof(float));
    if (problem->grad_hidden != FLP_NONE)
        complete = complete && allocate(&job->grad_hidden, sets * depth * FLP_LANES, sizeof(float));
    if (problem->grad_weight != FLP_NONE)
        complete = complete && allocate(&job->hidden_panels, job->panels * flp_backward_panel_words(job), sizeof(float));
    if (problem->grad_weight != FLP_NONE && job->args->rows > FLP_BACKWARD_GROUP_ROWS)
        complete = complete && allocate(&job->grad_weight, block_chunks * job->panels * FLP_BACKWARD_LOGITS, sizeof(float));
    if (problem->grad_bias != FLP_NONE)
        complete = complete && allocate(&job->grad_bias, block_chunks * FLP_CHUNK_COLUMNS, sizeof(double));
    if (!complete)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path: gradients of %" PRId64 " rows of %" PRId64 " floats, %d threads",
                               job->args->rows, depth, threads);
    return FLP_OK;
}

static void release(flp_backward_job *job)
{
    free(job->row);
    free(job->hidden_sets);
    free(job->hidden_panels);
    free(job->derivatives);
    free(job->pairs);
    free(job->grad_hidden);
    free(job->grad_weight);
    free(job->grad_bias);
    free(job->scratch);
    free(job);
}

/* ---- rows ---- */

static void clear_row(const flp_backward_job *job, int64_t row)
{
    const flp_linear_logp_backward_problem *problem = job->problem;
    int64_t bytes = flp_dtype_bytes(problem->grad_hidden);
    if (problem->grad_hidden == FLP_NONE || problem->accumulate & FLP_ACCUMULATE_HIDDEN)
        return;
    memset((unsigned char *)job->args->grad_hidden + row * problem->grad_hidden_stride * bytes, 0, (size_t)(problem->forward.hidden * bytes));
}

/* Collects the valid rows. The others, and in an empty shard all rows, get their grad_hidden, zeros, here. */
static void collect_rows(flp_backward_job *job, int64_t *bad_count, int64_t *bad_first)
{
    for (int64_t row = 0; row < job->args->rows; row++) {
        int64_t target = flp_row_set_target(&job->problem->forward, &job->inputs, row);
        flp_row_kind kind = flp_row_kind_of(&job->problem->forward, &job->inputs, target);
        if (kind == FLP_ROW_VALID && job->chunks > 0)
            job->row[job->rows++] = row;
        else
            clear_row(job, row);
        if (kind == FLP_ROW_BAD)
            flp_row_count_bad(row, bad_count, bad_first);
    }
}

/* ---- order ---- */

static void run_group(flp_backward_job *job)
{
    job->group_rows = (int)flp_int64_smaller(job->rows - job->first_row, FLP_BACKWARD_GROUP_ROWS);
    job->sets = (job->group_rows + FLP_LANES - 1) / FLP_LANES;
    /* A single group is gathered for the first block, and stays for the others. */
    if (job->first_chunk == 0 || job->rows > FLP_BACKWARD_GROUP_ROWS)
        flp_backward_gather(job);
    flp_backward_differentiate(job);
    if (job->grad_hidden != NULL)
        flp_backward_add_to_hidden(job);
    if (job->problem->grad_weight != FLP_NONE)
        flp_backward_add_to_weight(job);
    if (job->grad_bias != NULL)
        flp_backward_add_to_bias(job);
}

static void run(flp_backward_job *job)
{
    for (job->first_chunk = 0; job->first_chunk < job->chunks; job->first_chunk += job->block_chunks) {
        job->block_chunks = (int)flp_int64_smaller(job->chunks - job->first_chunk, FLP_BACKWARD_BLOCK_CHUNKS);
        job->first_row = 0;
        do { /* a group without rows writes zeros */
            run_group(job);
            job->first_row += FLP_BACKWARD_GROUP_ROWS;
        } while (job->first_row < job->rows);
        if (job->grad_bias != NULL)
            flp_backward_store_bias(job);
    }
    if (job->grad_hidden != NULL)
        flp_backward_store_hidden(job);
}

flp_status flp_linear_logp_backward_cpu(flp_thread_pool *pool, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                        const flp_backward_more *more, int64_t *bad_count, int64_t *bad_first)
{
    flp_backward_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for the CPU path");
    job->problem = problem;
    job->args = args;
    job->uniform = more != NULL ? more->uniform : NULL;
    job->shares = more != NULL ? more->shares : NULL;
    job->saved = more != NULL ? more->saved : NULL;
    memcpy(&job->inputs, args, FLP_LINEAR_INPUT_BYTES);
    job->pool = pool;
    flp_status status = prepare(job);
    if (status == FLP_OK) {
        collect_rows(job, bad_count, bad_first);
        run(job);
    }
    release(job);
    return status;
}

void flp_linear_logp_backward_cpu_numerics(flp_dtype dtype, flp_text *text)
{
    flp_text_append(text, "linear_logp_backward:cpu3:%s", flp_microkernel_of(dtype)->arithmetic);
}
