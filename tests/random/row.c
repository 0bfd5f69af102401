/* A row's statistics and derivatives in fp64, with what fp32 may cost them. */
#include "random/row.h"

#include <float.h>
#include <math.h>

static const double u = 0x1p-24;
/* Roundings of a sum point both ways, so that n terms which are added one after the other cost about sqrt(n) u: 24 u for 576 terms of a lane. */
static const double sum_roundings = 24;
static const double most_in_base_2 = FLT_MAX * M_LN2; /* kernels keep logarithms in base 2, and clamp what fp32 has no room for */
static const double most_exact_offset = 0x1.01p23;    /* a given lse from here on has no bits behind the point: p is held to 1 */
static const double offset_distance = 60 * M_LN2;
static const double smallest_kept_rest = 0x1p-64; /* see row.h */

static double larger(double a, double b)
{
    return a > b ? a : b;
}

static double error_of(const flp_random_row_inputs *inputs, int64_t v)
{
    return inputs->error ? inputs->error[v] : 0;
}

/* What exp(log_p) may be off by where its exponent is off by e; never more than huge. */
static double growth_of(double log_p, double e)
{
    return log_p == -INFINITY ? 0 : e < 1 ? exp(log_p) * expm1(e) : exp(fmin(log_p + e, 700)) - exp(log_p);
}

/* The row's largest z; NaN where the row holds NaN or +inf. */
static double find_largest(const flp_random_row_inputs *inputs, double *z, int64_t *first)
{
    const double cap = inputs->softcap;
    double largest = -INFINITY;
    int usable = 1;

    *first = 0;
    for (int64_t v = 0; v < inputs->vocab; v++) {
        const double logit = inputs->logit[v];
        z[v] = (cap > 0 ? cap * tanh(logit / cap) : logit) / inputs->temperature;
        if (isnan(z[v]) || z[v] == INFINITY)
            usable = 0;
        if (z[v] > largest)
            largest = z[v];
        if (logit > inputs->logit[*first])
            *first = v;
    }
    return usable ? largest : NAN;
}

static void find_errors(const flp_random_row_inputs *inputs, double largest, const double *z, double *e)
{
    for (int64_t v = 0; v < inputs->vocab; v++) {
        const double cap = inputs->softcap, slope = cap > 0 ? 1 / (cosh(inputs->logit[v] / cap) * cosh(inputs->logit[v] / cap)) : 1;
        const double own = error_of(inputs, v) * slope / inputs->temperature, of_tanh = cap > 0 ? 8 * u * (fabs(z[v]) + fabs(largest)) : 0;
        e[v] = isinf(z[v]) ? 0 : own + (z[v] == largest && own == 0 ? 0 : 3 * u * larger(fabs(z[v]), fabs(largest)) + of_tanh);
    }
}

/* sum_v of exp(z[v] - from) but for one entry. */
static double sum_of_others(const flp_random_row_inputs *inputs, const double *z, double from, int64_t but)
{
    double sum = 0;

    for (int64_t v = 0; v < inputs->vocab; v++)
        if (v != but)
            sum += exp(z[v] - from);
    return sum;
}

static void find_logp(const flp_random_row_inputs *inputs, const double *z, const double *e, flp_random_row *row)
{
    const int64_t t = inputs->target;
    double others = 0, most = 0;

    if (t < 0)
        return;
    const double ratio = sum_of_others(inputs, z, z[t], t);
    row->logp = isfinite(ratio) ? -log1p(ratio) : z[t] - row->largest - row->log_sum;
    row->rest = -expm1(row->logp);
    for (int64_t v = 0; v < inputs->vocab; v++)
        if (v != t && z[v] > -INFINITY)
            others += growth_of(z[v] - row->largest - row->log_sum, e[v]), most = larger(most, e[v]);
    /* The derivative by z[t] is the rest, which is off itself; that of the others' logarithm is at most 1. */
    row->logp_error = fmin(1, row->rest * exp(fmin(e[t], 700)) + others) * e[t] + fmin(others, most) + u * (sum_roundings * row->rest + 4 * fabs(row->logp));
    if (row->logp < -FLT_MAX)
        row->logp_error -= row->logp + FLT_MAX;
    if (row->logp < -most_in_base_2 && row->largest > most_in_base_2)
        row->logp_error -= row->logp + most_in_base_2;
    if (isinf(row->logp))
        row->logp_error = 0;
}

static void find_entropy(const flp_random_row_inputs *inputs, const double *z, const double *e, flp_random_row *row)
{
    double moments = 0, of_terms = 0, lowest = row->largest;

    row->entropy = 0;
    for (int64_t v = 0; v < inputs->vocab; v++) {
        const double log_p = z[v] - row->largest - row->log_sum, p = exp(log_p);
        if (p > 0)
            row->entropy -= p * log_p, moments += p * fabs(log_p);
    }
    for (int64_t v = 0; v < inputs->vocab; v++) {
        const double log_p = z[v] - row->largest - row->log_sum;
        if (log_p > -INFINITY)
            of_terms += fabs(log_p + row->entropy) * growth_of(log_p, e[v]);
        if (z[v] > -INFINITY)
            lowest = fmin(lowest, z[v]);
    }
    /* The moment counts from an offset, below which the largest entry may lie as far as above it. Unless that entry is the target, which stays out, the
     * moment is as large as that distance in such a row, and so are its sum's roundings. */
    of_terms += (row->rest <= 0.5 ? 2 : sum_roundings) * u * fmin(row->largest - lowest, offset_distance);
    row->entropy_error = fmin(of_terms + u * sum_roundings * (1 + moments), 2 * log((double)inputs->vocab) + u * sum_roundings);
}

