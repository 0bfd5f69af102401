/* The naive fp64 backward of linear_logp: each row's dlogit by the definition, then three sums. */
#include "gradient_reference.h"
#include <math.h>
#include <stdlib.h>

#pragma GCC optimize("O3") /* its sums over a row are half of what many a test takes */

static const double u = 0x1p-24;

typedef struct {
    double dlogit;
    int64_t entry;
} ordered;

typedef struct {
    const flp_linear_logp_backward_problem *problem;
    const flp_linear_logp_backward_args *args;
    const flp_gradient_upstream *upstream; /* or NULL */
    const flp_reference *forward;
    double *dlogit, *error; /* [V] of a row, and what it may be off by */
    const double *class_weights;
    double *weight; /* [V][D] */
    double *hidden; /* [D] of a row */
    double *tied;   /* [D] */
    ordered *order; /* [V] of a row, by dlogit; behind it room for as many */
} work;

static int64_t target_at(const work *w, int64_t row)
{
    if (w->problem->forward.target_dtype == FLP_I32)
        return ((const int32_t *)w->args->target)[row];
    return ((const int64_t *)w->args->target)[row];
}

static double temperature_of(const work *w, int64_t row)
{
    if (w->args->row_temperature != NULL)
        return w->args->row_temperature[row];
    return w->args->temperature > 0 ? w->args->temperature : 1;
}

/* One row's upstream gradients. */
typedef struct {
    double logp, lse, entropy, sum, error;
} upstream_row;

static double value_at(const double *values, int64_t i, double otherwise)
{
    return values != NULL ? values[i] : otherwise;
}

static upstream_row upstream_of(const work *w, int64_t i)
{
    const flp_linear_logp_backward_args *args = w->args;
    const flp_gradient_upstream *given = w->upstream;
    if (given == NULL)
        return (upstream_row){ .logp = args->g_logp[i], .lse = args->g_lse ? args->g_lse[i] : 0, .entropy = args->g_entropy ? args->g_entropy[i] : 0 };
    return (upstream_row){ value_at(given->g_logp, i, 0), value_at(given->g_lse, i, 0), value_at(given->g_entropy, i, 0), value_at(given->g_sum, i, 0),
                           value_at(given->error, i, 0) };
}

/* The derivative by the target's logit of a path that knows logp: a relative error of 2e-6 beyond what rounding the logits to fp32 costs, over the
 * eight deviations that a check allows. */
static void differentiate_target(work *w, int64_t i, const upstream_row *g, double uniform_coefficient, double slope, double temperature)
{
    double logp = w->forward->logp[i], p = exp(logp), relative = 2e-6 + 0x1p-23 * w->forward->largest[i];
    double target_coefficient = -g->logp * expm1(logp), of_p = p == 0 ? 0 : p * (g->lse - g->entropy * (logp + w->forward->entropy[i]));
    int64_t target = target_at(w, i);
    w->dlogit[target] = (target_coefficient + of_p + uniform_coefficient) / temperature * slope;
    w->error[target] =
        ((fabs(target_coefficient) + fabs(of_p)) * relative / 8 + g->error * -expm1(logp) + 4 * u * fabs(uniform_coefficient)) / temperature * slope;
}

/* Row i's dlogit and its error. */
static void differentiate(work *w, int64_t i)
{
    const flp_linear_logp_problem *forward = &w->problem->forward;
    double lse = w->forward->lse[i], entropy = w->forward->entropy[i], rounding = w->forward->rounding[i], temperature = temperature_of(w, i);
    const upstream_row g = upstream_of(w, i);
    int64_t target = target_at(w, i);
    for (int64_t v = 0; v < forward->vocab; v++) {
        double logit = w->forward->logits[i * forward->vocab + v], cap = forward->softcap, t = cap > 0 ? tanh(logit / cap) : 0;
        double z = (cap > 0 ? cap * t : logit) / temperature, p = exp(z - lse), log_p = p == 0 ? 0 : z - lse;
        double slope = cap > 0 ? 1 / (cosh(logit / cap) * cosh(logit / cap)) : 1;
        double prob_coefficient = g.lse - g.logp - (g.entropy != 0 ? g.entropy * (log_p + entropy) : 0);
        double target_coefficient = v == target ? g.logp : 0, uniform_coefficient = g.sum != 0 ? g.sum * value_at(w->class_weights, v, 1) : 0;
        double of_p = p * (fabs(prob_coefficient) * (rounding + 8 * u) + fabs(g.entropy) * (2 * rounding + 4 * u * (fabs(log_p) + fabs(entropy))));
        double of_g = g.error * (p + (v == target)) + 4 * u * fabs(uniform_coefficient);
        double of_slope = cap > 0 ? 2 * fabs(t) / cap * rounding * temperature + 8 * u : 0;
        w->dlogit[v] = (target_coefficient + p * prob_coefficient + uniform_coefficient) / temperature * slope;
        if (v == target && w->forward->knows_logp) {
            differentiate_target(w, i, &g, uniform_coefficient, slope, temperature);
            continue;
        }
        w->error[v] = ((of_p + of_g + 2 * u * fabs(target_coefficient)) * slope +
                       fabs(target_coefficient + p * prob_coefficient + uniform_coefficient) * slope * of_slope) /
                      temperature;
    }
}

