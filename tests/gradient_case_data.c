/* Fills the buffers of a case of the backward: the forward's inputs, its statistics from the reference, upstream gradients, and gradients to
 * be written or added to. */
#include "gradient_cases.h"
#include "base/dtype.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { G_LOGP_STREAM = 16, G_LSE_STREAM, G_ENTROPY_STREAM, OLD_STREAM };

static void *data_of(const flp_gradient_case_data *data, flp_gradient_role role)
{
    return data->own[role].base + data->own[role].offset;
}

/* ---- what the forward and the loss give ---- */

static int allocate_rows(const flp_gradient_case *c, flp_gradient_case_data *data, flp_gradient_role role, int wanted)
{
    return !wanted || flp_case_allocate(&data->own[role], c->problem.forward.rows * 4, 0, FLP_CASE_INPUT_FILL);
}

static int has_part(const flp_gradient_case *c, const flp_linear_logp_args *args, int64_t row)
{
    int64_t target = c->problem.forward.target_dtype == FLP_I32 ? ((const int32_t *)args->target)[row] : ((const int64_t *)args->target)[row];
    return !flp_reference_ignores(args->flags, args->ignore_index, target) && target >= 0 && target < c->problem.forward.vocab;
}

static float upstream(const flp_gradient_case *c, uint64_t stream, int64_t row)
{
    switch (c->upstream) {
    case FLP_UPSTREAM_MEAN:
        return stream == G_LOGP_STREAM ? -1 / (float)c->problem.forward.rows : 0;
    case FLP_UPSTREAM_ONE_INFINITE:
        return stream != G_LOGP_STREAM ? 0 : row == 3 ? INFINITY : 1;
    case FLP_UPSTREAM_ONES:
        return stream == G_LOGP_STREAM ? 1 : 0;
    case FLP_UPSTREAM_ENTROPY:
        return stream == G_ENTROPY_STREAM ? 1.99f : 0;
    case FLP_UPSTREAM_ZEROS:
        return 0;
    case FLP_UPSTREAM_SPARSE:
        return row % 2 ? (float)flp_case_random_normal(stream, (uint64_t)row) : 0;
    default:
        return (float)flp_case_random_normal(stream, (uint64_t)row);
    }
}

static void fill_upstream(const flp_gradient_case *c, const flp_linear_logp_args *args, flp_gradient_case_data *data)
{
    for (int role = FLP_GRADIENT_G_LOGP; role <= FLP_GRADIENT_G_ENTROPY; role++) {
        if (data->own[role].base == NULL)
            continue;
        float *g = data_of(data, (flp_gradient_role)role);
        for (int64_t i = 0; i < c->problem.forward.rows; i++) {
            g[i] = upstream(c, G_LOGP_STREAM + (uint64_t)(role - FLP_GRADIENT_G_LOGP), i);
            if ((c->forward.rows & FLP_CASE_IGNORED_NAN) && !has_part(c, args, i))
                g[i] = NAN;
        }
    }
}

static void copy_statistics(const flp_reference *reference, flp_gradient_case_data *data)
{
    float *lse = data_of(data, FLP_GRADIENT_LSE);
    for (int64_t i = 0; i < reference->rows; i++)
        lse[i] = (float)reference->lse[i];
    float *logp = data->own[FLP_GRADIENT_LOGP].base != NULL ? data_of(data, FLP_GRADIENT_LOGP) : NULL;
    for (int64_t i = 0; logp != NULL && i < reference->rows; i++)
        logp[i] = (float)reference->logp[i];
    if (data->own[FLP_GRADIENT_ENTROPY].base == NULL)
        return;
    float *entropy = data_of(data, FLP_GRADIENT_ENTROPY);
    for (int64_t i = 0; i < reference->rows; i++)
        entropy[i] = (float)reference->entropy[i];
}

/* ---- gradients ---- */

static int make_gradient(flp_gradient_case_data *data, flp_gradient_role role, flp_dtype dtype, int adds, int64_t elements, int misalignment)
{
    flp_case_buffer *buffer = &data->own[role];
    if (dtype == FLP_NONE)
        return 1;
    if (!flp_case_allocate(buffer, elements * flp_dtype_bytes(dtype), misalignment, FLP_CASE_OUTPUT_FILL))
        return 0;
    for (int64_t i = 0; adds && i < elements; i++)
        flp_reference_encode(dtype, 0.1 * flp_case_random_normal(OLD_STREAM + (uint64_t)role, (uint64_t)i), data_of(data, role), i);
    data->before[role] = malloc(buffer->bytes);
    if (data->before[role] != NULL)
        memcpy(data->before[role], buffer->base, buffer->bytes);
    return data->before[role] != NULL;
}

static int make_gradients(const flp_gradient_case *c, flp_gradient_case_data *data)
{
    const flp_linear_logp_backward_problem *p = &c->problem;
    const flp_linear_logp_problem *forward = &p->forward;
    int64_t weight_rows = forward->weight_layout == FLP_VOCAB_HIDDEN ? forward->vocab + c->forward.vocab_padding : forward->hidden;
    int off = c->forward.misalignment;
    return make_gradient(data, FLP_GRADIENT_HIDDEN, p->grad_hidden, p->accumulate & FLP_ACCUMULATE_HIDDEN, forward->rows * p->grad_hidden_stride, off) &&
           make_gradient(data, FLP_GRADIENT_WEIGHT, p->grad_weight, p->accumulate & FLP_ACCUMULATE_WEIGHT, weight_rows * p->grad_weight_stride, off) &&
           make_gradient(data, FLP_GRADIENT_BIAS, p->grad_bias, p->accumulate & FLP_ACCUMULATE_BIAS, forward->vocab, 0);
}

