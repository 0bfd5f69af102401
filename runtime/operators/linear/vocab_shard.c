/* A shard's partials on the CPU path: they have an integer offset and are stored in fp32, as the GPU paths', and are merged in fp64. */
#include "operators/linear/vocab_shard.h"

#include <float.h>
#include <math.h>

/* KEEP IN STEP: large offsets (templates/parts/row_offset.cuh). From here on a float has no fraction bits: such a z2 is rounded to a float. */
static const double large_offset = 0x1p23;

static int is_large(double z2)
{
    return fabs(z2) >= large_offset && fabs(z2) < INFINITY;
}

/* z2 rounded to fp32. A finite z2 stays finite. */
static double rounded(double z2)
{
    return isfinite(z2) ? (double)(float)fmax(fmin(z2, FLT_MAX), -FLT_MAX) : z2;
}

flp_linear_partial flp_vocab_shard_nothing(void)
{
    return (flp_linear_partial){ .offset = -INFINITY, .target = -INFINITY, .largest = -INFINITY, .largest_index = FLP_NO_INDEX };
}

flp_linear_partial flp_vocab_shard_partial(const flp_other_sums *others, const float *target)
{
    const double z2 = others->origin * others->scale, whole = is_large(z2) ? rounded(z2) : rint(z2), change = is_large(z2) || !isfinite(z2) ? 0 : z2 - whole;
    flp_linear_partial part = flp_vocab_shard_nothing();

    /* sum (x + d) 2^(x + d) = 2^d (sum x 2^x + d sum 2^x) */
    part.offset = (float)whole;
    part.sum = (float)(others->sum * exp2(change));
    part.moment = (float)((others->moment + change * others->sum) * exp2(change));
    if (target) {
        part.target = *target;
        part.scale = (float)others->scale;
    }
    return part;
}

/* ---- merging ---- */

/* A part without an offset has sums of 0 or NaN, which are the same for any offset. */
static void add_part(const flp_linear_partial *part, double offset, flp_other_sums *sums)
{
    double sum = part->sum, moment = part->moment;

    if (part->offset != -INFINITY && part->offset != offset)
        flp_sums_move(&sum, &moment, part->offset - offset);
    sums->sum += sum;
    sums->moment += moment;
}

/* The target's z2: in fp64, the product of two floats is exact. */
static double target_z2(const flp_linear_partial *part, double offset)
{
    const double z2 = (double)part->target * part->scale;

    return is_large(offset) || is_large(z2) ? rounded(z2) : z2;
}

/* A large z2 may have been clamped to fp32's finite range. There the target's logit itself, which was not, gives the row's lse or logp. */
static void correct_large(const flp_linear_partial *part, flp_row_shares *shares)
{
    const double z = (double)part->target * part->scale * flp_ln_2;

    if (is_large(shares->origin) && shares->logp > -16 && isfinite(z))
        shares->lse = z - shares->logp;
    else if (isfinite(z) && z < -FLT_MAX * flp_ln_2)
        shares->logp = z - shares->lse;
}

flp_vocab_shard_row flp_vocab_shard_merge(const flp_linear_partial *parts, int ranks, int64_t stride)
{
    flp_vocab_shard_row row = { .largest_index = FLP_NO_INDEX };
    flp_other_sums sums = { .origin = -INFINITY, .scale = 1 };
    const flp_linear_partial *with_target = NULL;
    float largest = -INFINITY;

    for (int rank = 0; rank < ranks; rank++)
        sums.origin = fmax(sums.origin, parts[rank * stride].offset);
    for (int rank = 0; rank < ranks; rank++) {
        const flp_linear_partial *part = &parts[rank * stride];
        add_part(part, sums.origin, &sums);
        row.logit_sum += part->logit_sum;
        if (part->scale != 0)
            with_target = part;
        if (part->largest > largest || (part->largest == largest && part->largest_index < row.largest_index)) {
            largest = part->largest;
            row.largest_index = part->largest_index;
        }
    }
    row.has_target = with_target != NULL;
    if (!with_target)
        row.shares = flp_row_shares_of_others(&sums);
    else {
        row.shares = flp_row_shares_of(&sums, target_z2(with_target, sums.origin));
        correct_large(with_target, &row.shares);
    }
    return row;
}
