/* Sums and gradients of a chunk of one row. */
#include "operators/logits/row_chunk.h"

#include <math.h>

#include "cpu/convert.h"
#include "cpu/target_share.h"
#include "cpu/vector_math.h"

/* TERMS_IN_FLOAT terms of a lane are summed in fp32 before they are added to a double, as in cpu/row_statistics.c. */
enum { TERMS_IN_FLOAT = 16, LANES = 4, BLOCK = TERMS_IN_FLOAT * LANES };

typedef union {
    flp_float4 vector[FLP_ROW_CHUNK_COLUMNS / LANES];
    float value[FLP_ROW_CHUNK_COLUMNS];
} buffer;

/* Converts to fp32, and fills up the last block with -inf. Returns the number of columns that this makes. */
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

float flp_row_chunk_soften(float logit, float softcap)
{
    return soften(flp_float4_splat(logit), softcap)[0];
}

static float add_lanes(flp_float4 lanes)
{
    return (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]);
}

/* 2^d, with d limited to `limit`. *distance: d for the moment, limited to -200 from below: there 2^d is 0 in fp32, and its product with d must be 0 for a d of
 * -inf, too. */
static flp_float4 power_at(flp_float4 z, const flp_logits_transform *transform, float origin, float limit, flp_float4 *distance)
{
    flp_float4 d = (z - origin) * transform->scale;

    d = flp_float4_select(d > limit, flp_float4_splat(limit), d);
    *distance = flp_float4_select(d < -200.0f, flp_float4_splat(-200.0f), d);
    return flp_float4_exp2(d);
}

/* softcap(-inf) is finite, so the padding and the target, which must not contribute, are set to -inf after the softcap. */
static void soften_all(buffer *logits, int count, int padded, int target, float softcap)
{
    for (int i = 0; i < padded / LANES; i++)
        logits->vector[i] = soften(logits->vector[i], softcap);
    for (int v = count; v < padded; v++)
        logits->value[v] = -INFINITY;
    if (target >= 0)
        logits->value[target] = -INFINITY;
}

void flp_row_chunk_sum(flp_dtype dtype, const void *from, int count, int32_t first, int target, const flp_logits_transform *transform, flp_logits_sums *sums)
{
    buffer logits;
    const int padded = load(dtype, from, count, &logits);
    float origin;

    if (target >= 0)
        logits.value[target] = -INFINITY;
    find_largest(&logits, count, first, sums);
    if (transform->softcap > 0)
        soften_all(&logits, count, padded, target, transform->softcap);
    sums->origin = sums->largest;
    if (transform->softcap > 0) /* logits of -inf contribute, too */
        sums->origin = count > (target >= 0) ? flp_row_chunk_soften(sums->largest, transform->softcap) : -INFINITY;
    /* Without an origin, all z are -inf or NaN: 2^z itself is 0 or NaN. */
    origin = sums->origin > -INFINITY ? sums->origin : 0;
    sums->sum = sums->moment = 0;
    for (int block = 0; block < padded; block += BLOCK) {
        flp_float4 sum = { 0 }, moment = { 0 };
        for (int at = block; at < block + BLOCK; at += LANES) {
            flp_float4 distance, power = power_at(logits.vector[at / LANES], transform, origin, INFINITY, &distance);
            sum += power;
            moment += power * distance;
        }
        sums->sum += add_lanes(sum);
        sums->moment += add_lanes(moment);
    }
}

static void move_origin(flp_logits_sums *sums, float origin, double scale)
{
    if (sums->origin != origin && sums->origin != -INFINITY) /* in the second case the sum is 0 or NaN */
        flp_sums_move(&sums->sum, &sums->moment, ((double)sums->origin - origin) * scale);
}

void flp_row_chunk_merge(flp_logits_sums *sums, const flp_logits_sums *later, double scale)
{
    flp_logits_sums other = *later;
    const float origin = sums->origin > other.origin ? sums->origin : other.origin;

    move_origin(sums, origin, scale);
    move_origin(&other, origin, scale);
    sums->origin = origin;
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

void flp_row_chunk_differentiate(flp_dtype dtype, const void *from, int count, const flp_logits_transform *transform, const flp_logits_factors *factors,
                                 int target, void *gradients)
{
    buffer logits;
    const int padded = load(dtype, from, count, &logits);

    for (int at = 0; at < padded; at += LANES) {
        flp_float4 raw = logits.vector[at / LANES], distance;
        flp_float4 power = power_at(soften(raw, transform->softcap), transform, factors->origin, factors->log2_sum, &distance);
        flp_float4 gradient = power * (factors->power + factors->moment * distance);
        if (target >= at && target < at + LANES)
            gradient[target - at] = factors->target;
        if (transform->softcap > 0)
            gradient *= flp_float4_tanh_slope(raw * (1 / transform->softcap));
        for (int lane = 0; lane < LANES && at + lane < count; lane++)
            store(dtype, gradient[lane], gradients, at + lane);
    }
}
