/* The phases of linear_logp's backward on the CPU path that compute: rows, derivatives by the logits, and their products. */
#include "base/int64.h"
#include "cpu/convert.h"
#include "operators/linear/linear_logp_backward_job.h"
#include "operators/linear/vocab_shard.h"
#include <math.h>
#include <string.h>

enum { UNITS_PER_THREAD = 4 /* at least, if possible, so that all threads finish at about the same time */ };

/* Runs a phase that has `units` units: divides each into parts, at most `most`, such that all threads have work. */
static void run_parts(flp_backward_job *job, int64_t units, int64_t most, void (*task)(void *data, int64_t index, int thread))
{
    int64_t wanted = UNITS_PER_THREAD * flp_thread_pool_threads(job->pool), parts = (wanted + units - 1) / units;
    job->parts = (int)(parts < most ? parts : most);
    flp_thread_pool_run(job->pool, units * job->parts, task, job);
}

/* ---- the group's rows ---- */

/* The row's statistics: those that the forward left, or else from the caller's lse, entropy and logp. */
static void fill_shares(const flp_backward_job *job, int64_t i, flp_logit_gradient_row *row)
{
    const flp_linear_logp_backward_args *args = job->args;
    row->has_logp = job->shares != NULL || args->logp != NULL;
    if (job->shares != NULL) {
        row->shares = job->shares[i];
        return;
    }
    row->shares = flp_row_shares_of_lse(args->lse[i], args->g_entropy != NULL ? args->entropy[i] : 0, NAN, flp_row_scale(row->temperature));
    if (args->logp != NULL)
        row->shares.logp = args->logp[i];
}

static void fill_gradient(const flp_backward_job *job, const int64_t *row, int count, flp_logit_gradient *gradient)
{
    const flp_linear_logp_backward_args *args = job->args;
    const flp_linear_logp_problem *forward = &job->problem->forward;
    flp_row_set_transform(forward, &job->inputs, row, count, &gradient->transform);
    for (int lane = 0; lane < FLP_LANES; lane++) {
        flp_logit_gradient_row of = { .temperature = 1, .target = -1 };
        if (lane < count) {
            int64_t i = row[lane];
            of = (flp_logit_gradient_row){ .g_logp = args->g_logp[i],
                                           .temperature = flp_row_temperature(&job->inputs, i),
                                           .target = flp_vocab_shard_entry(forward, flp_row_set_target(forward, &job->inputs, i)) };
            if (args->g_lse != NULL)
                of.g_lse = args->g_lse[i];
            if (job->uniform != NULL)
                of.g_sum = job->uniform->g_sum[i];
            if (args->g_entropy != NULL)
                of.g_entropy = args->g_entropy[i];
            fill_shares(job, i, &of);
        }
        flp_logit_gradient_set(gradient, lane, &of);
    }
}

/* Two rows in each word, the first in the low half; an odd last row is paired with zeros. */
static void fill_pair_panels(const flp_backward_job *job, int64_t set, const int64_t *row, int count)
{
    const flp_linear_logp_problem *forward = &job->problem->forward;
    const unsigned char *hidden = job->args->hidden;
    int64_t row_bytes = forward->hidden_stride * (int64_t)sizeof(uint16_t);
    for (int lane = 0; lane < count; lane += 2) {
        for (int64_t panel = 0; panel < job->panels; panel++) {
            uint16_t low[FLP_LANES] = { 0 }, high[FLP_LANES] = { 0 };
            uint32_t pairs[FLP_LANES];
            int64_t left = forward->hidden - panel * FLP_LANES;
            size_t bytes = (size_t)(left < FLP_LANES ? left : FLP_LANES) * sizeof *low;
            memcpy(low, hidden + row[lane] * row_bytes + panel * (int64_t)sizeof low, bytes);
            if (lane + 1 < count)
                memcpy(high, hidden + row[lane + 1] * row_bytes + panel * (int64_t)sizeof high, bytes);
            for (int i = 0; i < FLP_LANES; i++)
                pairs[i] = low[i] | (uint32_t)high[i] << 16;
            memcpy(job->hidden_panels + panel * flp_backward_panel_words(job) + (set * FLP_LANES + lane) / 2 * FLP_LANES, pairs, sizeof pairs);
        }
    }
}

