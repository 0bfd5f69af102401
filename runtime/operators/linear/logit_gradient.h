/* From logits to the loss' derivatives by them: sixteen rows side by side, one a vector lane. */
#ifndef FLP_OPERATORS_LOGIT_GRADIENT_H
#define FLP_OPERATORS_LOGIT_GRADIENT_H
#include "cpu/row_statistics.h"
#include "cpu/target_share.h"

/* dlogit = slope (p (prob_coefficient - entropy_coefficient log2(p)) + uniform_coefficient w[v]),
 *     p = 2^((z - origin) scale - log2_sum),  slope = 1 - (z / c)^2;
 * the target's p term gives way to `target_coefficient` where logp is known, in which nothing has cancelled, else `target_coefficient` is added. */
typedef struct {
    flp_row_transform transform;
    flp_lanes origin, log2_sum;
    flp_lanes target_coefficient, prob_coefficient, entropy_coefficient, uniform_coefficient;
    flp_int_lanes target, replaced; /* replaced: all ones where target_coefficient is all of the target's derivative */
} flp_logit_gradient;

/* What one row's loss depends on: g_logp, g_lse, g_entropy, its derivative by sum_v w[v] z[v], and its temperature and target. */
typedef struct {
    double g_logp, g_lse, g_entropy, g_sum, temperature;
    flp_row_shares shares;
    int has_logp; /* shares.logp is more than lse gives */
    int32_t target;
} flp_logit_gradient_row;

void flp_logit_gradient_set(flp_logit_gradient *gradient, int lane, const flp_logit_gradient_row *row);

/* The derivatives by the logits [count][16] of vocabulary entries first, first + 1 ..., both 16-byte aligned; they may lie in the logits' place. bias [count]
 * is added before. uniform_weights: w [count], or NULL where there are no such terms. By vectors of so many floats, 4 or flp_vector_width(); no bit
 * shows it. */
void flp_logit_gradient_apply_by(int width, const flp_logit_gradient *gradient, const float *bias, const float *uniform_weights, const float *logits, int count,
                                 int32_t first, float *derivatives);
/* The same derivatives rounded to bf16, in pairs [(count + 1) / 2][16] of entries, 16-byte aligned. Lanes from `rows` on become zeros, for they stand in pairs
 * with others. */
void flp_logit_gradient_pack_by(int width, const float *derivatives, int count, int rows, float *pairs);
#endif