/* The terms of `count` sums from `at` on. roundoff: of the sums; roundings: how many in the dtype that dlogit is kept in. */
static void add_terms(flp_gradient *gradient, int64_t at, int64_t count, double dlogit, double error, const double *restrict input, double roundoff,
                      int roundings)
{
    double *restrict value = gradient->value + at, *restrict rounding = gradient->rounding + at, *restrict square = gradient->square + at;
    for (int64_t d = 0; d < count; d++) {
        double term = dlogit * input[d];
        value[d] += term;
        rounding[d] += error * fabs(input[d]) + roundoff * fabs(term);
        square[d] += roundings * term * term;
    }
}

/* Beside saved exponentials grad_weight's products see hidden times the row's factor, rounded. */
static int may_save_exp(const work *w)
{
    return (w->upstream != NULL || w->problem->with_forward) && w->problem->forward.dtype == FLP_BF16;
}

/* By merging: qsort calls a function for each comparison. The result stands in entries or behind them. */
static ordered *sort(ordered *entries, int64_t count)
{
    ordered *from = entries, *to = entries + count;
    for (int64_t width = 1; width < count; width *= 2) {
        for (int64_t low = 0; low < count; low += 2 * width) {
            const int64_t middle = low + width < count ? low + width : count, high = middle + width < count ? middle + width : count;
            for (int64_t a = low, b = middle, at = low; at < high; at++)
                to[at] = b == high || (a < middle && !(from[a].dlogit > from[b].dlogit)) ? from[a++] : from[b++];
        }
        ordered *merged = to;
        to = from;
        from = merged;
    }
    return from;
}

/* What rounding a row's dlogit costs its grad_hidden: equal ones are rounded alike, so that their terms' errors add up, and only different ones'
 * are independent. */
static void add_squares_of_ties(work *w, int64_t target, double *restrict square)
{
    const int64_t depth = w->problem->forward.hidden, vocab = w->problem->forward.vocab;
    double *restrict tied = w->tied;
    for (int64_t v = 0; v < vocab; v++)
        w->order[v] = (ordered){ w->dlogit[v], v };
    const ordered *order = sort(w->order, vocab);
    for (int64_t first = 0, end; first < vocab; first = end) {
        for (int64_t d = 0; d < depth; d++)
            tied[d] = 0;
        for (end = first; end < vocab && !(order[end].dlogit > order[first].dlogit); end++)
            if (order[end].entry != target)
                for (int64_t d = 0; d < depth; d++)
                    tied[d] += order[end].dlogit * w->weight[order[end].entry * depth + d];
        for (int64_t d = 0; d < depth; d++)
            square[d] += tied[d] * tied[d];
    }
}

static void add_row(work *w, int64_t i, flp_gradient_reference *reference)
{
    static const double one = 1;
    const flp_linear_logp_problem *forward = &w->problem->forward;
    const double over_vocab = u * sqrt((double)forward->vocab), over_rows = u * sqrt((double)w->args->rows);
    const int64_t depth = forward->hidden, target = target_at(w, i);
    for (int64_t d = 0; d < depth; d++)
        w->hidden[d] = flp_reference_decode(forward->dtype, w->args->hidden, i * forward->hidden_stride + d);
    for (int64_t v = 0; v < forward->vocab; v++) {
        double dlogit = w->dlogit[v], error = w->error[v];
        /* The target's stays in fp32. What the gradient filter may pass over of the others is off by all of it; they are rounded before they are
         * compared. */
        const int roundings = v != target;
        double passed = v != target && fabs(dlogit) - error < 1.01 * w->problem->grad_filter_eps ? 1 : 0;
        add_terms(&reference->hidden, i * depth, depth, dlogit, error, &w->weight[v * depth], over_vocab + passed, 0);
        add_terms(&reference->weight, v * depth, depth, dlogit, error, w->hidden, over_rows + passed, roundings * (1 + may_save_exp(w)));
        add_terms(&reference->bias, v, 1, dlogit, error, &one, over_rows, roundings);
    }
    add_squares_of_ties(w, target, reference->hidden.square + i * depth);
}

