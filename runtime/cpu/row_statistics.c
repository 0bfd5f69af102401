/* Online statistics of logits: maximum, argmax and sum of powers of two. */
#include "cpu/row_statistics.h"
#include <float.h>
#include <math.h>

/* So many terms are summed in fp32 before a double takes them: off by 3e-8 at most in practice, and the doubles cost
 * little. */
enum { TERMS_IN_FLOAT = 32 };

void flp_row_statistics_clear(flp_row_statistics *statistics)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        statistics->sum[lane] = 0;
        statistics->moment[lane] = 0;
        statistics->offset.lane[lane] = -FLT_MAX;
        statistics->largest.lane[lane] = -INFINITY;
        statistics->largest_index.lane[lane] = 0;
    }
}

/* Adds the bias in place and finds the maxima. */
static void add_bias(flp_row_statistics *part, const float *bias, float *logits, int count, int32_t first)
{
    flp_lanes largest = part->largest;
    flp_int_lanes index = part->largest_index;
    for (int v = 0; v < count; v++) {
        flp_float4 *row = (flp_float4 *)(logits + v * FLP_LANES);
        for (int i = 0; i < FLP_LANE_VECTORS; i++) {
            flp_float4 z = row[i] + bias[v];
            flp_int4 larger = z > largest.vector[i];
            row[i] = z;
            largest.vector[i] = flp_float4_select(larger, z, largest.vector[i]);
            index.vector[i] = flp_int4_select(larger, (flp_int4){0} + (first + v), index.vector[i]);
        }
    }
    part->largest = largest;
    part->largest_index = index;
}

static inline flp_float4 scale_logit(flp_float4 z, flp_float4 scale, float softcap)
{
    if (softcap > 0) z = softcap * flp_float4_tanh(z * (1 / softcap));
    return z * scale;
}

/* k = rint(largest z2). +inf stays and makes the row NaN by inf - inf; -inf becomes finite, for then 2^(-inf - k) is 0. */
static void find_offset(flp_row_statistics *part, const flp_row_transform *transform)
{
    for (int i = 0; i < FLP_LANE_VECTORS; i++)
        part->offset.vector[i] = scale_logit(part->largest.vector[i], transform->scale.vector[i], transform->softcap);
    for (int lane = 0; lane < FLP_LANES; lane++) {
        float k = rintf(part->offset.lane[lane]);
        part->offset.lane[lane] = k > -FLT_MAX ? k : -FLT_MAX;
    }
}

/* x 2^x, which is 0 at -inf and wherever 2^x is. */
static inline flp_float4 moment_term(flp_float4 x, flp_float4 power)
{
    return power * flp_float4_select(x < -127.0f, flp_float4_splat(-127.0f), x);
}

/* Inlined for each kind: with a constant softcap of 0 no tanh is left in the loop, without a moment nothing of that. */
static inline __attribute__((always_inline)) void add_powers(flp_row_statistics *part, const flp_lanes *scale, float softcap,
                                                             int wants_moment, float *logits, int count)
{
    for (int begin = 0; begin < count; begin += TERMS_IN_FLOAT) {
        int end = begin + TERMS_IN_FLOAT < count ? begin + TERMS_IN_FLOAT : count;
        flp_lanes sum = {.lane = {0}}, moment = {.lane = {0}};
        for (int v = begin; v < end; v++) {
            flp_float4 *row = (flp_float4 *)(logits + v * FLP_LANES);
            for (int i = 0; i < FLP_LANE_VECTORS; i++) {
                row[i] = scale_logit(row[i], scale->vector[i], softcap);
                flp_float4 x = row[i] - part->offset.vector[i], power = flp_float4_exp2(x);
                sum.vector[i] += power;
                if (wants_moment) moment.vector[i] += moment_term(x, power);
            }
        }
        for (int lane = 0; lane < FLP_LANES; lane++) part->sum[lane] += sum.lane[lane];
        for (int lane = 0; wants_moment && lane < FLP_LANES; lane++) part->moment[lane] += moment.lane[lane];
    }
}

void flp_row_statistics_add(flp_row_statistics *statistics, const flp_row_transform *transform, const float *bias,
                            float *logits, int count, int32_t first)
{
    flp_row_statistics part;
    flp_row_statistics_clear(&part);
    add_bias(&part, bias, logits, count, first);
    find_offset(&part, transform);
    if (transform->softcap > 0 && transform->wants_moment)
        add_powers(&part, &transform->scale, transform->softcap, 1, logits, count);
    else if (transform->softcap > 0)
        add_powers(&part, &transform->scale, transform->softcap, 0, logits, count);
    else if (transform->wants_moment)
        add_powers(&part, &transform->scale, 0, 1, logits, count);
    else
        add_powers(&part, &transform->scale, 0, 0, logits, count);
    flp_row_statistics_merge(statistics, &part);
}

/* 2^x for an integer x <= 0; 0 where x is far below, NaN where it is NaN. */
static double power_of_two(float x)
{
    return isnan(x) ? NAN : x < -2000 ? 0 : ldexp(1, (int)x);
}

void flp_row_statistics_merge(flp_row_statistics *statistics, const flp_row_statistics *later)
{
    for (int lane = 0; lane < FLP_LANES; lane++) {
        float old = statistics->offset.lane[lane], new = later->offset.lane[lane];
        float offset = old > new ? old : new;
        double old_factor = old == offset ? 1 : power_of_two(old - offset);
        double new_factor = new == offset ? 1 : power_of_two(new - offset);
        /* sum (x + d) 2^(x + d) = 2^d (sum x 2^x + d sum 2^x) */
        statistics->moment[lane] = old_factor * (statistics->moment[lane] + ((double)old - offset) * statistics->sum[lane]) +
                                   new_factor * (later->moment[lane] + ((double)new - offset) * later->sum[lane]);
        statistics->sum[lane] = statistics->sum[lane] * old_factor + later->sum[lane] * new_factor;
        statistics->offset.lane[lane] = offset;
        if (later->largest.lane[lane] > statistics->largest.lane[lane]) {
            statistics->largest.lane[lane] = later->largest.lane[lane];
            statistics->largest_index.lane[lane] = later->largest_index.lane[lane];
        }
    }
}
