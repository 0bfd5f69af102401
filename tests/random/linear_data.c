/* The inputs of a random problem of the linear operators. */
#include <math.h>
#include <stdlib.h>

#include "random/inputs.h"
#include "random/linear.h"
#include "base/dtype.h"

enum { ROWS = FLP_RANDOM_ROLES }; /* a stream of no buffer's */

static flp_random_numbers stream(const flp_random_linear *linear, int role)
{
    return flp_random_stream(linear->problem, (flp_random_role)role);
}

static void *at(const flp_random_linear *linear, flp_random_role role)
{
    return flp_random_memory_at(&linear->memory, role);
}

int64_t flp_random_linear_target(const flp_random_linear *linear, int64_t row)
{
    return flp_random_target(linear->problem, &linear->memory, row);
}

int flp_random_linear_is_ignored(const flp_random_linear *linear, int64_t row)
{
    return flp_random_is_ignored(linear->problem, &linear->memory, row);
}

int flp_random_linear_has_part(const flp_random_linear *linear, int64_t row)
{
    return flp_random_has_part(linear->problem, &linear->memory, row);
}

double flp_random_linear_temperature(const flp_random_linear *linear, int64_t row)
{
    return flp_random_temperature(linear->problem, &linear->memory, row);
}

/* ---- hidden, weight, bias ---- */

static int64_t weight_at(const flp_random_linear *linear, int64_t v, int64_t d)
{
    const int64_t stride = linear->asked.backward.forward.weight_stride;

    return linear->problem->columns ? d * stride + v : v * stride + d;
}

/* Logits have a deviation of 2 scale; of a large scale hidden takes a part, for the sake of fp16. */
static double hidden_scale(const flp_random_problem *p)
{
    return p->scale > 1 ? sqrt(p->scale) : 1;
}

static void fill_weight(const flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const double deviation = 2 / sqrt((double)p->d) * p->scale / hidden_scale(p);
    flp_random_numbers numbers = stream(linear, FLP_RANDOM_WEIGHT);

    for (int64_t v = 0; v < p->v + p->vocab_padding; v++)
        for (int64_t d = 0; d < p->d; d++) {
            double value =
                p->values == FLP_RANDOM_INTEGERS ? (double)flp_random_numbers_below(&numbers, 5) - 2 : deviation * flp_random_numbers_normal(&numbers);
            if (p->values == FLP_RANDOM_ZEROS)
                value = 0;
            if (v >= p->v) /* padding: huge and NaN */
                value = d % 2 ? NAN : 3e4;
            flp_random_encode(p->dtype, value, at(linear, FLP_RANDOM_WEIGHT), weight_at(linear, v, d));
        }
}

static double weight(const flp_random_linear *linear, int64_t v, int64_t d)
{
    return flp_reference_decode((flp_dtype)linear->problem->dtype, at(linear, FLP_RANDOM_WEIGHT), weight_at(linear, v, d));
}

/* What makes the row's product with its target's weight the margin. */
static double pull_of(const flp_random_linear *linear, int64_t row)
{
    const int64_t target = flp_random_linear_target(linear, row);
    double square = 0;

    if (linear->problem->likely != FLP_RANDOM_TARGET_ALIGNED || target < 0 || target >= linear->problem->v)
        return 0;
    for (int64_t d = 0; d < linear->problem->d; d++)
        square += weight(linear, target, d) * weight(linear, target, d);
    return square > 0 ? linear->problem->margin / square : 0;
}

