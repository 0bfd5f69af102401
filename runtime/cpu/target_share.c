/* Computes a row's logp, lse and entropy from its target and the sums over its other entries. */
#include "cpu/target_share.h"

#include <float.h>
#include <math.h>

#include "params/types.h"

static double positive(double entropy)
{
    return entropy < 0 ? 0 : entropy; /* only the rounding of the difference makes it negative; NaN stays */
}

void flp_sums_move(double *sum, double *moment, double change)
{
    const double power = exp2(change);

    *moment = power * (*moment + (change < -2000 ? -2000 : change) * *sum);
    *sum *= power;
}

flp_row_shares flp_row_shares_of_others(const flp_other_sums *others)
{
    const double log2_sum = log2(others->sum);

    return (flp_row_shares){ .origin = others->origin,
                             .log2_sum = log2_sum,
                             .lse = (others->origin * others->scale + log2_sum) * flp_ln_2,
                             .entropy = positive((log2_sum - others->moment / others->sum) * flp_ln_2),
                             .logp = NAN };
}

flp_row_shares flp_row_shares_of(const flp_other_sums *others, double target)
{
    flp_row_shares row = flp_row_shares_of_others(others);
    const double d = !(target < INFINITY) ? NAN : others->origin == -INFINITY ? 0 : (target - others->origin) * others->scale;
    const double u = row.log2_sum - d, among_others = row.entropy; /* u: log2 of the ratio r of target_share.h */
    const int leads = u < 0;
    /* ratio: the smaller of target and others, divided by the larger; log_whole: log of both together, divided by the larger. */
    const double ratio = leads ? others->sum * exp2(-d) : exp2(-u), log_whole = log1p(ratio);
    const double smaller = ratio / (1 + ratio), rest = leads ? smaller : 1 / (1 + ratio);

    if (others->sum == 0 && target == -INFINITY)
        return row;
    if (leads) { /* the target becomes the row's origin, from which the row's sum is near 1 */
        row.origin = target;
        row.log2_sum = 0;
    }
    row.log2_sum += log_whole * flp_log2_e;
    row.lse = (row.origin * others->scale + row.log2_sum) * flp_ln_2;
    row.logp = leads ? 0 - log_whole : -(log_whole + u * flp_ln_2);
    row.entropy = log_whole;
    if (smaller > 0)
        row.entropy += smaller * fabs(u) * flp_ln_2;
    if (rest > 0)
        row.entropy += rest * among_others;
    return row;
}

flp_row_shares flp_row_shares_of_lse(double lse, double entropy, double target, double scale)
{
    const double origin = lse / (scale * flp_ln_2);
    const int has_digits = fabs(lse * flp_log2_e) < 0x1p23; /* from 2^23 on an lse in fp32 has no digits left for log2_sum */
    flp_row_shares row = { .origin = isfinite(lse) ? (float)fmax(fmin(origin, FLT_MAX), -FLT_MAX) : origin, .lse = lse, .entropy = entropy };

    row.log2_sum = has_digits ? lse * flp_log2_e - row.origin * scale : 0;
    row.logp = ((target - row.origin) * scale - row.log2_sum) * flp_ln_2;
    if (!has_digits && row.logp > 0) /* only lse's rounding makes it positive, and that may be many powers of two */
        row.logp = 0;
    return row;
}

double flp_row_temperature_within_bounds(double temperature)
{
    return temperature < FLP_LEAST_TEMPERATURE ? FLP_LEAST_TEMPERATURE : temperature > FLP_MOST_TEMPERATURE ? FLP_MOST_TEMPERATURE : temperature;
}

double flp_row_scale(double temperature)
{
    return flp_log2_e / temperature;
}
