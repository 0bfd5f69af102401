/* The naive fp64 linear_logp: one formula after the other. */
#include "reference.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static double decode_bf16(uint16_t bits)
{
    uint32_t wide = (uint32_t)bits << 16;
    float value;
    memcpy(&value, &wide, sizeof value);
    return value;
}

static double decode_f16(uint16_t bits)
{
    double sign = bits & 0x8000 ? -1 : 1;
    int exponent = bits >> 10 & 31, mantissa = bits & 1023;
    if (exponent == 31)
        return mantissa ? NAN : sign * INFINITY;
    if (exponent == 0)
        return sign * ldexp(mantissa, -24);
    return sign * ldexp(1024 + mantissa, exponent - 25);
}

double flp_reference_decode(flp_dtype dtype, const void *data, int64_t index)
{
    uint16_t half;
    float single;
    if (dtype == FLP_F32) {
        memcpy(&single, (const char *)data + 4 * index, sizeof single);
        return single;
    }
    memcpy(&half, (const char *)data + 2 * index, sizeof half);
    return dtype == FLP_BF16 ? decode_bf16(half) : decode_f16(half);
}

void flp_reference_encode(flp_dtype dtype, double value, void *data, int64_t index)
{
    float single = (float)value;
    uint32_t wide;
    memcpy(&wide, &single, sizeof wide);
    uint16_t half = (uint16_t)(wide >> 16);
    if (dtype == FLP_F16) {
        uint16_t sign = half & 0x8000;
        double magnitude = fabs(value);
        if (isnan(value))
            half = 0x7e00;
        else if (isinf(value))
            half = sign | 0x7c00;
        else if (magnitude < ldexp(1, -14))
            half = sign | (uint16_t)ldexp(magnitude, 24);
        else
            half = (uint16_t)(sign | (((wide & 0x7fffffff) >> 13) - (112 << 10)));
    }
    if (dtype == FLP_F32)
        memcpy((char *)data + 4 * index, &single, sizeof single);
    else
        memcpy((char *)data + 2 * index, &half, sizeof half);
}

/* Four sums, for one alone waits for its own additions. */
static double dot(const double *a, const double *b, int64_t count)
{
    double sum[4] = { 0 };
    int64_t i = 0;
    for (; i + 4 <= count; i += 4)
        for (int j = 0; j < 4; j++)
            sum[j] += a[i + j] * b[i + j];
    for (; i < count; i++)
        sum[0] += a[i] * b[i];
    return sum[0] + sum[1] + sum[2] + sum[3];
}

static void decode_weight_row(const flp_linear_logp_problem *problem, const void *weight, int64_t v, double *row)
{
    for (int64_t d = 0; d < problem->hidden; d++) {
        int64_t at = problem->weight_layout == FLP_VOCAB_HIDDEN ? v * problem->weight_stride + d : d * problem->weight_stride + v;
        row[d] = flp_reference_decode(problem->dtype, weight, at);
    }
}

/* logits = hidden . weight^T + bias; size[i] = S of the header. hidden [rows][D]; weight: room for one row. */
static void compute_logits(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, const double *hidden, double *weight, double *logits,
                           double *size)
{
    int64_t rows = args->rows, depth = problem->hidden, vocab = problem->vocab;
    double largest_weight = 0;
    for (int64_t v = 0; v < vocab; v++) {
        double bias = problem->bias_dtype == FLP_NONE ? 0 : flp_reference_decode(problem->bias_dtype, args->bias, v);
        decode_weight_row(problem, args->weight, v, weight);
        largest_weight = fmax(largest_weight, sqrt(dot(weight, weight, depth)));
        for (int64_t i = 0; i < rows; i++) {
            double product = dot(hidden + i * depth, weight, depth);
            if (isfinite(product))
                size[i] = fmax(size[i], fabs(product));
            logits[i * vocab + v] = product + bias;
        }
    }
    for (int64_t i = 0; i < rows; i++) {
        double length = sqrt(dot(hidden + i * depth, hidden + i * depth, depth));
        if (isfinite(length))
            size[i] = fmax(size[i], length * largest_weight / sqrt((double)depth));
    }
}

static double transform(const flp_linear_logp_problem *problem, double temperature, double logit)
{
    double c = problem->softcap;
    return (c > 0 ? c * tanh(logit / c) : logit) / temperature;
}

static double log_sum_exp(const double *z, int64_t count)
{
    double largest = -INFINITY, sum = 0;
    for (int64_t v = 0; v < count; v++) {
        if (isnan(z[v]))
            return NAN;
        if (z[v] > largest)
            largest = z[v];
    }
    if (largest == -INFINITY)
        return -INFINITY;
    for (int64_t v = 0; v < count; v++)
        sum += exp(z[v] - largest);
    return largest + log(sum);
}

/* z - lse of a likely target has few digits: the others' share of the sum has them all. */
static double logp_of(const double *z, int64_t count, int64_t target, double lse)
{
    double others = 0;
    if (!(z[target] - lse > -1))
        return z[target] - lse;
    for (int64_t v = 0; v < count; v++)
        if (v != target)
            others += exp(z[v] - z[target]);
    return -log1p(others);
}

/* -sum p log p, of the target by its logp, and *sensitivity = sum p |log p + H|; a term of p = 0 is 0. */
static double entropy_of(const double *z, int64_t count, double lse, int64_t target, double logp, double *sensitivity)
{
    double entropy = 0;
    *sensitivity = 0;
    if (!isfinite(lse))
        return NAN;
    for (int64_t v = 0; v < count; v++)
        if (z[v] > -INFINITY)
            entropy -= v == target ? exp(logp) * logp : exp(z[v] - lse) * (z[v] - lse);
    for (int64_t v = 0; v < count; v++)
        if (z[v] > -INFINITY)
            *sensitivity += exp(z[v] - lse) * fabs(z[v] - lse + entropy);
    return entropy;
}

