/* From logits to the loss' derivatives by them. */
#include "operators/linear/logit_gradient.h"
#include <math.h>
#include <stddef.h>

static double target_derivative(const flp_logit_gradient_row *row)
{
    double logp = row->shares.logp, p = exp(logp), derivative = row->g_logp * -expm1(logp);
    if (p == 0)
        return derivative; /* logp may be -inf */
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
    gradient->entropy_coefficient.lane[lane] = (float)(row->g_entropy * flp_ln_2 * scale);
    gradient->uniform_coefficient.lane[lane] = (float)(row->g_sum * scale);
    gradient->target.lane[lane] = row->target;
}

#define EACH_WIDTH "operators/linear/logit_gradient_body.h"
#include "cpu/each_width.h"

void flp_logit_gradient_apply_by(int width, const flp_logit_gradient *gradient, const float *bias, const float *uniform_weights, const float *logits, int count,
                                 int32_t first, float *derivatives)
{
    FLP_BY_WIDTH(width, apply)(gradient, bias, uniform_weights, logits, count, first, derivatives);
}

void flp_logit_gradient_pack_by(int width, const float *derivatives, int count, int rows, float *pairs)
{
    FLP_BY_WIDTH(width, pack)(derivatives, count, rows, pairs);
}
