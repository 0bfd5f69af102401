/* The naive fp64 cross-entropy: statistics of each row from its logits, the loss by its formula, derivatives by hand. */
#include "cross_entropy_reference.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const double u = 0x1p-24, far_apart = 1e300; /* as fp32 sees it */

/* One row: statistics, the loss and its derivatives. */
typedef struct {
    double logp, lse, entropy, uniform, class_weight;
    double loss, by_logp, by_lse, by_entropy, by_uniform;
    double logp_off, loss_off, by_logp_off; /* what logp may be off by, and these by it: by_logp by its rounding in an exponent too */
    double lse_off, by_lse_off;
} row;

static const float *input_of(const flp_linear_cross_entropy_args *args, const char *name)
{
    for (int i = 0; i < args->token_input_count; i++)
        if (strcmp(args->token_inputs[i].name, name) == 0)
            return args->token_inputs[i].values;
    return NULL;
}

static double parameter_of(const flp_linear_cross_entropy_args *args, const char *name, double otherwise)
{
    for (int i = 0; i < args->token_parameter_count; i++)
        if (strcmp(args->token_parameters[i].name, name) == 0)
            return args->token_parameters[i].value;
    return otherwise;
}

static void cross_entropy(const flp_linear_cross_entropy_args *args, row *r)
{
    double smoothing = args->label_smoothing, scale = args->lse_square_scale;
    r->loss = -(1 - smoothing) * r->class_weight * r->logp + (smoothing != 0 ? smoothing * r->uniform : 0) + scale * r->lse * r->lse;
    r->by_logp = -(1 - smoothing) * r->class_weight;
    r->loss_off = fabs(r->by_logp) * r->logp_off;
    r->by_lse = 2 * scale * r->lse;
    r->by_lse_off = 2 * fabs(scale) * r->lse_off;
    r->by_uniform = smoothing;
}

static double distance(double x, double y)
{
    return x == y ? 0 : fmin(fabs(x - y), far_apart);
}

/* A ratio's clipped loss and its derivative by logp. */
typedef struct {
    double advantage, old_logp, low, high;
} clipped_policy;

static double policy_loss(const clipped_policy *p, double logp)
{
    double ratio = exp(logp - p->old_logp), clipped = ratio < p->low ? p->low : ratio > p->high ? p->high : ratio;
    return -fmin(ratio * p->advantage, clipped * p->advantage);
}

static double policy_slope(const clipped_policy *p, double logp)
{
    double ratio = exp(logp - p->old_logp);
    return p->advantage > 0 ? ratio > p->high ? 0 : -ratio * p->advantage : ratio < p->low ? 0 : -ratio * p->advantage;
}

/* Where in from .. to the loss is not clipped, its slope is between that at the ends; at the place of the clip it jumps to 0. */
static double change_of_slope(const clipped_policy *p, double at, double from, double to)
{
    double slope = policy_slope(p, at), change = fmax(distance(policy_slope(p, from), slope), distance(policy_slope(p, to), slope));
    double ratio = p->advantage > 0 ? p->high : p->low, clip = p->old_logp + log(ratio);
    if (from < clip && clip < to)
        change = fmax(change, fmax(distance(0, slope), distance(-ratio * p->advantage, slope)));
    return change;
}

static void policy_gradient(const flp_linear_cross_entropy_args *args, int64_t i, row *r)
{
    const clipped_policy p = { input_of(args, "advantages")[i], input_of(args, "old_logp")[i], 1 - parameter_of(args, "clip_low", 0.2),
                               1 + parameter_of(args, "clip_high", 0.2) };
    double off = r->logp_off, more = off + 16 * u;
    r->loss = policy_loss(&p, r->logp);
    r->by_logp = policy_slope(&p, r->logp);
    r->loss_off = fmax(distance(policy_loss(&p, r->logp - off), r->loss), distance(policy_loss(&p, r->logp + off), r->loss));
    r->by_logp_off = change_of_slope(&p, r->logp, r->logp - more, r->logp + more);
}

static double divergence(double difference)
{
    return exp(difference) - difference - 1;
}

