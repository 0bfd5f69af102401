/* The phases of linear_logp's backward on the CPU path that write: sums in fp32 become gradients in their own dtypes, rounded once. */
#include "base/dtype.h"
#include "base/int64.h"
#include "cpu/convert.h"
#include "cpu/prefetch.h"
#include "operators/linear/linear_logp_backward_job.h"
#include <string.h>

enum { LINE = FLP_BACKWARD_LINE_PANELS * FLP_LANES };

/* Writes line [count] to the gradient from element `at` on; adds: adds it to what is there. line is changed. */
static void store_line(flp_dtype dtype, int adds, float *line, int count, void *gradient, int64_t at)
{
    unsigned char *to = (unsigned char *)gradient + at * flp_dtype_bytes(dtype);
    float old[LINE];
    if (adds) {
        flp_convert_to_f32(dtype, to, old, (size_t)count);
        for (int i = 0; i < count; i++)
            line[i] += old[i];
    }
    flp_convert_from_f32(dtype, line, to, (size_t)count);
}

/* ---- grad_hidden ---- */

static void store_set(void *data, int64_t set, int thread)
{
    (void)thread;
    flp_backward_job *job = data;
    const flp_linear_logp_backward_problem *problem = job->problem;
    int64_t depth = problem->forward.hidden, left = job->rows - set * FLP_LANES;
    const float *sums = job->grad_hidden + set * depth * FLP_LANES;
    float line[LINE];
    for (int lane = 0; lane < FLP_LANES && lane < left; lane++) {
        for (int64_t begin = 0; begin < depth; begin += LINE) {
            int count = depth - begin < LINE ? (int)(depth - begin) : LINE;
            for (int k = 0; k < count; k++)
                line[k] = sums[(begin + k) * FLP_LANES + lane];
            store_line(problem->grad_hidden, problem->accumulate & FLP_ACCUMULATE_HIDDEN, line, count, job->args->grad_hidden,
                       job->row[set * FLP_LANES + lane] * problem->grad_hidden_stride + begin);
        }
    }
}

void flp_backward_store_hidden(flp_backward_job *job)
{
    flp_thread_pool_run(job->pool, (job->rows + FLP_LANES - 1) / FLP_LANES, store_set, job);
}

/* ---- grad_weight and grad_bias ---- */

/* Stores, for each vocabulary entry, the components of several panels as one line. Written panel by panel, each cache line would be written twice. */
static void store_panels_as_rows(const flp_backward_job *job, const float *sums, int64_t first, int width, int64_t component, int count)
{
    const flp_linear_logp_backward_problem *problem = job->problem;
    const int bytes = flp_dtype_bytes(problem->grad_weight);
    float line[LINE];
    for (int v = 0; v < width; v++) {
        if (v + FLP_PREFETCH_ROWS < width)
            flp_prefetch_to_write((unsigned char *)job->args->grad_weight + ((first + v + FLP_PREFETCH_ROWS) * problem->grad_weight_stride + component) * bytes,
                                  (int64_t)count * bytes);
        for (int k = 0; k < count; k += FLP_LANES)
            memcpy(line + k, sums + k / FLP_LANES * FLP_BACKWARD_LOGITS + v * FLP_LANES, FLP_LANES * sizeof *line);
        store_line(problem->grad_weight, problem->accumulate & FLP_ACCUMULATE_WEIGHT, line, count, job->args->grad_weight,
                   (first + v) * problem->grad_weight_stride + component);
    }
}

static void store_panel_as_columns(const flp_backward_job *job, const float *sums, int64_t first, int width, int64_t component, int count)
{
    const flp_linear_logp_backward_problem *problem = job->problem;
    float line[LINE];
    for (int k = 0; k < count; k++) {
        for (int v = 0; v < width; v++)
            line[v] = sums[v * FLP_LANES + k];
        store_line(problem->grad_weight, problem->accumulate & FLP_ACCUMULATE_WEIGHT, line, width, job->args->grad_weight,
                   (component + k) * problem->grad_weight_stride + first);
    }
}

void flp_backward_store_weight(const flp_backward_job *job, int chunk, int64_t first, int count, const float *sums)
{
    const int64_t component = first * FLP_LANES, left = job->problem->forward.hidden - component;
    const int components = (int)flp_int64_smaller(left, count * FLP_LANES);
    int64_t entry;
    int width = flp_backward_chunk(job, chunk, &entry);
    if (job->problem->forward.weight_layout == FLP_VOCAB_HIDDEN) {
        store_panels_as_rows(job, sums, entry, width, component, components);
        return;
    }
    for (int at = 0; at < components; at += FLP_LANES)
        store_panel_as_columns(job, sums + at / FLP_LANES * FLP_BACKWARD_LOGITS, entry, width, component + at,
                               (int)flp_int64_smaller(components - at, FLP_LANES));
}

static void store_bias_chunk(void *data, int64_t chunk, int thread)
{
    (void)thread;
    flp_backward_job *job = data;
    const flp_linear_logp_backward_problem *problem = job->problem;
    float line[LINE];
    int64_t first;
    int width = flp_backward_chunk(job, (int)chunk, &first);
    for (int v = 0; v < width; v++)
        line[v] = (float)job->grad_bias[chunk * FLP_CHUNK_COLUMNS + v];
    store_line(problem->grad_bias, problem->accumulate & FLP_ACCUMULATE_BIAS, line, width, job->args->grad_bias, first);
}

void flp_backward_store_bias(flp_backward_job *job)
{
    flp_thread_pool_run(job->pool, job->block_chunks, store_bias_chunk, job);
}
