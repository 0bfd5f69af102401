/* Gradients of a random problem of the linear operators in fp64, and what they may be off by.
 *
 * An element is a sum of terms derivative x input. It may be off by
 * - what each derivative may be (row.h), times its input, added up without regard to sign;
 * - the sum's own additions, as those of a logit (linear_truth.c), of terms as they are found: where p may be 1 and should be 0, what is rounded is 1;
 * - on a GPU, and on a CPU that multiplies bf16, the rounding of each derivative but the target's to the dtype of the inputs, r = 2^-8 of itself for
 *   bf16 and 2^-11 for fp16: at most r times the sum of the terms' sizes; of independent roundings, DEVIATIONS r / sqrt(3) times the root of the sum of
 *   their squares, if that is less and the data are random. Rows of which one entry has nearly all the probability have equal derivatives, whose
 *   roundings are equal too: their sum is known, and comes on top. So do the terms of level rows, whose logits hardly differ, as large as they may be:
 *   equal exponentials may be what is rounded. Where saved exponentials of bf16 may be, grad_weight's terms are rounded twice;
 * - in fp16 2^-39 of the call's largest upstream gradient for each derivative: half of what subnormal numbers lie apart where the largest, times a power of
 *   two, is between 2^14 and 2^15;
 * - where a CPU multiplies bf16, subnormal derivatives, products and sums, which count as 0;
 * - all of a term that a filter may pass over. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "gradient_cases.h"
#include "random/linear.h"
#include "shards.h"
#include "random/numbers.h"

static const double u = 0x1p-24, deviations = 6, least_deviation = 0.1; /* 26 roundings of bf16 at 1 */

static double *allocate(int64_t count)
{
    double *numbers = calloc((size_t)(count > 0 ? count : 1), sizeof(double));

    if (!numbers)
        abort();
    return numbers;
}

void flp_random_gradient_make(int64_t count, flp_random_gradient *gradient)
{
    *gradient = (flp_random_gradient){ count,           allocate(count), allocate(count), allocate(count), allocate(count), allocate(count),
                                       allocate(count), allocate(count), allocate(count), allocate(count), allocate(count) };
}

void flp_random_gradient_free(flp_random_gradient *gradient)
{
    free(gradient->value);
    free(gradient->error);
    free(gradient->size);
    free(gradient->hard);
    free(gradient->soft);
    free(gradient->level);
    free(gradient->known);
    free(gradient->whole);
    free(gradient->passed);
    free(gradient->inputs);
    *gradient = (flp_random_gradient){ 0 };
}

/* What a number with the dtype's digits has gained or lost, whatever its exponent. */
static double rounding_of(int dtype, double value)
{
    int exponent;
    const double digits = frexp(value, &exponent);

    return isfinite(value) ? ldexp(flp_random_round(dtype, digits) - digits, exponent) : 0;
}

/* One derivative's term of an element. */
typedef struct {
    double derivative, error, rounding;
    int is_rounded, is_level, may_pass;
} factor;

static inline void add_term(flp_random_gradient *gradient, int64_t at, const factor *f, double input)
{
    const double term = f->derivative * input, error = f->error * fabs(input), found = fabs(term) + error;

    gradient->value[at] += term;
    gradient->error[at] += error;
    gradient->size[at] += found * found;
    gradient->whole[at] += found;
    if (f->is_rounded) {
        gradient->hard[at] += found;
        gradient->soft[at] += found * found;
        gradient->level[at] += f->is_level ? found : 0;
        gradient->known[at] += f->rounding * input;
        gradient->inputs[at] += fabs(input);
    }
    if (f->may_pass)
        gradient->passed[at] += fabs(term);
}

static float upstream_at(const flp_random_linear *linear, flp_random_role role, int64_t i)
{
    const float *values = flp_random_memory_at(&linear->memory, role);

    return values ? values[i] : 0;
}

static flp_random_row_upstream upstream_of(const flp_random_linear *linear, int64_t i)
{
    const flp_cross_entropy_reference *loss = &linear->loss;
    const int forward = linear->problem->forward;

    if (linear->problem->op == FLP_RANDOM_CROSS_ENTROPY && !isfinite(loss->g_logp[i]) && !(loss->g_error[i] < FLT_MAX))
        return (flp_random_row_upstream){ .error = INFINITY }; /* the slope is infinite only where logp is as far off as it may be */
    if (linear->problem->op == FLP_RANDOM_CROSS_ENTROPY)
        return (flp_random_row_upstream){ .logp = loss->g_logp[i],
                                          .lse = loss->g_lse[i],
                                          .entropy = loss->g_entropy[i],
                                          .sum = loss->g_sum[i],
                                          .error = loss->g_error[i],
                                          .lse_error = loss->g_lse_error[i],
                                          .class_weights = loss->class_weights,
                                          .of_lse = loss->g_lse[i] != 0,
                                          .bare_lse = linear->problem->shards > 0 };
    return (flp_random_row_upstream){ .logp = upstream_at(linear, FLP_RANDOM_G_LOGP, i),
                                      .lse = upstream_at(linear, FLP_RANDOM_G_LSE, i),
                                      .entropy = upstream_at(linear, FLP_RANDOM_G_ENTROPY, i),
                                      .bare_lse = !forward,
                                      .bare_target = !forward && !linear->problem->give_logp };
}