/* Convex: no logp within the error changes the divergence or its derivative by more than one of the two at its ends. */
static void policy_gradient_kl(const flp_linear_cross_entropy_args *args, int64_t i, row *r)
{
    double difference = input_of(args, "reference_logp")[i] - r->logp, scale = parameter_of(args, "kl_scale", 0.05), off = r->logp_off, more = off + 16 * u;
    double least = divergence(difference - off), here = divergence(difference), most = divergence(difference + off);
    policy_gradient(args, i, r);
    r->loss += scale * here;
    r->by_logp += scale * (1 - exp(difference));
    r->loss_off += scale * fmax(distance(least, here), distance(most, here));
    r->by_logp_off += scale * fmax(distance(exp(difference + more), exp(difference)), distance(exp(difference - more), exp(difference)));
}

/* The token loss that the cases define: see cross_entropy_cases.c. */
static void everything(const flp_linear_cross_entropy_args *args, int64_t i, row *r)
{
    double advantage = input_of(args, "advantages")[i], scale = parameter_of(args, "entropy_scale", 0.01);
    r->loss = -advantage * r->logp - scale * r->entropy + 0.1 * r->uniform + 0.01 * r->lse * r->class_weight;
    r->by_logp = -advantage;
    r->loss_off = fabs(r->by_logp) * r->logp_off;
    r->by_entropy = -scale;
    r->by_uniform = 0.1;
    r->by_lse = 0.01 * r->class_weight;
}

static void differentiate(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, int64_t i, row *r)
{
    if (problem->token_loss[0] == 0)
        cross_entropy(args, r);
    else if (strcmp(problem->token_loss, "policy_gradient") == 0)
        policy_gradient(args, i, r);
    else if (strcmp(problem->token_loss, "policy_gradient_kl") == 0)
        policy_gradient_kl(args, i, r);
    else
        everything(args, i, r);
}

static int64_t target_of(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, int64_t i)
{
    return problem->backward.forward.target_dtype == FLP_I32 ? ((const int32_t *)args->target)[i] : ((const int64_t *)args->target)[i];
}

int flp_cross_entropy_reference_has_part(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, int64_t i)
{
    int64_t target = target_of(problem, args, i);
    return !flp_reference_ignores(args->flags, args->ignore_index, target) && target >= 0 && target < problem->backward.forward.vocab;
}

static double temperature_of(const flp_linear_cross_entropy_args *args, int64_t i)
{
    if (args->row_temperature != NULL)
        return fmax(0x1p-64, fmin(args->row_temperature[i], 0x1p64)); /* beyond these it counts as the nearest of them */
    return args->temperature > 0 ? args->temperature : 1;
}

static double uniform_of(const flp_linear_logp_problem *p, const double *logits, double temperature, double lse, const double *weights)
{
    double sum = 0;
    for (int64_t v = 0; v < p->vocab; v++) {
        double z = (p->softcap > 0 ? p->softcap * tanh(logits[v] / p->softcap) : logits[v]) / temperature;
        sum -= weights[v] * (z - lse);
    }
    return sum / (double)p->vocab;
}

static double mean_of(const double *values, int64_t count)
{
    double sum = 0;
    for (int64_t i = 0; i < count; i++)
        sum += values[i];
    return sum / (double)count;
}

/* What the sum of weighted losses is multiplied by. */
static double factor_of(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, const double *weights)
{
    double divisor = 0;
    if (problem->reduction != FLP_REDUCE_MEAN)
        return 1;
    for (int64_t i = 0; i < args->rows; i++) {
        int64_t target = target_of(problem, args, i);
        if (!flp_reference_ignores(args->flags, args->ignore_index, target) && target >= 0 && target < problem->backward.forward.vocab)
            divisor += (args->token_weights ? args->token_weights[i] : 1) * weights[target];
    }
    return divisor == 0 ? 0 : 1 / divisor;
}

/* A row that counts for nothing is nothing, whatever its value is. */
static double scaled(double factor, double value)
{
    return factor == 0 ? 0 : factor * value;
}

