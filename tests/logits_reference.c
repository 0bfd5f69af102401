/* logits_logp in fp64, both directions, and the check of what a path has written. Shares no code with the library. */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "logits_cases.h"

static const double unit = 0x1p-24;

static const void *data_of(const flp_logits_data *data, flp_logits_role role)
{
    return data->buffer[role].base ? data->buffer[role].base + data->buffer[role].offset : NULL;
}

static double upstream(const flp_logits_data *data, flp_logits_role role, int64_t row)
{
    const float *values = data_of(data, role);

    return values ? values[row] : 0;
}

static int64_t target_of(const flp_logits_case *c, const flp_logits_data *data, int64_t row)
{
    const void *target = data_of(data, FLP_LOGITS_TARGET);

    return c->problem.target_dtype == FLP_I32 ? ((const int32_t *)target)[row] : ((const int64_t *)target)[row];
}

typedef struct {
    const flp_logits_case *c;
    const double *logits; /* [vocab], before the softcap */
    double temperature;
    double largest;                   /* |z| */
    double origin, log_sum;           /* lse, apart: together they lose what is small beside the origin */
    double lse, entropy, sensitivity; /* sensitivity: sum p |log p + H|, the entropy's to its logits */
    int64_t target;                   /* -1: none */
    double logp, others;              /* others: their log-probability, log(1 - p) of the target; 0 without one */
} row_facts;

static double scaled(const row_facts *row, int64_t v)
{
    const double c = row->c->problem.softcap;

    if (c <= 0 && row->logits[v] == -INFINITY)
        return -INFINITY; /* at whatever temperature */
    return (c > 0 ? c * tanh(row->logits[v] / c) : row->logits[v]) / row->temperature;
}

/* The sum of the exponentials of all logits but the target's, beside that of the largest. */
static double sum_of_others(const row_facts *row, double largest, int64_t target)
{
    double sum = 0;

    for (int64_t v = 0; v < row->c->problem.vocab; v++)
        if (v != target)
            sum += exp(scaled(row, v) - largest);
    return sum;
}

/* What is near 1 has its digits in what lacks to 1. */
static void find_shares(row_facts *row)
{
    double largest = -INFINITY, ratio;

    row->logp = NAN;
    row->others = 0;
    if (row->target < 0)
        return;
    for (int64_t v = 0; v < row->c->problem.vocab; v++)
        if (v != row->target && scaled(row, v) > largest)
            largest = scaled(row, v);
    ratio = largest == -INFINITY ? -INFINITY : largest - scaled(row, row->target) + log(sum_of_others(row, largest, row->target));
    row->logp = ratio > 0 ? -(ratio + log1p(exp(-ratio))) : 0 - log1p(exp(ratio));
    row->others = ratio > 0 ? -log1p(exp(-ratio)) : ratio - log1p(exp(ratio));
}

static double log_share(const row_facts *row, int64_t v)
{
    return v == row->target ? row->logp : scaled(row, v) - row->origin - row->log_sum;
}

static void sum_row(row_facts *row)
{
    double largest = -INFINITY;

    row->entropy = row->sensitivity = row->largest = 0;
    for (int64_t v = 0; v < row->c->problem.vocab; v++) {
        const double z = scaled(row, v);
        if (isnan(z) || z > largest)
            largest = isnan(largest) ? largest : z;
        if (isfinite(z) && fabs(z) > row->largest)
            row->largest = fabs(z);
    }
    row->origin = largest;
    row->log_sum = log(sum_of_others(row, largest, -1));
    row->lse = largest == -INFINITY ? -INFINITY : largest == INFINITY ? NAN : largest + row->log_sum;
    if (!isfinite(row->lse)) {
        row->entropy = row->logp = NAN;
        return;
    }
    find_shares(row);
    for (int64_t v = 0; v < row->c->problem.vocab; v++) {
        const double log_p = log_share(row, v);
        if (exp(log_p) > 0)
            row->entropy -= exp(log_p) * log_p;
    }
    for (int64_t v = 0; v < row->c->problem.vocab; v++) {
        const double log_p = log_share(row, v);
        if (exp(log_p) > 0)
            row->sensitivity += exp(log_p) * fabs(log_p + row->entropy);
    }
}

/* The first of the largest; -1 where a NaN or +inf makes it any. */
static int64_t find_argmax(const row_facts *row)
{
    int64_t best = 0;

    for (int64_t v = 0; v < row->c->problem.vocab; v++) {
        if (isnan(row->logits[v]) || row->logits[v] == INFINITY)
            return -1;
        if (row->logits[v] > row->logits[best])
            best = v;
    }
    return best;
}

