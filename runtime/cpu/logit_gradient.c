/* From logits to the loss' derivatives by them. */
#include "cpu/logit_gradient.h"
#include <math.h>
#include <stddef.h>

static const double log2_e = 1.44269504088896340736, ln_2 = 0.693147180559945309417;

void flp_logit_gradient_set(flp_logit_gradient *gradient, int lane, const flp_logit_gradient_row *row)
{
    double lse2 = row->lse * log2_e, offset = rint(lse2), scale = 1 / row->temperature;
    gradient->offset.lane[lane] = (float)offset;
    gradient->fraction.lane[lane] = (float)(lse2 - offset);
    gradient->direct.lane[lane] = (float)(row->g_logp * scale);
    gradient->spread.lane[lane] = (float)((row->g_lse - row->g_logp - row->g_entropy * row->entropy) * scale);
    gradient->tilt.lane[lane] = (float)(row->g_entropy * ln_2 * scale);
    gradient->level.lane[lane] = (float)(row->g_sum * scale);
    gradient->target.lane[lane] = row->target;
}

/* Inlined for each kind: with a constant softcap of 0 no tanh is left in the loop, with a constant NULL no level. */
static inline __attribute__((always_inline)) void apply(const flp_logit_gradient *gradient, float softcap, const float *bias,
                                                        const float *level_weights, float *logits, int count, int32_t first)
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
            flp_float4 x = z * gradient->transform.scale.vector[i] - gradient->offset.vector[i];
            x -= gradient->fraction.vector[i];
            /* 2^x is 0 below -127 and stays so where x is -inf. */
            flp_float4 log2_p = flp_float4_select(x < -127.0f, flp_float4_splat(-127.0f), x);
            flp_float4 derivative = flp_float4_exp2(x) * (gradient->spread.vector[i] - gradient->tilt.vector[i] * log2_p);
            flp_int4 is_target = gradient->target.vector[i] == (flp_int4){0} + (first + v);
            derivative += (flp_float4)(is_target & (flp_int4)gradient->direct.vector[i]);
            if (level_weights != NULL) derivative += gradient->level.vector[i] * level_weights[v];
            row[i] = derivative * slope;
        }
    }
}

void flp_logit_gradient_apply(const flp_logit_gradient *gradient, const float *bias, const float *level_weights, float *logits, int count,
                              int32_t first)
{
    if (gradient->transform.softcap > 0)
        apply(gradient, gradient->transform.softcap, bias, level_weights, logits, count, first);
    else if (level_weights != NULL)
        apply(gradient, 0, bias, level_weights, logits, count, first);
    else
        apply(gradient, 0, bias, NULL, logits, count, first);
}
