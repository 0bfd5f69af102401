/* Fills the buffers of a case of linear_cross_entropy, and what they are checked against. */
#include "cross_entropy_cases.h"
#include "base/dtype.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WEIGHT_STREAM = 32 }; /* and one for each buffer behind it */

static void *data_of(const flp_cross_entropy_case_data *data, flp_cross_entropy_role role)
{
    return data->own[role].base + data->own[role].offset;
}

static int loss_count(const flp_cross_entropy_case *c)
{
    return c->problem.reduction == FLP_REDUCE_NONE ? (int)c->problem.backward.forward.rows : 1;
}

static int has_input(const flp_cross_entropy_case *c, flp_cross_entropy_role role)
{
    const char *loss = c->problem.token_loss;
    if (role == FLP_CROSS_ENTROPY_ADVANTAGES)
        return loss[0] != 0;
    if (role == FLP_CROSS_ENTROPY_OLD_LOGP)
        return strncmp(loss, "policy_gradient", 15) == 0;
    return strcmp(loss, "policy_gradient_kl") == 0;
}

static int allocate(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data)
{
    const flp_linear_logp_problem *p = &c->problem.backward.forward;
    const struct {
        int wanted;
        int64_t count;
        int bytes, fill;
    } own[FLP_CROSS_ENTROPY_BUFFERS] = {
        [FLP_CROSS_ENTROPY_CLASS_WEIGHTS] = { c->problem.class_weights != FLP_NONE, p->vocab, flp_dtype_bytes(c->problem.class_weights), FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_TOKEN_WEIGHTS] = { c->problem.token_weights, p->rows, 4, FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_G_LOSS] = { c->with_g_loss, loss_count(c), 4, FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_ADVANTAGES] = { has_input(c, FLP_CROSS_ENTROPY_ADVANTAGES), p->rows, 4, FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_OLD_LOGP] = { has_input(c, FLP_CROSS_ENTROPY_OLD_LOGP), p->rows, 4, FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_REFERENCE_LOGP] = { has_input(c, FLP_CROSS_ENTROPY_REFERENCE_LOGP), p->rows, 4, FLP_CASE_INPUT_FILL },
        [FLP_CROSS_ENTROPY_LOSS] = { 1, loss_count(c), 4, FLP_CASE_OUTPUT_FILL },
        [FLP_CROSS_ENTROPY_LOGP] = { c->outputs & 3, p->rows, 4, FLP_CASE_OUTPUT_FILL },
        [FLP_CROSS_ENTROPY_LSE] = { c->outputs & 5, p->rows, 4, FLP_CASE_OUTPUT_FILL },
        [FLP_CROSS_ENTROPY_ENTROPY] = { c->outputs & 9 && c->problem.entropy, p->rows, 4, FLP_CASE_OUTPUT_FILL },
    };
    for (int role = 0; role < FLP_CROSS_ENTROPY_BUFFERS; role++)
        if (own[role].wanted && !flp_case_allocate(&data->own[role], own[role].count * own[role].bytes, 0, own[role].fill))
            return 0;
    return 1;
}

/* Rows whose token weight is 0. */
static int has_no_weight(int64_t i)
{
    return i % 7 == 3;
}

/* Ratios around 1, of which some are clipped. */
static float number(flp_cross_entropy_role role, const flp_reference *forward, int64_t i)
{
    const double normal = flp_case_random_normal(WEIGHT_STREAM + (uint64_t)role, (uint64_t)i);
    switch (role) {
    case FLP_CROSS_ENTROPY_TOKEN_WEIGHTS:
        return (float)(has_no_weight(i) ? 0 : 1 + 0.3 * normal);
    case FLP_CROSS_ENTROPY_G_LOSS:
        return (float)(2 + 0.5 * normal);
    case FLP_CROSS_ENTROPY_ADVANTAGES:
        return (float)normal;
    default:
        return (float)((isfinite(forward->logp[i]) ? forward->logp[i] : 0) + 0.3 * normal);
    }
}

static float void_input(int64_t i)
{
    const float inputs[] = { NAN, -INFINITY, 1e9F, -200 };

    return inputs[i / 7 % 4];
}