/* The set's rows with sixteen components side by side; the last panel is padded with zeros. */
static void fill_panels(const flp_backward_job *job, int64_t set, const int64_t *row, int count)
{
    const flp_linear_logp_problem *forward = &job->problem->forward;
    int bytes = flp_dtype_bytes(forward->dtype);
    for (int lane = 0; lane < count; lane++) {
        const unsigned char *from = (const unsigned char *)job->args->hidden + row[lane] * forward->hidden_stride * bytes;
        for (int64_t panel = 0; panel < job->panels; panel++) {
            float *to = job->hidden_panels + (panel * FLP_BACKWARD_GROUP_ROWS + set * FLP_LANES + lane) * FLP_LANES;
            int64_t left = forward->hidden - panel * FLP_LANES, some = left < FLP_LANES ? left : FLP_LANES;
            flp_convert_to_f32(forward->dtype, from + panel * FLP_LANES * bytes, to, (size_t)some);
            memset(to + some, 0, (size_t)(FLP_LANES - some) * sizeof *to);
        }
    }
}

static void gather_set(void *data, int64_t set, int thread)
{
    (void)thread;
    flp_backward_job *job = data;
    const flp_linear_logp_problem *forward = &job->problem->forward;
    const int64_t *row = job->row + job->first_row + set * FLP_LANES;
    int left = job->group_rows - (int)set * FLP_LANES, count = left < FLP_LANES ? left : FLP_LANES;
    flp_row_set_gather(job->kernel, forward, &job->inputs, row, count, job->hidden_sets + set * job->words * FLP_LANES);
    fill_gradient(job, row, count, &job->gradient[set]);
    if (job->hidden_panels != NULL)
        (job->kernel->packed == 2 ? fill_pair_panels : fill_panels)(job, set, row, count);
}

void flp_backward_gather(flp_backward_job *job)
{
    flp_thread_pool_run(job->pool, job->sets, gather_set, job);
}

/* ---- derivatives by the logits: a unit is a chunk and some sets ---- */

/* The class weights of the chunk's entries, or ones; NULL where no derivative depends on them. */
static const float *uniform_weights(const flp_backward_job *job, int64_t first, int width, float *ones)
{
    if (job->uniform == NULL)
        return NULL;
    if (job->uniform->class_weights != NULL)
        return job->uniform->class_weights + first;
    for (int v = 0; v < width; v++)
        ones[v] = 1;
    return ones;
}

/* Keeps the rounding error of the derivative by each row's target, for the products to add: for a likely token, the gradient depends mostly on that
 * derivative. */
static void keep_residuals(flp_backward_job *job, int set, int64_t first, int width, const float *derivatives)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        int64_t v = job->gradient[set].target.lane[lane] - first;
        if (v < 0 || v >= width)
            continue;
        float exact = derivatives[v * FLP_LANES + lane], rounded = flp_convert_bf16_to_f32(flp_convert_f32_to_bf16(exact));
        job->residual[set * FLP_LANES + lane] = isfinite(rounded) ? exact - rounded : 0;
    }
}

/* The number of the group's sets of which the forward has saved the logits. */
static int saved_sets(const flp_backward_job *job)
{
    int64_t left = job->saved != NULL ? job->saved->sets - job->first_row / FLP_LANES : 0;
    return (int)(left < 0 ? 0 : left < job->sets ? left : job->sets);
}

/* Computes a set's derivatives from its logits. With pairs, the products read them in bf16: the fp32 derivatives are then kept for grad_bias alone, and without
 * it are only passed through `own` [FLP_BACKWARD_LOGITS]. */
static void differentiate_set(flp_backward_job *job, int chunk, int set, const float *bias, const float *weights, const float *logits, float *own)
{
    float *derivatives = job->pairs == NULL || job->grad_bias != NULL ? flp_backward_derivatives(job, chunk, set) : own;
    const int vectors = flp_vector_width();
    int64_t first;
    int width = flp_backward_chunk(job, chunk, &first);

    flp_logit_gradient_apply_by(vectors, &job->gradient[set], bias, weights, logits, width, (int32_t)first, derivatives);
    if (job->pairs == NULL)
        return;
    flp_logit_gradient_pack_by(vectors, derivatives, width, job->group_rows - set * FLP_LANES, flp_backward_pairs(job, chunk, set));
    keep_residuals(job, set, first, width, derivatives);
}

