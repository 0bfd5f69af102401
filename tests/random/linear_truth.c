/* Logits and rows of a random problem of the linear operators, in fp64, and how far fp32 may be off.
 *
 * A product of D terms, summed in fp32 in any order: partial sums wander between 0, the product and the size of its terms, q = sqrt(sum (h w)^2), and
 * each addition rounds with a deviation of u / sqrt(3) of the partial sum. Tensor cores cut instead of rounding, once each 8 or 16 terms, to the same
 * side, up to 2 u each. So: u (DEVIATIONS sqrt(D / 3) + D / 8 + 4) max(|h . w|, q). Then one rounding for the bias. */
#include <float.h>
#include <math.h>
#include <stdlib.h>

#include "cross_entropy_cases.h"
#include "random/linear.h"
#include "random/numbers.h"

static const double u = 0x1p-24, deviations = 6;

static double *allocate(int64_t count)
{
    double *numbers = calloc((size_t)(count > 0 ? count : 1), sizeof(double));

    if (!numbers)
        abort();
    return numbers;
}

/* [rows][D] of hidden, [V][D] of weight. */
static double *decode(const flp_random_linear *linear, flp_random_role role, int64_t rows, int64_t row_stride, int64_t stride)
{
    const flp_random_problem *p = linear->problem;
    const void *data = flp_random_memory_at(&linear->memory, role);
    double *to = allocate(rows * p->d);

    for (int64_t i = 0; i < rows; i++)
        for (int64_t d = 0; d < p->d; d++)
            to[i * p->d + d] = flp_reference_decode((flp_dtype)p->dtype, data, i * row_stride + d * stride);
    return to;
}

double *flp_random_linear_hidden(const flp_random_linear *linear)
{
    return decode(linear, FLP_RANDOM_HIDDEN, linear->problem->n, linear->asked.backward.forward.hidden_stride, 1);
}

double *flp_random_linear_weight(const flp_random_linear *linear)
{
    const int64_t stride = linear->asked.backward.forward.weight_stride;

    return decode(linear, FLP_RANDOM_WEIGHT, linear->problem->v, linear->problem->columns ? 1 : stride, linear->problem->columns ? stride : 1);
}

/* The logit as fp32 has it, and how far it may be from there. */
static double round_logit(double product, double product_error, double bias, double *error)
{
    const double logit = product + bias;
    double low, high;

    *error = 0;
    if (!isfinite(logit))
        return logit;
    low = flp_random_round(FLP_F32, logit - product_error);
    high = flp_random_round(FLP_F32, logit + product_error);
    *error = high - low;
    return isfinite(*error) ? flp_random_round(FLP_F32, logit) : logit;
}

/* Whole numbers, and zeros, as long as nothing makes up for what tensor cores cut from long sums (gen/kernels/tile_config.lua). */
static int is_exact(const flp_random_problem *p)
{
    return p->values != FLP_RANDOM_NORMAL && p->likely != FLP_RANDOM_TARGET_ALIGNED && p->d <= 64;
}

static void compute_logits(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    const double D = (double)p->d, factor = is_exact(p) ? 0 : u * (deviations * sqrt(D / 3) + D / 8 + 4);
    const void *bias = flp_random_memory_at(&linear->memory, FLP_RANDOM_BIAS);
    double *hidden = flp_random_linear_hidden(linear), *weight = flp_random_linear_weight(linear);

    for (int64_t v = 0; v < p->v; v++) {
        const double b = bias ? flp_reference_decode((flp_dtype)p->bias, bias, v) : 0;
        for (int64_t i = 0; i < p->n; i++) {
            const double *h = hidden + i * p->d, *w = weight + v * p->d;
            double product = 0, squares = 0;
            for (int64_t d = 0; d < p->d; d++) {
                const double term = h[d] * w[d];
                product += term;
                squares += term * term;
            }
            linear->logit[i * p->v + v] = round_logit(product, factor * fmax(fabs(product), sqrt(squares)), b, &linear->logit_error[i * p->v + v]);
        }
    }
    free(hidden);
    free(weight);
}

flp_random_row_inputs flp_random_linear_row_inputs(const flp_random_linear *linear, int64_t i)
{
    const flp_random_problem *p = linear->problem;
    const int64_t target = flp_random_linear_is_ignored(linear, i) ? -1 : flp_random_linear_target(linear, i);

    return (flp_random_row_inputs){ .logit = linear->logit + i * p->v,
                                    .error = linear->logit_error + i * p->v,
                                    .vocab = p->v,
                                    .target = target >= 0 && target < p->v ? target : -1,
                                    .softcap = p->softcap,
                                    .temperature = flp_random_linear_temperature(linear, i) };
}

void flp_random_linear_compute(flp_random_linear *linear)
{
    const flp_random_problem *p = linear->problem;
    double *z = allocate(p->v), *e = allocate(p->v);

    linear->logit = allocate(p->n * p->v);
    linear->logit_error = allocate(p->n * p->v);
    linear->row = calloc((size_t)p->n + 1, sizeof(*linear->row));
    linear->bad_first = -1;
    if (!linear->row)
        abort();
    compute_logits(linear);
    for (int64_t i = 0; i < p->n; i++) {
        const flp_random_row_inputs inputs = flp_random_linear_row_inputs(linear, i);
        flp_random_row_compute(&inputs, z, e, &linear->row[i]);
        if (!flp_random_linear_has_part(linear, i) && !flp_random_linear_is_ignored(linear, i) && linear->bad_count++ == 0)
            linear->bad_first = i;
    }
    free(z);
    free(e);
}

void flp_random_linear_free_truth(flp_random_linear *linear)
{
    free(linear->logit);
    free(linear->logit_error);
    free(linear->row);
    free(linear->loss_beyond);
    if (linear->as_reference.logp) {
        linear->as_reference.logits = NULL;
        flp_reference_free(&linear->as_reference);
        flp_cross_entropy_reference_free(&linear->loss);
    }
    flp_random_gradient_free(&linear->hidden);
    flp_random_gradient_free(&linear->weight);
    flp_random_gradient_free(&linear->bias);
}