/* What fp32 may cost, u = 2^-24. A power of two counts from a logit near the largest, so that a logit at a distance of `distance` from it is off by
 * 4 u of that, or of 4 u M where |z| is at most M: by the scale's rounding, the difference's and the product's. A softcap costs 8 u M more, tanh's
 * 4e-7. The sums' terms are positive: additions of depth 16 a lane (20 where powers are large), 2 of its parts, 5 of lanes, 4 a batch of segments and 5
 * lanes again, with 4 u of exp2 and of log2 each: 40 u. */
static double find_rounding(const row_facts *row, double distance)
{
    return unit * ((row->c->problem.softcap > 0 ? 8 * row->largest : 0) + 4 * fmin(row->largest, distance) + 40);
}

/* The terms that make a sum lie within the logarithm of their number, and a share's logarithm away from it. */
static double distance_of(const row_facts *row, double log_p)
{
    return fabs(log_p) + 2 * log((double)row->c->problem.vocab);
}

/* The target's term is no part of the others' sum: log p is off by 1 - p of what the ratio of both is. */
static double find_logp_rounding(const row_facts *row)
{
    if (row->target < 0 || !isfinite(row->logp))
        return 0;
    return exp(row->others) * find_rounding(row, distance_of(row, row->others == -INFINITY ? 0 : row->logp - row->others)) + 0x1p-126;
}

/* The entropy costs that times its own sensitivity, and of what the others have among themselves what fusedlogp.h promises, 2e-6. */
static double find_entropy_rounding(const row_facts *row)
{
    const double others = row->target >= 0 ? exp(row->others) : 1;

    return find_rounding(row, 128) * row->sensitivity + unit * 40 * row->entropy + others * 2e-6 + 0x1p-126;
}

static void differentiate(const row_facts *row, const flp_logits_data *data, int64_t place, flp_logits_wanted *wanted)
{
    const double g = upstream(data, FLP_LOGITS_G_LOGP, place), g_lse = upstream(data, FLP_LOGITS_G_LSE, place);
    const double g_entropy = upstream(data, FLP_LOGITS_G_ENTROPY, place), cap = row->c->problem.softcap;
    const int64_t vocab = row->c->problem.vocab;

    for (int64_t v = 0; v < vocab; v++) {
        const int64_t at = place * vocab + v;
        const double log_p = log_share(row, v), p = exp(log_p), x = cap > 0 ? row->logits[v] / cap : 0;
        const double direct = v == row->target ? g * exp(row->others) : -g * p;
        const double outer = 1 / (cosh(x) * cosh(x)) / row->temperature, surprise = p > 0 ? row->entropy + log_p : 0;
        const double factor = fabs(g) + fabs(g_lse) + fabs(g_entropy) * (row->entropy + 90);
        const double size = fabs(direct) + p * (fabs(g_lse) + fabs(g_entropy) * (row->entropy + (p > 0 ? fabs(log_p) : 0) + 1));
        wanted->gradient[at] = (direct + p * (g_lse - (g_entropy != 0 ? g_entropy * surprise : 0))) * outer;
        const double slope_rounding = cap > 0 ? unit * (8 * fmin(fabs(x), 64) + 16) : 0;
        /* p and all its factors; the softcap's slope, 4 e / (1 + e)^2 with e = exp(-2 |x|), whose exponent is off by 4 u of its size, and 16 u
         * for exp2, two quotients and three products. Powers and products below 2^-126 are 0, at which -log p is less than 90. */
        wanted->gradient_rounding[at] = (find_rounding(row, distance_of(row, fmin(fabs(log_p), 90))) + slope_rounding + 20 * unit) * size * outer +
                                        p * fabs(g_entropy) * wanted->entropy_rounding[place] * outer + 0x1p-125 * (1 + factor / row->temperature);
        wanted->given_rounding[at] = unit * 4 * row->largest * (v == row->target ? size - fabs(direct) : size) * outer;
        if (v == row->target && row->c->rows & FLP_LOGITS_NO_LOGP)
            wanted->given_rounding[at] = unit * (4 * row->largest + 60) * (size + fabs(g)) * outer;
    }
}

/* As fp32 has it. */
static double in_range(double value)
{
    return fabs(value) > FLT_MAX ? copysign(INFINITY, value) : value;
}

