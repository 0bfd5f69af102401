/* A row's target beside its other entries, whose terms alone are in the row's sum.
 *
 * With r = (sum of the others) / (the target's term) the target's log-probability is -log1p(r): nothing cancels, however likely the target is. The
 * same ratio gives the row's log-sum and its entropy. KEEP IN STEP: target's share (templates/parts/target_share.cuh) */
#ifndef FLP_CPU_TARGET_SHARE_H
#define FLP_CPU_TARGET_SHARE_H

/* Sums over the other entries: of 2^((z - origin) scale), and of that times the exponent. */
typedef struct {
    double origin; /* a logit, after the softcap; -inf: nothing but -inf */
    double sum, moment;
    double scale; /* log2(e) / temperature */
} flp_other_sums;

typedef struct {
    double origin;   /* a logit */
    double log2_sum; /* of 2^((z - origin) scale), target and all */
    double lse, entropy, logp;
} flp_row_shares;

/* A row without a target: logp is NaN. */
flp_row_shares flp_row_shares_of_others(const flp_other_sums *others);
/* target: its logit, after the softcap. */
flp_row_shares flp_row_shares_of(const flp_other_sums *others, double target);
/* For a row whose lse, and perhaps entropy, is known. The origin is a float. logp follows from lse. */
flp_row_shares flp_row_shares_of_lse(double lse, double entropy, double target, double scale);

/* A row's own temperature: outside the bounds of params/types.h it counts as the nearest of them. */
double flp_row_temperature_within_bounds(double temperature);

/* log2(e) / temperature. */
double flp_row_scale(double temperature);
#endif