static void fill_hidden(const flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const int64_t stride = linear->asked.backward.forward.hidden_stride;
    flp_random_numbers numbers = stream(linear, FLP_RANDOM_HIDDEN), rows = stream(linear, ROWS);
    void *hidden = at(linear, FLP_RANDOM_HIDDEN);

    for (int64_t i = 0; i < p->n; i++) {
        const double pull = pull_of(linear, i);
        const int64_t target = flp_random_linear_target(linear, i);
        const int broken = flp_random_numbers_chance(&rows, p->broken),
                  infinite = flp_random_numbers_chance(&rows, 50) && p->dtype != FLP_F32 && p->v >= 40 && p->softcap == 0;
        const int64_t place = flp_random_numbers_below(&rows, p->d);
        for (int64_t d = 0; d < p->d; d++) {
            double value =
                p->values == FLP_RANDOM_INTEGERS ? (double)flp_random_numbers_below(&numbers, 5) - 2 : hidden_scale(p) * flp_random_numbers_normal(&numbers);
            if (pull != 0)
                value = 0.25 * value + pull * weight(linear, target, d);
            if (p->ignored_nan && !flp_random_linear_has_part(linear, i))
                value = NAN;
            if (broken && d == place)
                value = infinite ? INFINITY : NAN;
            flp_random_encode(p->dtype, value, hidden, i * stride + d);
        }
    }
}

static void fill_bias(const flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    flp_random_numbers numbers = stream(linear, FLP_RANDOM_BIAS);

    for (int64_t v = 0; v < p->v; v++) {
        double value = flp_random_shaped(p, v, p->values == FLP_RANDOM_NORMAL ? flp_random_numbers_normal(&numbers) : 0);
        if (p->likely == FLP_RANDOM_TARGET_BIASED && v == p->v / 2)
            value += p->margin;
        flp_random_encode(p->bias, value, at(linear, FLP_RANDOM_BIAS), v);
    }
}

/* ---- what the loss takes ---- */

static void fill_upstream(const flp_random_linear *linear, flp_random_role role)
{
    flp_random_numbers numbers = stream(linear, role);
    float *to = at(linear, role);

    for (int64_t i = 0; to && i < linear->problem->n; i++) {
        const float value = flp_random_upstream_value(linear->problem, role, i, linear->problem->n, &numbers);
        to[i] = linear->problem->ignored_nan && !flp_random_linear_has_part(linear, i) ? NAN : value;
    }
}

/* around: NULL, or what old log-probabilities lie around, so that ratios are around 1. */
static void fill_tokens(const flp_random_linear *linear, flp_random_role role)
{
    flp_random_numbers numbers = stream(linear, role);
    float *to = at(linear, role);
    const int64_t count = role == FLP_RANDOM_G_LOSS && linear->problem->reduction != FLP_REDUCE_NONE ? 1 : linear->problem->n;

    for (int64_t i = 0; to && i < count; i++) {
        const double normal = flp_random_numbers_normal(&numbers);
        double value = normal;
        if (role == FLP_RANDOM_TOKENS)
            value = i % 7 == 3 ? 0 : 1 + 0.3 * normal;
        if (role == FLP_RANDOM_G_LOSS)
            value = 2 + 0.5 * normal;
        if (role == FLP_RANDOM_OLD_LOGP || role == FLP_RANDOM_REFERENCE_LOGP)
            value = (isfinite(linear->row[i].logp) ? linear->row[i].logp : 0) + 0.3 * normal;
        if (linear->problem->far_ratio && i % 5 == 2) /* exp(200) is clipped where it is an advantage */
            value = role == FLP_RANDOM_OLD_LOGP ? value - 200 : role == FLP_RANDOM_ADVANTAGES ? 1 + fabs(normal) : value;
        to[i] = count == linear->problem->n && linear->problem->ignored_nan && !flp_random_linear_has_part(linear, i) ? NAN : (float)value;
    }
}

static void fill_classes(const flp_random_linear *linear)
{
    flp_random_numbers numbers = stream(linear, FLP_RANDOM_CLASSES);

    for (int64_t v = 0; v < linear->problem->v; v++)
        flp_random_encode(linear->problem->classes, v % 5 == 2 ? 0 : 1 + 0.3 * flp_random_numbers_normal(&numbers), at(linear, FLP_RANDOM_CLASSES), v);
}

/* ---- outputs ---- */