static double class_weight(const flp_cross_entropy_case *c, int64_t v)
{
    if (c->extremes & FLP_CROSS_ENTROPY_LARGE_CLASSES && (v == 7 || v == 11))
        return v == 7 ? 1e5 : -1e5;
    return v % 5 == 2 ? 0 : 1 + 0.3 * flp_case_random_normal(WEIGHT_STREAM, (uint64_t)v);
}

static int has_part(const flp_cross_entropy_case *c, const flp_linear_cross_entropy_args *args, int64_t i)
{
    int64_t target = c->problem.backward.forward.target_dtype == FLP_I32 ? ((const int32_t *)args->target)[i] : ((const int64_t *)args->target)[i];
    return !flp_reference_ignores(args->flags, args->ignore_index, target) && target >= 0 && target < c->problem.backward.forward.vocab;
}

static void fill(const flp_cross_entropy_case *c, const flp_linear_cross_entropy_args *args, flp_cross_entropy_case_data *data)
{
    const flp_linear_logp_problem *p = &c->problem.backward.forward;
    for (int role = FLP_CROSS_ENTROPY_TOKEN_WEIGHTS; role <= FLP_CROSS_ENTROPY_REFERENCE_LOGP; role++) {
        int64_t count = role == FLP_CROSS_ENTROPY_G_LOSS ? loss_count(c) : p->rows;
        float *to = data->own[role].base ? data_of(data, (flp_cross_entropy_role)role) : NULL;
        for (int64_t i = 0; to != NULL && i < count; i++) {
            to[i] = number((flp_cross_entropy_role)role, &data->forward, i);
            if ((c->gradient.forward.rows & FLP_CASE_IGNORED_NAN) && count == p->rows && !has_part(c, args, i))
                to[i] = NAN;
            if (c->extremes & FLP_CROSS_ENTROPY_VOID_INPUTS && role >= FLP_CROSS_ENTROPY_ADVANTAGES && has_no_weight(i))
                to[i] = void_input(i);
            if (c->extremes & FLP_CROSS_ENTROPY_NO_WEIGHT && role == FLP_CROSS_ENTROPY_TOKEN_WEIGHTS)
                to[i] = i % 2 ? -1 : i + 1 < count ? 1 : 0;
        }
    }
    for (int64_t v = 0; c->problem.class_weights != FLP_NONE && v < p->vocab; v++)
        flp_reference_encode(c->problem.class_weights, class_weight(c, v), data_of(data, FLP_CROSS_ENTROPY_CLASS_WEIGHTS), v);
}

static int compute_references(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data)
{
    flp_linear_logp_args forward;
    flp_linear_logp_backward_args backward;
    flp_cross_entropy_case_call call;
    flp_case_args(&c->gradient.forward, &data->gradient.forward, NULL, &forward);
    if (!flp_reference_compute(&c->gradient.forward.problem, &forward, &data->forward))
        return 0;
    data->forward.knows_logp = c->gradient.forward.margin > 0;
    flp_cross_entropy_case_args(c, data, NULL, NULL, NULL, &call);
    fill(c, &call.args, data);
    if (!flp_cross_entropy_reference_compute(&c->problem, &call.args, &data->forward, &data->reference))
        return 0;
    for (int64_t i = 0; i < call.args.rows; i++) {
        if (flp_cross_entropy_reference_has_part(&c->problem, &call.args, i))
            continue;
        data->forward.lse[i] = data->forward.entropy[i] = 0;
        data->forward.rounding[i] = data->forward.entropy_rounding[i] = 0; /* whatever the row holds */
    }
    const flp_cross_entropy_reference *r = &data->reference;
    const flp_gradient_upstream upstream = {
        .g_logp = r->g_logp, .g_lse = r->g_lse, .g_entropy = r->g_entropy, .g_sum = r->g_sum, .class_weights = r->class_weights, .error = r->g_error
    };
    flp_gradient_case_args(&c->gradient, &data->gradient, NULL, NULL, &backward);
    return flp_gradient_reference_compute(&c->gradient.problem, &backward, &upstream, &data->forward, &data->gradients);
}

int flp_cross_entropy_case_make_data(const flp_cross_entropy_case *c, flp_cross_entropy_case_data *data)
{
    flp_gradient_reference unused;
    *data = (flp_cross_entropy_case_data){ 0 };
    int made = flp_gradient_case_make_data(&c->gradient, &data->gradient, &unused);
    if (made)
        flp_gradient_reference_free(&unused);
    if (made && allocate(c, data) && compute_references(c, data))
        return 1;
    flp_cross_entropy_case_free_data(data);
    return 0;
}