/* ---- all ---- */

static int make_own(const flp_gradient_case *c, flp_gradient_case_data *data, flp_gradient_reference *reference)
{
    flp_linear_logp_args forward;
    flp_linear_logp_backward_args args;
    flp_reference statistics;
    flp_case_args(&c->forward, &data->forward, NULL, &forward);
    if (!allocate_rows(c, data, FLP_GRADIENT_LSE, 1) || !allocate_rows(c, data, FLP_GRADIENT_LOGP, c->gives_logp) ||
        !allocate_rows(c, data, FLP_GRADIENT_ENTROPY, c->problem.g_entropy) || !allocate_rows(c, data, FLP_GRADIENT_G_LOGP, 1) ||
        !allocate_rows(c, data, FLP_GRADIENT_G_LSE, c->problem.g_lse) || !allocate_rows(c, data, FLP_GRADIENT_G_ENTROPY, c->problem.g_entropy) ||
        !make_gradients(c, data) || !flp_reference_compute(&c->forward.problem, &forward, &statistics))
        return 0;
    fill_upstream(c, &forward, data);
    copy_statistics(&statistics, data);
    statistics.knows_logp = c->gives_logp || (c->forward.margin > 0 && c->problem.with_forward);
    flp_gradient_case_args(c, data, NULL, NULL, &args);
    int complete = flp_gradient_reference_compute(&c->problem, &args, NULL, &statistics, reference);
    flp_reference_free(&statistics);
    return complete;
}

int flp_gradient_case_make_data(const flp_gradient_case *c, flp_gradient_case_data *data, flp_gradient_reference *reference)
{
    *data = (flp_gradient_case_data){ 0 };
    *reference = (flp_gradient_reference){ 0 };
    if (flp_case_make_data(&c->forward, &data->forward) && make_own(c, data, reference))
        return 1;
    flp_gradient_case_free_data(data);
    return 0;
}

void flp_gradient_case_free_data(flp_gradient_case_data *data)
{
    flp_case_free_data(&data->forward);
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++) {
        free(data->own[role].base);
        free(data->before[role]);
    }
    *data = (flp_gradient_case_data){ 0 };
}

void flp_gradient_case_restore_outputs(flp_gradient_case_data *data)
{
    for (int role = FLP_GRADIENT_HIDDEN; role <= FLP_GRADIENT_BIAS; role++)
        if (data->own[role].base != NULL)
            memcpy(data->own[role].base, data->before[role], data->own[role].bytes);
}

void flp_gradient_case_args(const flp_gradient_case *c, const flp_gradient_case_data *data, void *const *forward, void *const *own,
                            flp_linear_logp_backward_args *args)
{
    flp_linear_logp_args inputs;
    void *at[FLP_GRADIENT_BUFFERS] = { 0 };
    flp_case_args(&c->forward, &data->forward, forward, &inputs);
    for (int role = 0; role < FLP_GRADIENT_BUFFERS; role++) {
        unsigned char *base = own != NULL ? own[role] : data->own[role].base;
        if (data->own[role].base != NULL)
            at[role] = base + data->own[role].offset;
    }
    *args = (flp_linear_logp_backward_args){ .rows = inputs.rows,
                                             .hidden = inputs.hidden,
                                             .weight = inputs.weight,
                                             .bias = inputs.bias,
                                             .target = inputs.target,
                                             .ignore_index = inputs.ignore_index,
                                             .flags = inputs.flags,
                                             .temperature = inputs.temperature,
                                             .row_temperature = inputs.row_temperature,
                                             .lse = at[FLP_GRADIENT_LSE],
                                             .logp = at[FLP_GRADIENT_LOGP],
                                             .entropy = at[FLP_GRADIENT_ENTROPY],
                                             .g_logp = at[FLP_GRADIENT_G_LOGP],
                                             .g_lse = at[FLP_GRADIENT_G_LSE],
                                             .g_entropy = at[FLP_GRADIENT_G_ENTROPY],
                                             .grad_hidden = at[FLP_GRADIENT_HIDDEN],
                                             .grad_weight = at[FLP_GRADIENT_WEIGHT],
                                             .grad_bias = at[FLP_GRADIENT_BIAS] };
}

flp_linear_logp_args flp_gradient_case_forward_args(const flp_gradient_case *c, const flp_linear_logp_backward_args *args, float *outputs)
{
    return (flp_linear_logp_args){ .rows = args->rows,
                                   .hidden = args->hidden,
                                   .weight = args->weight,
                                   .bias = args->bias,
                                   .target = args->target,
                                   .ignore_index = args->ignore_index,
                                   .flags = args->flags,
                                   .temperature = args->temperature,
                                   .row_temperature = args->row_temperature,
                                   .logp = outputs,
                                   .lse = outputs + args->rows,
                                   .entropy = c->problem.g_entropy ? outputs + 2 * args->rows : NULL,
                                   .workspace = args->workspace,
                                   .workspace_bytes = args->workspace_bytes,
                                   .stream = args->stream };
}