static void add_gradient(flp_random_linear *linear, flp_random_role role, int dtype, int64_t rows, int64_t columns, int64_t stride, int adds)
{
    const flp_random_problem *p = linear->problem;
    flp_random_numbers numbers = stream(linear, role);

    if (dtype == FLP_NONE)
        return;
    flp_random_memory_add_output(&linear->memory, role, rows, columns, stride, flp_dtype_bytes(dtype), role == FLP_RANDOM_GRAD_BIAS ? 0 : p->misalignment,
                                 flp_random_poison(p));
    for (int64_t i = 0; adds && i < rows; i++)
        for (int64_t j = 0; j < columns; j++)
            flp_random_encode(dtype, 0.1 * flp_random_numbers_normal(&numbers), at(linear, role), i * stride + j);
}

static void add_outputs(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const flp_linear_logp_backward_problem *backward = &linear->asked.backward;
    const int with_forward = p->op != FLP_RANDOM_LINEAR_BACKWARD || p->forward, fill = flp_random_poison(p);
    const int64_t losses = p->reduction == FLP_REDUCE_NONE ? p->n : 1;

    if (p->op == FLP_RANDOM_CROSS_ENTROPY)
        flp_random_memory_add_output(&linear->memory, FLP_RANDOM_LOSS, 1, losses, losses, 4, 0, fill);
    if (p->op == FLP_RANDOM_CROSS_ENTROPY ? !(p->outputs & 1) : with_forward)
        flp_random_memory_add_output(&linear->memory, FLP_RANDOM_LOGP, 1, p->n, p->n, 4, 0, fill);
    if (with_forward && (p->forward || !(p->outputs & 2)))
        flp_random_memory_add_output(&linear->memory, FLP_RANDOM_LSE, 1, p->n, p->n, 4, 0, fill);
    if (p->forward ? p->g_entropy : p->entropy && !(p->outputs & 4))
        flp_random_memory_add_output(&linear->memory, FLP_RANDOM_ENTROPY, 1, p->n, p->n, 4, 0, fill);
    if (p->argmax && !(p->outputs & 8))
        flp_random_memory_add_output(&linear->memory, FLP_RANDOM_ARGMAX, 1, p->n, p->n, 4, 0, fill);
    add_gradient(linear, FLP_RANDOM_GRAD_HIDDEN, p->grad_hidden, p->n, p->d, backward->grad_hidden_stride, p->accumulate & FLP_ACCUMULATE_HIDDEN);
    add_gradient(linear, FLP_RANDOM_GRAD_WEIGHT, p->grad_weight, p->columns ? p->d : p->v, p->columns ? p->v : p->d, backward->grad_weight_stride,
                 p->accumulate & FLP_ACCUMULATE_WEIGHT);
    add_gradient(linear, FLP_RANDOM_GRAD_BIAS, p->grad_bias, 1, p->v, p->v, p->accumulate & FLP_ACCUMULATE_BIAS);
}

/* ---- all ---- */

static void add_rows(flp_random_linear *linear, flp_random_role role, int wanted)
{
    if (wanted)
        flp_random_memory_add(&linear->memory, role, linear->problem->n * 4, 0, FLP_RANDOM_INPUT_FILL);
}