static void compute_row(const flp_logits_case *c, const flp_logits_data *data, int64_t source, int64_t place, double *logits, flp_logits_wanted *wanted)
{
    const float *temperatures = data_of(data, FLP_LOGITS_ROW_TEMPERATURE);
    const int64_t target = target_of(c, data, source), vocab = c->problem.vocab;
    const int ignored = !(c->rows & FLP_LOGITS_NONE_IGNORED) && target == c->ignore_index, known = !ignored && target >= 0 && target < vocab;
    row_facts row = { .c = c, .logits = logits, .temperature = c->temperature > 0 ? c->temperature : 1 };

    if (c->rows & FLP_LOGITS_ROW_TEMPERATURES)
        row.temperature = fmax(0x1p-64, fmin(temperatures[source], 0x1p64)); /* beyond these it counts as the nearest of them */
    for (int64_t v = 0; v < vocab; v++)
        logits[v] = flp_reference_decode(c->problem.dtype, data_of(data, FLP_LOGITS_LOGITS), source * c->problem.logits_stride + v);
    row.target = known ? target : -1;
    sum_row(&row);
    wanted->lse[place] = in_range(row.lse);
    wanted->entropy[place] = row.entropy;
    wanted->lse_rounding[place] = find_rounding(&row, row.largest);
    wanted->logp_rounding[place] = find_logp_rounding(&row);
    wanted->entropy_rounding[place] = find_entropy_rounding(&row);
    wanted->argmax[place] = find_argmax(&row);
    wanted->logp[place] = ignored ? 0 : in_range(row.logp);
    wanted->bad_count += !ignored && !known;
    if (known)
        differentiate(&row, data, place, wanted);
}

/* An index that names no row: a bad target without logits. */
static void compute_nothing(int64_t place, flp_logits_wanted *wanted)
{
    wanted->bad_count++;
    if (place < 0)
        return;
    wanted->lse[place] = wanted->entropy[place] = wanted->logp[place] = NAN;
    wanted->argmax[place] = -1;
}

static int allocate(const flp_logits_case *c, flp_logits_wanted *wanted)
{
    const size_t rows = (size_t)wanted->rows + 1, all = (size_t)(wanted->rows * c->problem.vocab) + 1;

    wanted->written = calloc(rows, 1);
    wanted->logp = calloc(rows, sizeof(double));
    wanted->lse = calloc(rows, sizeof(double));
    wanted->entropy = calloc(rows, sizeof(double));
    wanted->logp_rounding = calloc(rows, sizeof(double));
    wanted->lse_rounding = calloc(rows, sizeof(double));
    wanted->entropy_rounding = calloc(rows, sizeof(double));
    wanted->argmax = calloc(rows, sizeof(int64_t));
    wanted->gradient = calloc(all, sizeof(double));
    wanted->gradient_rounding = calloc(all, sizeof(double));
    wanted->given_rounding = calloc(all, sizeof(double));
    return wanted->written && wanted->logp && wanted->lse && wanted->entropy && wanted->logp_rounding && wanted->lse_rounding && wanted->entropy_rounding &&
           wanted->argmax && wanted->gradient && wanted->gradient_rounding && wanted->given_rounding;
}

static void give_results(const flp_logits_wanted *wanted, flp_logits_data *data)
{
    float *lse = (float *)data_of(data, FLP_LOGITS_GIVEN_LSE), *entropy = (float *)data_of(data, FLP_LOGITS_GIVEN_ENTROPY);
    float *logp = (float *)data_of(data, FLP_LOGITS_GIVEN_LOGP);

    for (int64_t i = 0; i < wanted->rows; i++) {
        lse[i] = (float)wanted->lse[i];
        if (entropy)
            entropy[i] = (float)wanted->entropy[i];
        if (logp)
            logp[i] = (float)wanted->logp[i];
    }
}

int flp_logits_case_compute(const flp_logits_case *c, flp_logits_data *data, flp_logits_wanted *wanted)
{
    const int64_t *row_index = c->rows & FLP_LOGITS_INDEXED ? data_of(data, FLP_LOGITS_ROW_INDEX) : NULL;
    double *logits = calloc((size_t)c->problem.vocab, sizeof(*logits));

    *wanted = (flp_logits_wanted){ .rows = c->rows & FLP_LOGITS_SCATTERED ? c->all_rows : c->problem.rows, .bad_first = -1 };
    if (!logits || !allocate(c, wanted)) {
        free(logits);
        flp_logits_wanted_free(wanted);
        return 0;
    }
    for (int64_t i = 0; i < c->problem.rows; i++) {
        const int64_t source = row_index ? row_index[i] : i, bad_before = wanted->bad_count;
        const int exists = source >= 0 && source < c->all_rows;
        const int64_t place = c->rows & FLP_LOGITS_SCATTERED ? (exists ? source : -1) : i;
        if (exists)
            compute_row(c, data, source, place, logits, wanted);
        else
            compute_nothing(place, wanted);
        if (place >= 0)
            wanted->written[place] = 1;
        if (wanted->bad_count > bad_before && wanted->bad_first < 0)
            wanted->bad_first = i;
    }
    give_results(wanted, data);
    free(logits);
    return 1;
}

void flp_logits_wanted_free(flp_logits_wanted *wanted)
{
    free(wanted->written);
    free(wanted->logp);
    free(wanted->lse);
    free(wanted->entropy);
    free(wanted->logp_rounding);
    free(wanted->lse_rounding);
    free(wanted->entropy_rounding);
    free(wanted->argmax);
    free(wanted->gradient);
    free(wanted->gradient_rounding);
    free(wanted->given_rounding);
    *wanted = (flp_logits_wanted){ 0 };
}
