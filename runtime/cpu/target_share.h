/* A row's log-probability, lse and entropy, from its target and the sums over its other entries. These sums leave the target's term out.
 *
 * With r = (sum of the other entries' terms) / (the target's term) the target's log-probability is -log1p(r). No digits cancel, however likely the target is.
 * The same ratio gives the row's lse and its entropy. KEEP IN STEP: target's share (templates/parts/target_share.cuh) */
#ifndef FLP_CPU_TARGET_SHARE_H
#define FLP_CPU_TARGET_SHARE_H

static const double flp_ln_2 = 0.693147180559945309417, flp_log2_e = 1.44269504088896340736;

/* Sums over the entries except the target, with d = (z - origin) scale. */
typedef struct {
    double origin;      /* a logit, after the softcap; -inf: all these entries are -inf */
    double sum, moment; /* sum of 2^d; sum of d 2^d */
    double scale;       /* log2(e) / temperature */
} flp_other_sums;

typedef struct {
    double origin;             /* a logit, after the softcap */
    double log2_sum;           /* log2 of the sum of 2^((z - origin) scale) over all entries, the target included */
    double lse, entropy, logp; /* natural logarithms */
} flp_row_shares;

/* Moves a row's sums from an origin to one that is `change` lower, in units of d: sum (d + change) 2^(d + change) = 2^change (moment + change sum). Below -2000,
 * 2^change is 0, and the factor beside it must not be infinite. */
void flp_sums_move(double *sum, double *moment, double change);

/* For a row without a target: `others` are all its entries, and logp is NaN. */
flp_row_shares flp_row_shares_of_others(const flp_other_sums *others);
/* For a row with a target. target: its logit, after the softcap. */
flp_row_shares flp_row_shares_of(const flp_other_sums *others, double target);
/* For a row whose lse is known, and its entropy where the caller uses it. origin is lse in units of logits, rounded to a float; logp is computed from target
 * and lse, and is NaN where target is NaN. */
flp_row_shares flp_row_shares_of_lse(double lse, double entropy, double target, double scale);

/* Clamps a row's own temperature to FLP_LEAST_TEMPERATURE .. FLP_MOST_TEMPERATURE (params/types.h). */
double flp_row_temperature_within_bounds(double temperature);

/* log2(e) / temperature. */
double flp_row_scale(double temperature);
#endif