static void decode_weight(work *w)
{
    const flp_linear_logp_problem *forward = &w->problem->forward;
    for (int64_t v = 0; v < forward->vocab; v++) {
        for (int64_t d = 0; d < forward->hidden; d++) {
            int64_t at = forward->weight_layout == FLP_VOCAB_HIDDEN ? v * forward->weight_stride + d : d * forward->weight_stride + v;
            w->weight[v * forward->hidden + d] = flp_reference_decode(forward->dtype, w->args->weight, at);
        }
    }
}

static double *allocate(int64_t count)
{
    return calloc((size_t)(count > 0 ? count : 1), sizeof(double));
}

static int allocate_gradient(int64_t count, flp_gradient *gradient)
{
    *gradient = (flp_gradient){ count, allocate(count), allocate(count), allocate(count) };
    return gradient->value && gradient->rounding && gradient->square;
}

static void finish(flp_gradient *gradient)
{
    for (int64_t i = 0; i < gradient->count; i++)
        gradient->square[i] = sqrt(gradient->square[i]);
}

int flp_gradient_reference_compute(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                   const flp_gradient_upstream *upstream, const flp_reference *forward, flp_gradient_reference *reference)
{
    int64_t depth = problem->forward.hidden, vocab = problem->forward.vocab;
    work w = { .problem = problem,
               .args = args,
               .upstream = upstream,
               .forward = forward,
               .class_weights = upstream ? upstream->class_weights : NULL,
               .dlogit = allocate(vocab),
               .error = allocate(vocab),
               .weight = allocate(vocab * depth),
               .hidden = allocate(depth),
               .tied = allocate(depth),
               .order = malloc((size_t)(vocab > 0 ? 2 * vocab : 1) * sizeof(ordered)) };
    *reference = (flp_gradient_reference){ 0 };
    int complete = allocate_gradient(args->rows * depth, &reference->hidden) && allocate_gradient(vocab * depth, &reference->weight) &&
                   allocate_gradient(vocab, &reference->bias) && w.dlogit && w.error && w.weight && w.hidden && w.tied && w.order;
    if (complete) {
        decode_weight(&w);
        for (int64_t i = 0; i < args->rows; i++) {
            int64_t target = target_at(&w, i);
            if (flp_reference_ignores(args->flags, args->ignore_index, target) || target < 0 || target >= vocab)
                continue;
            differentiate(&w, i);
            add_row(&w, i, reference);
        }
        finish(&reference->hidden);
        finish(&reference->weight);
        finish(&reference->bias);
    } else {
        flp_gradient_reference_free(reference);
    }
    free(w.dlogit);
    free(w.error);
    free(w.weight);
    free(w.hidden);
    free(w.tied);
    free(w.order);
    return complete;
}

static void free_gradient(flp_gradient *gradient)
{
    free(gradient->value);
    free(gradient->rounding);
    free(gradient->square);
}

void flp_gradient_reference_free(flp_gradient_reference *reference)
{
    free_gradient(&reference->hidden);
    free_gradient(&reference->weight);
    free_gradient(&reference->bias);
    *reference = (flp_gradient_reference){ 0 };
}

int flp_gradient_is_close(const flp_gradient *reference, const float *got, int64_t row_factor, int64_t column_factor, int64_t columns)
{
    double errors = 0, squares = 0, largest = 0;

    for (int64_t i = 0; i < reference->count; i++) {
        const double wanted = reference->value[i / columns * row_factor + i % columns * column_factor], error = fabs(got[i] - wanted);

        if (!(error <= largest))
            largest = error;
        errors += error * error;
        squares += wanted * wanted;
    }
    return largest <= 1e-4 && squares > 0 && sqrt(errors) <= 1e-5 * sqrt(squares);
}