static int64_t target_at(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t row)
{
    if (problem->target_dtype == FLP_I32)
        return ((const int32_t *)args->target)[row];
    return ((const int64_t *)args->target)[row];
}

/* One row from its logits. z: room for V numbers; size: S. */
static void finish_row(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t row, double size, double *z, flp_reference *reference)
{
    const double *logits = reference->logits + row * problem->vocab;
    double temperature = args->temperature > 0 ? args->temperature : 1, largest_finite = 0;
    if (args->row_temperature != NULL)
        temperature = fmax(0x1p-64, fmin(args->row_temperature[row], 0x1p64)); /* beyond these it counts as the nearest of them */
    int64_t best = 0, target = target_at(problem, args, row);
    int usable = 1;
    for (int64_t v = 0; v < problem->vocab; v++) {
        z[v] = transform(problem, temperature, logits[v]);
        if (isnan(logits[v]) || logits[v] == INFINITY)
            usable = 0;
        if (logits[v] > logits[best])
            best = v;
        if (isfinite(logits[v]))
            largest_finite = fmax(largest_finite, fabs(logits[v]));
    }
    reference->argmax[row] = usable ? best : -1;
    reference->lse[row] = log_sum_exp(z, problem->vocab);
    double logit_rounding = (0.41 * sqrt((double)problem->hidden) * size + 3 * largest_finite) / temperature, sensitivity;
    reference->rounding[row] = ldexp(logit_rounding + 8, -24);
    double logp = target >= 0 && target < problem->vocab ? logp_of(z, problem->vocab, target, reference->lse[row]) : NAN;
    reference->entropy[row] = entropy_of(z, problem->vocab, reference->lse[row], target, logp, &sensitivity);
    for (int64_t v = 0; v < problem->vocab; v++)
        if (isfinite(z[v]))
            reference->largest[row] = fmax(reference->largest[row], fabs(z[v]));
    reference->entropy_rounding[row] = ldexp(logit_rounding * sensitivity + 8 * (1 + reference->entropy[row]), -24);
    if (flp_reference_ignores(args->flags, args->ignore_index, target)) {
        reference->logp[row] = 0;
    } else if (target < 0 || target >= problem->vocab) {
        reference->logp[row] = NAN;
        if (reference->bad_count++ == 0)
            reference->bad_first = row;
    } else {
        reference->logp[row] = logp;
    }
}

static double *allocate(int64_t count)
{
    return calloc((size_t)(count > 0 ? count : 1), sizeof(double));
}

int flp_reference_ignores(unsigned flags, int64_t ignore_index, int64_t target)
{
    return (flags & FLP_IGNORE_INDEX) && target == ignore_index;
}

int flp_reference_compute(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, flp_reference *reference)
{
    int64_t rows = args->rows, depth = problem->hidden, vocab = problem->vocab;
    *reference = (flp_reference){ .rows = rows, .vocab = vocab, .bad_first = -1 };
    reference->logits = allocate(rows * vocab);
    reference->logp = allocate(rows);
    reference->lse = allocate(rows);
    reference->entropy = allocate(rows);
    reference->rounding = allocate(rows);
    reference->entropy_rounding = allocate(rows);
    reference->largest = allocate(rows);
    reference->argmax = calloc((size_t)rows + 1, sizeof *reference->argmax);
    double *hidden = allocate(rows * depth), *weight = allocate(depth), *size = allocate(rows), *z = allocate(vocab);
    int complete = reference->logits && reference->logp && reference->lse && reference->entropy && reference->rounding && reference->entropy_rounding &&
                   reference->largest && reference->argmax && hidden && weight && size && z;
    if (complete) {
        for (int64_t i = 0; i < rows; i++)
            for (int64_t d = 0; d < depth; d++)
                hidden[i * depth + d] = flp_reference_decode(problem->dtype, args->hidden, i * problem->hidden_stride + d);
        compute_logits(problem, args, hidden, weight, reference->logits, size);
        for (int64_t i = 0; i < rows; i++)
            finish_row(problem, args, i, size[i], z, reference);
    } else {
        flp_reference_free(reference);
    }
    free(hidden);
    free(weight);
    free(size);
    free(z);
    return complete;
}

void flp_reference_free(flp_reference *reference)
{
    free(reference->logits);
    free(reference->logp);
    free(reference->lse);
    free(reference->entropy);
    free(reference->rounding);
    free(reference->entropy_rounding);
    free(reference->largest);
    free(reference->logp_rounding);
    free(reference->argmax);
    *reference = (flp_reference){ 0 };
}

void flp_reference_compare(const float *got, const double *want, int64_t count, flp_reference_error *error)
{
    double errors = 0, squares = 0;
    *error = (flp_reference_error){ .largest_at = -1, .unlike_at = -1 };
    for (int64_t i = 0; i < count; i++) {
        if (!isfinite(got[i]) || !isfinite(want[i])) {
            int alike = (isnan(got[i]) && isnan(want[i])) || got[i] == want[i];
            if (!alike && error->unlike_at < 0)
                error->unlike_at = i;
            continue;
        }
        double difference = fabs(got[i] - want[i]);
        errors += difference * difference;
        squares += want[i] * want[i];
        if (error->largest_at < 0 || difference > error->largest) {
            error->largest = difference;
            error->largest_at = i;
        }
    }
    error->norm = sqrt(errors);
    error->relative = errors == 0 ? 0 : sqrt(errors / squares);
}
