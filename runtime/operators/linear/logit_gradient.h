/* From logits to the loss' derivatives by them: sixteen rows side by side, one a vector lane. */
#ifndef FLP_OPERATORS_LOGIT_GRADIENT_H
#define FLP_OPERATORS_LOGIT_GRADIENT_H
#include "cpu/row_statistics.h"
#include "cpu/target_share.h"

/* dlogit = slope (p (prob_coefficient - entropy_coefficient log2(p)) + uniform_coefficient w[v]),
 *     p = 2^((z - origin) scale - log2_sum),  slope = 1 - (z / c)^2.
 * For the target, `target_coefficient` replaces the term in p where logp is known, because it was computed without cancellation; else it is added to it. */
typedef struct {
    flp_row_transform transform;
    flp_lanes origin, log2_sum;
    flp_lanes target_coefficient, prob_coefficient, entropy_coefficient, uniform_coefficient;
    flp_int_lanes target, replaced; /* replaced: all bits 1 where target_coefficient replaces the target's term in p, else 0 */
} flp_logit_gradient;

/* What one row's loss depends on: g_logp, g_lse, g_entropy, its derivative by sum_v w[v] z[v], and its temperature and target. */
typedef struct {
    double g_logp, g_lse, g_entropy, g_sum, temperature;
    flp_row_shares shares;
    int has_logp; /* 1: shares.logp was not computed from lse */
    int32_t target;
} flp_logit_gradient_row;

void flp_logit_gradient_set(flp_logit_gradient *gradient, int lane, const flp_logit_gradient_row *row);

/* Computes the derivatives by the logits [count][16] of vocabulary entries first .. first + count - 1. Both arrays are 16-byte aligned, and may be the same
 * one. bias [count] is added to the logits first. uniform_weights: w [count], or NULL where there are no such terms. width: floats in a vector, 4 or
 * flp_vector_width(); all widths give the same bits. */
void flp_logit_gradient_apply_by(int width, const flp_logit_gradient *gradient, const float *bias, const float *uniform_weights, const float *logits, int count,
                                 int32_t first, float *derivatives);
/* Rounds the derivatives to bf16 and packs them in pairs [(count + 1) / 2][16] of entries, 16-byte aligned. Lanes from `rows` on become zeros, because a
 * product may read the last row and such a lane as a pair. */
void flp_logit_gradient_pack_by(int width, const float *derivatives, int count, int rows, float *pairs);
#endif