void flp_random_row_compute(const flp_random_row_inputs *inputs, double *z, double *e, flp_random_row *row)
{
    int64_t best = 0;
    double growth = 0, most = 0, peak = 0;

    *row = (flp_random_row){ .lse = NAN, .logp = NAN, .entropy = NAN, .rest = NAN, .argmax = -1 };
    row->largest = find_largest(inputs, z, &row->argmax);
    if (isnan(row->largest)) {
        row->argmax = -1;
        return;
    }
    if (row->largest == -INFINITY) {
        row->lse = -INFINITY;
        return;
    }
    find_errors(inputs, row->largest, z, e);
    while (z[best] != row->largest)
        best++;
    row->log_sum = log1p(sum_of_others(inputs, z, row->largest, best));
    row->lse = row->largest + row->log_sum;
    for (int64_t v = 0; v < inputs->vocab; v++)
        if (z[v] > -INFINITY) {
            const double log_p = z[v] - row->largest - row->log_sum;
            growth += growth_of(log_p, e[v]);
            most = larger(most, e[v]);
            peak = larger(peak, log_p + e[v]);
        }
    row->sum_error = fmin(peak > 600 ? peak + log((double)inputs->vocab) : log1p(growth), most) + sum_roundings * u;
    row->lse_error = row->sum_error + u * (4 * fabs(row->lse) + 3 * fabs(row->largest));
    if (fabs(row->lse) > most_in_base_2)
        row->lse_error += fabs(row->lse) - most_in_base_2;
    find_logp(inputs, z, e, row);
    find_entropy(inputs, z, e, row);
}

int flp_random_row_may_be_first(const flp_random_row_inputs *inputs, const flp_random_row *row, int64_t v)
{
    if (row->argmax < 0 || v == row->argmax)
        return 1;
    return inputs->logit[row->argmax] - inputs->logit[v] <= error_of(inputs, row->argmax) + error_of(inputs, v) &&
           error_of(inputs, row->argmax) + error_of(inputs, v) > 0;
}

/* ---- derivatives ---- */

/* What the exponent of every p may be off by beside its own z. */
static double common_error(const flp_random_row *row, const flp_random_row_upstream *g)
{
    return row->sum_error + (g->bare_lse ? u * (2 * fabs(row->lse) + 4 * fabs(row->largest)) : 0);
}

void flp_random_row_differentiate(const flp_random_row_inputs *inputs, const flp_random_row *row, const double *z, const double *e,
                                  const flp_random_row_upstream *g, double *derivative, double *error)
{
    const double cap = inputs->softcap, T = inputs->temperature, common = common_error(row, g);
    const int has_no_lse = (g->bare_lse || g->of_lse) && isfinite(row->lse) && isinf((float)row->lse);
    const int p_is_at_most_1 = !g->bare_lse || fabs(row->lse) * M_LOG2E > most_exact_offset;

    for (int64_t v = 0; v < inputs->vocab; v++) {
        const double x = cap > 0 ? inputs->logit[v] / cap : 0, slope = cap > 0 ? 1 / (cosh(x) * cosh(x)) : 1;
        const double log_p = z[v] - row->largest - row->log_sum, p = exp(log_p), surprise = p > 0 && g->entropy != 0 ? log_p + row->entropy : 0;
        const double uniform = g->sum != 0 ? g->sum * (g->class_weights ? g->class_weights[v] : 1) : 0;
        const double shared = g->lse - g->entropy * surprise; /* what p is multiplied by, beside g->logp */
        const double growth = growth_of(log_p, e[v] + common), most_off = p_is_at_most_1 ? fmin(growth, 1) : growth;
        /* What is rounded is p as it is found, not as it should be. */
        const double off_p = most_off + 8 * u * (p + most_off), found = p + off_p;
        const double of_entropy = found > 0 ? found * fabs(g->entropy) * (e[v] + common + row->entropy_error + 8 * u * (fabs(log_p) + row->entropy)) : 0;
        double value, off = of_entropy + found * g->lse_error + 4 * u * (fabs(uniform) + (found > 0 ? found * fabs(shared) : 0));
        if (v != inputs->target) {
            value = p * (shared - g->logp) + uniform;
            off += off_p * fabs(shared - g->logp) + 4 * u * found * fabs(g->logp) + p * g->error;
            if (row->rest < smallest_kept_rest)
                off += p * fabs(shared - g->logp);
        } else if (g->bare_target) {
            value = g->logp * row->rest + p * shared + uniform;
            off += off_p * fabs(shared - g->logp) + 4 * u * fabs(g->logp) + row->rest * g->error;
        } else {
            value = g->logp * row->rest + p * shared + uniform;
            const double off_rest = fmin(1, growth_of(log_p, row->logp_error));
            off += off_p * fabs(shared) + fabs(g->logp) * (off_rest + 8 * u * (row->rest + off_rest)) + row->rest * g->error;
        }
        const double own = error_of(inputs, v), capped = cap > 0 ? 2 * fabs(tanh(x)) * own / cap + 16 * u * larger(1, fmin(fabs(x), 64)) : 0;
        derivative[v] = value / T * slope;
        /* Powers below 2^-126 are 0. */
        error[v] = (off + (fabs(value) + off) * capped) * slope / T + 0x1p-120 * (1 + fabs(g->logp) + fabs(shared)) / fmin(T, 1) + 4 * u * fabs(derivative[v]);
        if ((fabs(shared) + fabs(g->logp) + g->error + fabs(uniform)) / T > FLT_MAX || has_no_lse)
            error[v] = INFINITY; /* no fp32 holds what it is made of */
    }
}