static void add_inputs(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const flp_linear_logp_problem *forward = &linear->asked.backward.forward;
    const int element = flp_dtype_bytes(p->dtype), backward = p->op == FLP_RANDOM_LINEAR_BACKWARD;
    const int64_t rows = p->columns ? p->d : p->v + p->vocab_padding, columns = p->columns ? p->v + p->vocab_padding : p->d;

    flp_random_memory_add(&linear->memory, FLP_RANDOM_HIDDEN, flp_random_strided(p->n, forward->hidden_stride, p->d) * element, p->misalignment,
                          FLP_RANDOM_INPUT_FILL);
    flp_random_memory_add(&linear->memory, FLP_RANDOM_WEIGHT, flp_random_strided(rows, forward->weight_stride, columns) * element, p->misalignment,
                          FLP_RANDOM_INPUT_FILL);
    if (p->bias)
        flp_random_memory_add(&linear->memory, FLP_RANDOM_BIAS, p->v * flp_dtype_bytes(p->bias), 0, FLP_RANDOM_INPUT_FILL);
    flp_random_memory_add(&linear->memory, FLP_RANDOM_TARGET, p->n * (p->target_i32 ? 4 : 8), 0, FLP_RANDOM_INPUT_FILL);
    add_rows(linear, FLP_RANDOM_ROW_TEMPERATURE, p->row_temperature);
    add_rows(linear, FLP_RANDOM_G_LOGP, backward);
    add_rows(linear, FLP_RANDOM_G_LSE, backward && p->g_lse);
    add_rows(linear, FLP_RANDOM_G_ENTROPY, backward && p->g_entropy);
    add_rows(linear, FLP_RANDOM_GIVEN_LSE, backward && !p->forward);
    add_rows(linear, FLP_RANDOM_GIVEN_LOGP, p->give_logp);
    add_rows(linear, FLP_RANDOM_GIVEN_ENTROPY, backward && !p->forward && p->g_entropy);
    add_rows(linear, FLP_RANDOM_TOKENS, p->tokens);
    add_rows(linear, FLP_RANDOM_ADVANTAGES, p->loss != FLP_RANDOM_LOSS_PLAIN);
    add_rows(linear, FLP_RANDOM_OLD_LOGP, p->loss == FLP_RANDOM_LOSS_POLICY || p->loss == FLP_RANDOM_LOSS_POLICY_KL);
    add_rows(linear, FLP_RANDOM_REFERENCE_LOGP, p->loss == FLP_RANDOM_LOSS_POLICY_KL);
    if (p->g_loss)
        flp_random_memory_add(&linear->memory, FLP_RANDOM_G_LOSS, (p->reduction == FLP_REDUCE_NONE ? p->n : 1) * 4, 0, FLP_RANDOM_INPUT_FILL);
    if (p->classes)
        flp_random_memory_add(&linear->memory, FLP_RANDOM_CLASSES, p->v * flp_dtype_bytes(p->classes), 0, FLP_RANDOM_INPUT_FILL);
}

static void fill_given(const flp_random_linear *linear)
{
    float *logp = at(linear, FLP_RANDOM_GIVEN_LOGP), *lse = at(linear, FLP_RANDOM_GIVEN_LSE), *entropy = at(linear, FLP_RANDOM_GIVEN_ENTROPY);

    for (int64_t i = 0; i < linear->problem->n; i++) {
        if (logp)
            logp[i] = (float)linear->row[i].logp;
        if (lse)
            lse[i] = (float)linear->row[i].lse;
        if (entropy)
            entropy[i] = (float)linear->row[i].entropy;
    }
}

/* The rows' truth lies between: what the backward and a policy's loss are given follows from it. */
void flp_random_linear_make_inputs(flp_random_linear *linear)
{
    add_inputs(linear);
    add_outputs(linear);
    flp_random_fill_targets(linear->problem, &linear->memory, linear->problem->n);
    fill_weight(linear);
    fill_hidden(linear);
    if (linear->problem->bias)
        fill_bias(linear);
    flp_random_fill_temperatures(linear->problem, &linear->memory, linear->problem->n);
    flp_random_linear_compute(linear);
    fill_given(linear);
    fill_upstream(linear, FLP_RANDOM_G_LOGP);
    fill_upstream(linear, FLP_RANDOM_G_LSE);
    fill_upstream(linear, FLP_RANDOM_G_ENTROPY);
    fill_tokens(linear, FLP_RANDOM_TOKENS);
    fill_tokens(linear, FLP_RANDOM_G_LOSS);
    fill_tokens(linear, FLP_RANDOM_ADVANTAGES);
    fill_tokens(linear, FLP_RANDOM_OLD_LOGP);
    fill_tokens(linear, FLP_RANDOM_REFERENCE_LOGP);
    if (linear->problem->classes)
        fill_classes(linear);
}