static void differentiate_unit(void *data, int64_t index, int thread)
{
    flp_backward_job *job = data;
    const flp_linear_logp_problem *forward = &job->problem->forward;
    int chunk = (int)(index % job->block_chunks), part = (int)(index / job->block_chunks);
    int first_set = part * job->sets / job->parts, end_set = (part + 1) * job->sets / job->parts, saved = saved_sets(job);
    float *panel = job->scratch + (int64_t)thread * FLP_BACKWARD_SCRATCH, *bias = panel + FLP_CHUNK_PANEL_FLOATS;
    int unsaved = saved < first_set ? first_set : saved < end_set ? saved : end_set;
    int64_t first, before = job->first_row / FLP_LANES;
    int width = flp_backward_chunk(job, chunk, &first);
    const float *weights = uniform_weights(job, first, width, bias + FLP_CHUNK_DEPTH);

    flp_logit_chunk_load_bias(forward, job->args->bias, first, width, bias);
    if (unsaved < end_set)
        flp_logit_chunk_compute(job->kernel, forward, job->args->weight, first, width, job->hidden_sets + unsaved * job->words * FLP_LANES, end_set - unsaved,
                                panel, flp_backward_derivatives(job, chunk, unsaved), FLP_BACKWARD_LOGITS);
    for (int set = first_set; set < end_set; set++)
        differentiate_set(job, chunk, set, bias, weights,
                          set < unsaved ? flp_saved_logits_at(job->saved, before + set, job->first_chunk + chunk) : flp_backward_derivatives(job, chunk, set),
                          panel);
}

void flp_backward_differentiate(flp_backward_job *job)
{
    run_parts(job, job->block_chunks, job->sets, differentiate_unit);
}

/* ---- grad_hidden: a unit is some components and some sets; the weight's block is read transposed ---- */

static int64_t component_blocks(const flp_backward_job *job)
{
    return (job->problem->forward.hidden + FLP_CHUNK_COLUMNS - 1) / FLP_CHUNK_COLUMNS;
}

/* sums [depth][16] += residual x weight, for the set's rows whose target is in the chunk. */
static void add_residuals_to_hidden(const flp_backward_job *job, int set, int64_t first, int width, int64_t begin, int depth, float *sums)
{
    const flp_linear_logp_problem *forward = &job->problem->forward;
    int columns = forward->weight_layout == FLP_HIDDEN_VOCAB;
    int64_t step = columns ? forward->weight_stride : 1;
    for (int lane = 0; lane < FLP_LANES; lane++) {
        int64_t target = job->gradient[set].target.lane[lane];
        if (target < first || target >= first + width)
            continue;
        int64_t at = columns ? begin * forward->weight_stride + target : target * forward->weight_stride + begin;
        const unsigned char *from = (const unsigned char *)job->args->weight + at * (int64_t)sizeof(uint16_t);
        for (int k = 0; k < depth; k++) {
            uint16_t bits;
            memcpy(&bits, from + k * step * (int64_t)sizeof bits, sizeof bits);
            sums[k * FLP_LANES + lane] += job->residual[set * FLP_LANES + lane] * flp_convert_bf16_to_f32(bits);
        }
    }
}

static void hidden_unit(void *data, int64_t index, int thread)
{
    flp_backward_job *job = data;
    const flp_linear_logp_problem *forward = &job->problem->forward;
    int64_t begin = index % component_blocks(job) * FLP_CHUNK_COLUMNS, part = index / component_blocks(job);
    int depth = forward->hidden - begin < FLP_CHUNK_COLUMNS ? (int)(forward->hidden - begin) : FLP_CHUNK_COLUMNS;
    int first_set = (int)(part * job->sets / job->parts), end_set = (int)((part + 1) * job->sets / job->parts);
    float *panel = job->scratch + (int64_t)thread * FLP_BACKWARD_SCRATCH;

    for (int chunk = 0; chunk < job->block_chunks; chunk++) {
        int64_t first;
        int width = flp_backward_chunk(job, chunk, &first);
        flp_weight_block block = flp_weight_block_load_turned(job->kernel, forward, job->args->weight, first, width, begin, depth, end_set - first_set, panel);
        float *sums = job->grad_hidden + (job->first_row / FLP_LANES * forward->hidden + begin) * FLP_LANES;
        const flp_microkernel_operands operands = {
            .depth = flp_microkernel_words(job->kernel, width),
            .hidden = job->pairs != NULL ? flp_backward_pairs(job, chunk, first_set) : flp_backward_derivatives(job, chunk, first_set),
            .hidden_stride = job->pairs != NULL ? FLP_BACKWARD_LOGITS / 2 : FLP_BACKWARD_LOGITS,
            .weight = block.data,
            .entry_stride = block.entry_stride,
            .depth_stride = block.depth_stride,
            .products = sums + first_set * forward->hidden * FLP_LANES,
            .products_stride = forward->hidden * FLP_LANES,
            .accumulate = job->first_chunk + chunk > 0,
        };
        flp_microkernel_multiply(job->kernel, end_set - first_set, depth, &operands);
        for (int set = first_set; job->pairs != NULL && set < end_set; set++)
            add_residuals_to_hidden(job, set, first, width, begin, depth, sums + set * forward->hidden * FLP_LANES);
    }
}

