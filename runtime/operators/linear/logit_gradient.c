/* From logits to the loss' derivatives by them. */
#include "operators/linear/logit_gradient.h"
#include <math.h>
#include <stddef.h>

static const double ln_2 = 0.693147180559945309417;

static double target_derivative(const flp_logit_gradient_row *row)
{
    double logp = row->shares.logp, p = exp(logp), derivative = row->g_logp * -expm1(logp);
    if (p == 0)
        return derivative; /* its logarithm may be -inf */
    derivative += p * row->g_lse;
    if (row->g_entropy != 0)
        derivative -= p * row->g_entropy * (row->shares.entropy + logp);
    return derivative;
}

void flp_logit_gradient_set(flp_logit_gradient *gradient, int lane, const flp_logit_gradient_row *row)
{
    double scale = 1 / row->temperature, entropy = row->g_entropy != 0 ? row->g_entropy * row->shares.entropy : 0;
    gradient->origin.lane[lane] = (float)row->shares.origin;
    gradient->log2_sum.lane[lane] = (float)row->shares.log2_sum;
    gradient->target_coefficient.lane[lane] = (float)((row->has_logp ? target_derivative(row) : row->g_logp) * scale);
    gradient->replaced.lane[lane] = row->has_logp ? -1 : 0;
    gradient->prob_coefficient.lane[lane] = (float)((row->g_lse - row->g_logp - entropy) * scale);
    gradient->entropy_coefficient.lane[lane] = (float)(row->g_entropy * ln_2 * scale);
    gradient->uniform_coefficient.lane[lane] = (float)(row->g_sum * scale);
    gradient->target.lane[lane] = row->target;
}

/* Inlined for each kind: with a constant softcap of 0 no tanh is left in the loop, with a constant NULL no uniform_coefficient. */
static inline __attribute__((always_inline)) void apply(const flp_logit_gradient *gradient, float softcap, const float *bias, const float *uniform_weights,
                                                        float *logits, int count, int32_t first)
{
    for (int v = 0; v < count; v++) {
        flp_float4 *row = (flp_float4 *)(logits + v * FLP_LANES);
        for (int i = 0; i < FLP_LANE_VECTORS; i++) {
            flp_float4 z = row[i] + bias[v], slope = flp_float4_splat(1);
            if (softcap > 0) {
                flp_float4 y = z * (1 / softcap);
                slope = flp_float4_tanh_slope(y);
                z = softcap * flp_float4_tanh(y);
            }
            flp_float4 x = (z - gradient->origin.vector[i]) * gradient->transform.scale.vector[i] - gradient->log2_sum.vector[i];
            x = flp_float4_select(x > 0, flp_float4_splat(0), x); /* by rounding, which in a given lse may be many powers */
            /* 2^x is 0 below -127 and stays so where x is -inf. */
            flp_float4 log2_p = flp_float4_select(x < -127.0f, flp_float4_splat(-127.0f), x);
            flp_float4 derivative = flp_float4_exp2(x) * (gradient->prob_coefficient.vector[i] - gradient->entropy_coefficient.vector[i] * log2_p);
            flp_int4 is_target = gradient->target.vector[i] == (flp_int4){ 0 } + (first + v);
            derivative = (flp_float4)(~(is_target & gradient->replaced.vector[i]) & (flp_int4)derivative);
            derivative += (flp_float4)(is_target & (flp_int4)gradient->target_coefficient.vector[i]);
            if (uniform_weights != NULL)
                derivative += gradient->uniform_coefficient.vector[i] * uniform_weights[v];
            row[i] = derivative * slope;
        }
    }
}

void flp_logit_gradient_apply(const flp_logit_gradient *gradient, const float *bias, const float *uniform_weights, float *logits, int count, int32_t first)
{
    if (gradient->transform.softcap > 0)
        apply(gradient, gradient->transform.softcap, bias, uniform_weights, logits, count, first);
    else if (uniform_weights != NULL)
        apply(gradient, 0, bias, uniform_weights, logits, count, first);
    else
        apply(gradient, 0, bias, NULL, logits, count, first);
}