void flp_cross_entropy_case_free_data(flp_cross_entropy_case_data *data)
{
    flp_gradient_case_free_data(&data->gradient);
    for (int role = 0; role < FLP_CROSS_ENTROPY_BUFFERS; role++)
        free(data->own[role].base);
    flp_reference_free(&data->forward);
    flp_cross_entropy_reference_free(&data->reference);
    flp_gradient_reference_free(&data->gradients);
    *data = (flp_cross_entropy_case_data){ 0 };
}

void flp_cross_entropy_case_restore_outputs(flp_cross_entropy_case_data *data)
{
    flp_gradient_case_restore_outputs(&data->gradient);
    for (int role = FLP_CROSS_ENTROPY_LOSS; role < FLP_CROSS_ENTROPY_BUFFERS; role++)
        if (data->own[role].base != NULL)
            memset(data->own[role].base, FLP_CASE_OUTPUT_FILL, data->own[role].bytes);
}

void flp_cross_entropy_case_args(const flp_cross_entropy_case *c, const flp_cross_entropy_case_data *data, void *const *forward, void *const *gradient,
                                 void *const *own, flp_cross_entropy_case_call *call)
{
    flp_linear_logp_backward_args backward;
    void *at[FLP_CROSS_ENTROPY_BUFFERS] = { 0 };
    flp_gradient_case_args(&c->gradient, &data->gradient, forward, gradient, &backward);
    for (int role = 0; role < FLP_CROSS_ENTROPY_BUFFERS; role++) {
        unsigned char *base = own != NULL ? own[role] : data->own[role].base;
        if (data->own[role].base != NULL)
            at[role] = base + data->own[role].offset;
    }
    *call = (flp_cross_entropy_case_call){ .args = { .rows = backward.rows,
                                                     .hidden = backward.hidden,
                                                     .weight = backward.weight,
                                                     .bias = backward.bias,
                                                     .target = backward.target,
                                                     .ignore_index = backward.ignore_index,
                                                     .flags = backward.flags,
                                                     .temperature = backward.temperature,
                                                     .row_temperature = backward.row_temperature,
                                                     .class_weights = at[FLP_CROSS_ENTROPY_CLASS_WEIGHTS],
                                                     .token_weights = at[FLP_CROSS_ENTROPY_TOKEN_WEIGHTS],
                                                     .label_smoothing = c->label_smoothing,
                                                     .lse_square_scale = c->lse_square_scale,
                                                     .token_inputs = call->inputs,
                                                     .token_parameters = call->parameters,
                                                     .g_loss = at[FLP_CROSS_ENTROPY_G_LOSS],
                                                     .loss = at[FLP_CROSS_ENTROPY_LOSS],
                                                     .logp = at[FLP_CROSS_ENTROPY_LOGP],
                                                     .lse = at[FLP_CROSS_ENTROPY_LSE],
                                                     .entropy = at[FLP_CROSS_ENTROPY_ENTROPY],
                                                     .grad_hidden = backward.grad_hidden,
                                                     .grad_weight = backward.grad_weight,
                                                     .grad_bias = backward.grad_bias } };
    /* In another order than the definitions'. */
    if (at[FLP_CROSS_ENTROPY_REFERENCE_LOGP])
        call->inputs[call->args.token_input_count++] = (flp_token_input){ "reference_logp", at[FLP_CROSS_ENTROPY_REFERENCE_LOGP] };
    if (at[FLP_CROSS_ENTROPY_OLD_LOGP]) {
        call->inputs[call->args.token_input_count++] = (flp_token_input){ "old_logp", at[FLP_CROSS_ENTROPY_OLD_LOGP] };
        call->parameters[call->args.token_parameter_count++] = (flp_token_parameter){ "clip_high", 0.1 };
    }
    if (at[FLP_CROSS_ENTROPY_ADVANTAGES])
        call->inputs[call->args.token_input_count++] = (flp_token_input){ "advantages", at[FLP_CROSS_ENTROPY_ADVANTAGES] };
}