void flp_backward_add_to_hidden(flp_backward_job *job)
{
    run_parts(job, component_blocks(job), job->sets, hidden_unit);
}

/* ---- grad_weight: a unit is a chunk and some lines: panels of hidden that are written together ---- */

static int panel_rows(const flp_backward_job *job, int begin)
{
    return (int)flp_int64_smaller(job->group_rows - begin, FLP_CHUNK_DEPTH);
}

/* panel [FLP_CHUNK_COLUMNS][words of FLP_CHUNK_DEPTH] receives the derivatives of the group's rows begin .. begin + depth - 1, for each vocabulary entry. */
static void load_derivative_pairs(const flp_backward_job *job, int chunk, int width, int begin, int depth, float *panel)
{
    for (int at = 0; at < depth; at += FLP_LANES) {
        const float *from = flp_backward_pairs(job, chunk, (begin + at) / FLP_LANES);
        for (int v = 0; v < width; v++) {
            uint32_t pairs[FLP_LANES];
            uint16_t line[FLP_LANES];
            memcpy(pairs, from + v / 2 * FLP_LANES, sizeof pairs);
            for (int lane = 0; lane < FLP_LANES; lane++)
                line[lane] = (uint16_t)(pairs[lane] >> (v % 2 * 16));
            memcpy(panel + v * (FLP_CHUNK_DEPTH / 2) + at / 2, line, sizeof line);
        }
    }
}

static void load_derivatives(const flp_backward_job *job, int chunk, int width, int begin, int depth, float *panel)
{
    for (int at = 0; at < depth; at += FLP_LANES) {
        const float *from = flp_backward_derivatives(job, chunk, (begin + at) / FLP_LANES);
        for (int v = 0; v < width; v++)
            memcpy(panel + v * FLP_CHUNK_DEPTH + at, from + v * FLP_LANES, FLP_LANES * sizeof *panel);
    }
}

/* sums [width][16] += residual x hidden, for the group's rows begin .. begin + depth - 1 whose target is in the chunk, in their order. */
static void add_residuals_to_weight(const flp_backward_job *job, int64_t first, int width, int begin, int depth, int64_t panel, float *sums)
{
    const flp_linear_logp_problem *forward = &job->problem->forward;
    int64_t left = forward->hidden - panel * FLP_LANES;
    int count = left < FLP_LANES ? (int)left : FLP_LANES;
    for (int i = begin; i < begin + depth; i++) {
        int64_t v = job->gradient[i / FLP_LANES].target.lane[i % FLP_LANES] - first, row = job->row[job->first_row + i];
        float hidden[FLP_LANES];
        if (v < 0 || v >= width)
            continue;
        int64_t at = row * forward->hidden_stride + panel * FLP_LANES;
        flp_convert_to_f32(FLP_BF16, (const unsigned char *)job->args->hidden + at * (int64_t)sizeof(uint16_t), hidden, (size_t)count);
        for (int k = 0; k < count; k++)
            sums[v * FLP_LANES + k] += job->residual[i] * hidden[k];
    }
}

/* The derivatives of a chunk by the group's rows, FLP_CHUNK_DEPTH rows a panel. */
static void load_panels(const flp_backward_job *job, int chunk, int width, float *panels)
{
    for (int begin = 0; begin < job->group_rows; begin += FLP_CHUNK_DEPTH) {
        float *panel = panels + begin / FLP_CHUNK_DEPTH * FLP_CHUNK_PANEL_FLOATS;
        int depth = panel_rows(job, begin);
        if (job->kernel->packed == 2)
            load_derivative_pairs(job, chunk, width, begin, depth, panel);
        else
            load_derivatives(job, chunk, width, begin, depth, panel);
    }
}

