/* Sums and gradients of a chunk of one row. */
#include "cpu/logits_chunk.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "cpu/convert.h"
#include "cpu/vector_math.h"

/* So many terms of a lane are summed in fp32 before a double takes them. */
enum { TERMS_IN_FLOAT = 32, LANES = 4, BLOCK = TERMS_IN_FLOAT * LANES };

typedef union {
    flp_float4 vector[FLP_LOGITS_CHUNK_COLUMNS / LANES];
    float value[FLP_LOGITS_CHUNK_COLUMNS];
} buffer;

/* Widens, and fills up the last block with -inf. Returns the columns that a walk visits. */
static int load(flp_dtype dtype, const void *logits, int count, buffer *to)
{
    const int padded = (count + BLOCK - 1) / BLOCK * BLOCK;

    flp_convert_to_f32(dtype, logits, to->value, (size_t)count);
    for (int v = count; v < padded; v++)
        to->value[v] = -INFINITY;
    return padded;
}

static void find_largest(const buffer *logits, int count, int32_t first, flp_logits_sums *sums)
{
    sums->largest = -INFINITY;
    sums->largest_index = 0;
    for (int v = 0; v < count; v++)
        if (logits->value[v] > sums->largest) {
            sums->largest = logits->value[v];
            sums->largest_index = first + v;
        }
}

static flp_float4 soften(flp_float4 logit, float softcap)
{
    return softcap > 0 ? softcap * flp_float4_tanh(logit * (1 / softcap)) : logit;
}

/* k = rint(largest z2). +inf stays and makes the row NaN by inf - inf; -inf becomes finite, for then 2^(-inf - k) is 0. */
static float find_offset(float largest, const flp_logits_transform *transform)
{
    flp_float4 softened = soften(flp_float4_splat(largest), transform->softcap);
    float k = rintf(softened[0] * transform->scale);

    return k > -FLT_MAX ? k : -FLT_MAX;
}

static float add_lanes(flp_float4 lanes)
{
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* softcap(-inf) is finite: columns behind `count` are taken out by their number. */
static flp_float4 power_at(const buffer *logits, int at, int count, const flp_logits_transform *transform, float offset, flp_float4 *distance)
{
    flp_float4 d = soften(logits->vector[at / LANES], transform->softcap) * transform->scale - offset, power;
    flp_int4 columns = (flp_int4){ 0, 1, 2, 3 } + at;

    power = flp_float4_exp2(d);
    *distance = flp_float4_select(d < -200.0f, flp_float4_splat(-200.0f), d);
    return flp_float4_select(columns < count, power, flp_float4_splat(0));
}

void flp_logits_chunk_sum(flp_dtype dtype, const void *from, int count, int32_t first, const flp_logits_transform *transform,
                          flp_logits_sums *sums)
{
    buffer logits;
    const int padded = load(dtype, from, count, &logits);

    find_largest(&logits, count, first, sums);
    sums->offset = find_offset(sums->largest, transform);
    sums->sum = sums->moment = 0;
    for (int block = 0; block < padded; block += BLOCK) {
        flp_float4 sum = { 0 }, moment = { 0 };
        for (int at = block; at < block + BLOCK; at += LANES) {
            flp_float4 distance, power = power_at(&logits, at, count, transform, sums->offset, &distance);
            sum += power;
            moment += power * distance;
        }
        sums->sum += add_lanes(sum);
        sums->moment += add_lanes(moment);
    }
}

/* 2^x for an integer x <= 0; 0 where x is far below, NaN where it is NaN. */
static double power_of_two(float x)
{
    return isnan(x) ? NAN : x < -2000 ? 0 : ldexp(1, (int)x);
}

static void rescale(flp_logits_sums *sums, float offset)
{
    const float change = sums->offset - offset;

    if (change == 0)
        return;
    sums->sum *= power_of_two(change);
    sums->moment *= power_of_two(change);
    if (sums->sum != 0)
        sums->moment += sums->sum * change;
    sums->offset = offset;
}

void flp_logits_chunk_merge(flp_logits_sums *sums, const flp_logits_sums *later)
{
    flp_logits_sums other = *later;
    const float offset = sums->offset > other.offset ? sums->offset : other.offset;

    rescale(sums, offset);
    rescale(&other, offset);
    sums->sum += other.sum;
    sums->moment += other.moment;
    if (other.largest > sums->largest) {
        sums->largest = other.largest;
        sums->largest_index = other.largest_index;
    }
}

static void store(flp_dtype dtype, float value, void *to, int at)
{
    if (dtype == FLP_F32)
        ((float *)to)[at] = value;
    else
        ((uint16_t *)to)[at] = dtype == FLP_BF16 ? flp_convert_f32_to_bf16(value) : flp_convert_f32_to_f16(value);
}

void flp_logits_chunk_differentiate(flp_dtype dtype, const void *from, int count, const flp_logits_transform *transform,
                                    const flp_logits_factors *factors, int target, void *gradients)
{
    buffer logits;
    const int padded = load(dtype, from, count, &logits);

    for (int at = 0; at < padded; at += LANES) {
        flp_float4 distance, power = power_at(&logits, at, count, transform, factors->offset, &distance);
        flp_float4 gradient = power * (factors->power + factors->moment * distance);
        if (target >= at && target < at + LANES)
            gradient[target - at] += factors->target;
        if (transform->softcap > 0)
            gradient *= flp_float4_tanh_slope(logits.vector[at / LANES] * (1 / transform->softcap));
        for (int lane = 0; lane < LANES && at + lane < count; lane++)
            store(dtype, gradient[lane], gradients, at + lane);
    }
}