static void compute_row(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, const flp_reference *forward, int64_t i,
                        double factor, flp_cross_entropy_reference *to)
{
    const flp_linear_logp_problem *p = &problem->backward.forward;
    int64_t target = target_of(problem, args, i);
    if (!flp_cross_entropy_reference_has_part(problem, args, i)) {
        to->loss[i] = flp_reference_ignores(args->flags, args->ignore_index, target) ? 0 : NAN;
        return;
    }
    row r = { .logp = forward->logp[i],
              .lse = forward->lse[i],
              .entropy = forward->entropy[i],
              .class_weight = to->class_weights[target],
              .logp_off = (forward->logp_rounding ? forward->logp_rounding : forward->rounding)[i],
              .lse_off = forward->rounding[i] };
    double class_mean = mean_of(to->class_weights, p->vocab), token = args->token_weights ? args->token_weights[i] : 1;
    r.uniform = uniform_of(p, forward->logits + i * p->vocab, temperature_of(args, i), r.lse, to->class_weights);
    differentiate(problem, args, i, &r);
    double g = token * factor * (args->g_loss == NULL ? 1 : args->g_loss[problem->reduction == FLP_REDUCE_NONE ? i : 0]);
    double slope = fabs(r.by_lse) + fabs(r.by_uniform) * (1 + class_mean);
    to->loss[i] = scaled(token, r.loss);
    double off = r.loss_off + slope * forward->rounding[i] + fabs(r.by_entropy) * forward->entropy_rounding[i] + 16 * u * (1 + fabs(r.loss));
    to->error[i] = token == 0 ? 0 : fabs(token) * off;
    if (forward->largest != NULL)
        to->shared[i] = scaled(fabs(token), (fabs(r.by_logp) + slope) * u * forward->largest[i]);
    to->g_logp[i] = scaled(g, r.by_logp);
    to->g_lse[i] = scaled(g, r.by_lse + r.by_uniform * class_mean);
    to->g_entropy[i] = scaled(g, r.by_entropy);
    to->g_sum[i] = scaled(-g, r.by_uniform) / (double)p->vocab;
    to->g_error[i] = scaled(fabs(g), r.by_logp_off);
    to->g_lse_error[i] = scaled(fabs(g), r.by_lse_off);
}

static void reduce(double factor, flp_cross_entropy_reference *to)
{
    for (int64_t i = 0; i < to->rows; i++) {
        to->total += isnan(to->loss[i]) ? NAN : scaled(factor, to->loss[i]);
        to->total_error += scaled(fabs(factor), to->error[i]);
        to->total_deviation = hypot(to->total_deviation, scaled(factor, to->error[i]));
        to->total_shared += scaled(fabs(factor), to->shared[i]);
    }
    to->total_error += u * fabs(to->total);
}

int flp_cross_entropy_reference_compute(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args,
                                        const flp_reference *forward, flp_cross_entropy_reference *reference)
{
    int64_t rows = args->rows, vocab = problem->backward.forward.vocab;
    double *memory = calloc((size_t)(9 * rows + vocab), sizeof *memory);
    *reference = (flp_cross_entropy_reference){ .rows = rows,
                                                .class_weights = memory,
                                                .loss = memory + vocab,
                                                .error = memory + vocab + rows,
                                                .g_logp = memory + vocab + 2 * rows,
                                                .g_lse = memory + vocab + 3 * rows,
                                                .g_entropy = memory + vocab + 4 * rows,
                                                .g_sum = memory + vocab + 5 * rows,
                                                .g_error = memory + vocab + 6 * rows,
                                                .shared = memory + vocab + 7 * rows,
                                                .g_lse_error = memory + vocab + 8 * rows };
    if (memory == NULL)
        return 0;
    for (int64_t v = 0; v < vocab; v++)
        memory[v] = problem->class_weights == FLP_NONE ? 1 : flp_reference_decode(problem->class_weights, args->class_weights, v);
    double factor = factor_of(problem, args, memory);
    for (int64_t i = 0; i < rows; i++)
        compute_row(problem, args, forward, i, factor, reference);
    reduce(factor, reference);
    return 1;
}

void flp_cross_entropy_reference_free(flp_cross_entropy_reference *reference)
{
    free(reference->class_weights);
    *reference = (flp_cross_entropy_reference){ 0 };
}