/* Adds to the sums of hidden's panels first_panel .. first_panel + count - 1. */
static void add_to_line(const flp_backward_job *job, int chunk, int64_t first_panel, int count, const float *panels, float *sums)
{
    int64_t first;
    int width = flp_backward_chunk(job, chunk, &first);
    for (int begin = 0; begin < job->group_rows; begin += FLP_CHUNK_DEPTH) {
        int depth = panel_rows(job, begin);
        const flp_microkernel_operands operands = {
            .depth = flp_microkernel_words(job->kernel, depth),
            .hidden = job->hidden_panels + first_panel * flp_backward_panel_words(job) + begin / job->kernel->packed * FLP_LANES,
            .hidden_stride = flp_backward_panel_words(job),
            .weight = panels + begin / FLP_CHUNK_DEPTH * FLP_CHUNK_PANEL_FLOATS,
            .entry_stride = FLP_CHUNK_DEPTH / job->kernel->packed,
            .depth_stride = 1,
            .products = sums,
            .products_stride = FLP_BACKWARD_LOGITS,
            .accumulate = job->first_row + begin > 0,
        };
        flp_microkernel_multiply(job->kernel, count, width, &operands);
        for (int p = 0; job->pairs != NULL && p < count; p++)
            add_residuals_to_weight(job, first, width, begin, depth, first_panel + p, sums + p * FLP_BACKWARD_LOGITS);
    }
}

static int64_t lines_of(const flp_backward_job *job)
{
    return (job->panels + FLP_BACKWARD_LINE_PANELS - 1) / FLP_BACKWARD_LINE_PANELS;
}

static void weight_unit(void *data, int64_t index, int thread)
{
    flp_backward_job *job = data;
    int chunk = (int)(index % job->block_chunks);
    int64_t part = index / job->block_chunks, end_line = (part + 1) * lines_of(job) / job->parts;
    float *panels = job->scratch + (int64_t)thread * FLP_BACKWARD_SCRATCH, *line_sums = panels + FLP_BACKWARD_PANELS * FLP_CHUNK_PANEL_FLOATS;
    int64_t first;

    load_panels(job, chunk, flp_backward_chunk(job, chunk, &first), panels);
    for (int64_t line = part * lines_of(job) / job->parts; line < end_line; line++) {
        int64_t first_panel = line * FLP_BACKWARD_LINE_PANELS;
        int count = (int)flp_int64_smaller(job->panels - first_panel, FLP_BACKWARD_LINE_PANELS);
        float *sums = job->grad_weight != NULL ? job->grad_weight + (chunk * job->panels + first_panel) * FLP_BACKWARD_LOGITS : line_sums;
        if (job->rows == 0)
            memset(sums, 0, (size_t)count * FLP_BACKWARD_LOGITS * sizeof *sums);
        add_to_line(job, chunk, first_panel, count, panels, sums);
        if (job->first_row + job->group_rows == job->rows)
            flp_backward_store_weight(job, chunk, first_panel, count, sums);
    }
}

void flp_backward_add_to_weight(flp_backward_job *job)
{
    run_parts(job, job->block_chunks, lines_of(job), weight_unit);
}

/* ---- grad_bias: a unit is a chunk ---- */

static void bias_unit(void *data, int64_t chunk, int thread)
{
    (void)thread;
    flp_backward_job *job = data;
    double *sums = job->grad_bias + chunk * FLP_CHUNK_COLUMNS;
    int64_t first;
    int width = flp_backward_chunk(job, (int)chunk, &first);
    for (int v = 0; v < width && job->first_row == 0; v++)
        sums[v] = 0;
    for (int set = 0; set < job->sets; set++) {
        const float *derivatives = flp_backward_derivatives(job, (int)chunk, set);
        int left = job->group_rows - set * FLP_LANES, rows = left < FLP_LANES ? left : FLP_LANES;
        for (int v = 0; v < width; v++) {
            double sum = sums[v];
            for (int lane = 0; lane < rows; lane++)
                sum += derivatives[v * FLP_LANES + lane];
            sums[v] = sum;
        }
    }
}

void flp_backward_add_to_bias(flp_backward_job *job)
{
    flp_thread_pool_run(job->pool, job->block_chunks, bias_unit, job);
}