/* Where the probability is not one entry's, and its logarithms deviate by less than a few roundings of bf16. */
static int is_level(const flp_random_row *row, const double *z, int64_t vocab)
{
    double mean = 0, square = 0;

    for (int64_t v = 0; v < vocab; v++) {
        const double log_p = z[v] - row->largest - row->log_sum, p = exp(log_p);
        if (p > 0)
            mean += p * log_p, square += p * log_p * log_p;
    }
    return row->log_sum > M_LN2 && square - mean * mean < least_deviation * least_deviation;
}

static void add_row(flp_random_linear *linear, int64_t i, const double *derivative, const double *error, int level, const double *hidden, const double *weight)
{
    const flp_random_problem *p = linear->problem;
    const int64_t target = flp_random_linear_target(linear, i);

    for (int64_t v = 0; v < p->v; v++) {
        const factor f = { derivative[v], error[v], rounding_of(p->dtype, derivative[v]),
                           v != target,   level,    v != target && fabs(derivative[v]) - error[v] < 1.01 * p->filter };
        for (int64_t d = 0; p->grad_hidden && d < p->d; d++)
            add_term(&linear->hidden, i * p->d + d, &f, weight[v * p->d + d]);
        for (int64_t d = 0; p->grad_weight && d < p->d; d++)
            add_term(&linear->weight, v * p->d + d, &f, hidden[i * p->d + d]);
        if (p->grad_bias)
            add_term(&linear->bias, v, &f, 1);
    }
}

/* On a GPU exponentials of bf16 may be saved. */
static int may_save_exp(const flp_random_problem *p)
{
    return p->dtype == FLP_BF16 && (p->op == FLP_RANDOM_CROSS_ENTROPY || p->forward);
}

/* hidden: of row i. */
static void note_upstream(flp_random_linear *linear, int64_t i, const flp_random_row_upstream *g, const double *hidden)
{
    const double size = (fabs(g->logp) + g->error + fabs(g->lse) + 64 * fabs(g->entropy) + fabs(g->sum) * (double)linear->problem->v) /
                        fmin(1, flp_random_linear_temperature(linear, i));

    if (isfinite(size))
        linear->largest_upstream = fmax(linear->largest_upstream, size);
    for (int64_t d = 0; may_save_exp(linear->problem) && d < linear->problem->d; d++)
        linear->rows_beyond |= size * fabs(hidden[d]) >= 0x1p127;
}

void flp_random_linear_differentiate(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    double *hidden = flp_random_linear_hidden(linear), *weight = flp_random_linear_weight(linear);
    double *z = allocate(p->v), *e = allocate(p->v), *derivative = allocate(p->v), *error = allocate(p->v);

    flp_random_gradient_make(p->grad_hidden ? p->n * p->d : 0, &linear->hidden);
    flp_random_gradient_make(p->grad_weight ? p->v * p->d : 0, &linear->weight);
    flp_random_gradient_make(p->grad_bias ? p->v : 0, &linear->bias);
    for (int64_t i = 0; i < p->n; i++) {
        const flp_random_row_inputs inputs = flp_random_linear_row_inputs(linear, i);
        flp_random_row row;
        if (!flp_random_linear_has_part(linear, i))
            continue;
        const flp_random_row_upstream g = upstream_of(linear, i);
        flp_random_row_compute(&inputs, z, e, &row);
        flp_random_row_differentiate(&inputs, &row, z, e, &g, derivative, error);
        note_upstream(linear, i, &g, hidden + i * p->d);
        add_row(linear, i, derivative, error, is_level(&row, z, p->v), hidden, weight);
    }
    free(hidden);
    free(weight);
    free(z);
    free(e);
    free(derivative);
    free(error);
}

/* What smoothing spreads evenly makes equal derivatives, whose roundings add up. */
static int is_random(const flp_random_problem *p)
{
    const int spreads = (p->smoothing && p->label_smoothing > 0) || p->loss == FLP_RANDOM_LOSS_OWN;

    return p->values == FLP_RANDOM_NORMAL && !spreads;
}

double flp_random_gradient_bound(const flp_random_linear *linear, const flp_random_gradient *gradient, int64_t i, int is_cpu)
{
    const flp_random_problem *p = linear->problem;
    const int of_weight = gradient != &linear->hidden;
    const double n = (double)(of_weight ? p->n : p->v);
    const double r = is_cpu ? flp_gradient_cpu_roundoff(p->dtype) : p->dtype == FLP_F32 ? 0 : p->dtype == FLP_BF16 ? 0x1p-8 : 0x1p-11;
    const double roundings = of_weight && !is_cpu && may_save_exp(p) ? 2 : 1;
    const double known = r > 0 ? fabs(gradient->known[i]) : 0;
    const double hard = roundings * gradient->hard[i], level = roundings * gradient->level[i], soft = deviations * sqrt(roundings * gradient->soft[i] / 3);
    const double sum = u * (deviations * sqrt(n / 3) + n / 8 + 4) * fmax(fabs(gradient->value[i]), sqrt(gradient->size[i]));
    const double parts = p->shards && !of_weight ? 2 * FLP_MOST_SHARDS * u * gradient->whole[i] : 0; /* each is rounded, and so is each sum of them */
    const double least = !is_cpu && p->dtype == FLP_F16 ? 0x1p-39 * linear->largest_upstream * gradient->inputs[i]
                         : is_cpu && r > 0              ? 0x1p-126 * (gradient->inputs[i] + n)
                                                        : 0;

    return gradient->error[i] + sum + (is_random(p) ? fmin(r * hard, r * (soft + level) + known) : r * hard) + least + parts + gradient->passed[i];
}
