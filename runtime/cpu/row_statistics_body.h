/* The loops of row_statistics.c over a chunk's logits, included once for each vector width; all widths give the same bits. No include guard. */
#define VECTORS (FLP_LANES / WIDTH)

TARGET static inline FLP_FLOATS FLP_OF_WIDTH(soften)(FLP_FLOATS z, float softcap)
{
    return softcap > 0 ? softcap * FLP_MATH(tanh)(z * (1 / softcap)) : z;
}

/* Inlined once with a softcap and once without: where softcap is the constant 0, the compiler removes the tanh from the loop. */
TARGET static inline __attribute__((always_inline)) void FLP_OF_WIDTH(add_bias_inline)(flp_row_statistics *part, const float *bias, float softcap,
                                                                                       float *logits, int count, int32_t first)
{
    FLP_FLOATS largest[VECTORS];
    FLP_INTS index[VECTORS];
    memcpy(largest, part->largest.lane, sizeof largest);
    memcpy(index, part->largest_index.lane, sizeof index);
    for (int v = 0; v < count; v++) {
        FLP_FLOATS *row = (FLP_FLOATS *)(logits + v * FLP_LANES);
        for (int i = 0; i < VECTORS; i++) {
            FLP_FLOATS z = row[i] + bias[v];
            FLP_INTS larger = z > largest[i];
            row[i] = FLP_OF_WIDTH(soften)(z, softcap);
            largest[i] = FLP_MATH(select)(larger, z, largest[i]);
            index[i] = FLP_INT_MATH(select)(larger, (FLP_INTS){ 0 } + (first + v), index[i]);
        }
    }
    memcpy(part->largest.lane, largest, sizeof largest);
    memcpy(part->largest_index.lane, index, sizeof index);
}

/* Adds the bias to the logits, finds the largest ones, and applies the softcap in place. */
TARGET static void FLP_OF_WIDTH(add_bias)(flp_row_statistics *part, const float *bias, float softcap, float *logits, int count, int32_t first)
{
    if (softcap > 0)
        FLP_OF_WIDTH(add_bias_inline)(part, bias, softcap, logits, count, first);
    else
        FLP_OF_WIDTH(add_bias_inline)(part, bias, 0, logits, count, first);
}

/* x 2^x; 0 at -inf, and wherever 2^x is 0. power: 2^x. */
TARGET static inline FLP_FLOATS FLP_OF_WIDTH(moment_term)(FLP_FLOATS x, FLP_FLOATS power)
{
    return power * FLP_MATH(select)(x < -127.0f, FLP_MATH(splat)(-127.0f), x);
}

TARGET static inline __attribute__((always_inline)) void FLP_OF_WIDTH(add_powers_inline)(flp_row_statistics *part, const flp_row_transform *transform,
                                                                                         int wants_moment, const float *logits, int count)
{
    FLP_FLOATS origin[VECTORS], scale[VECTORS];
    memcpy(origin, part->origin.lane, sizeof origin);
    memcpy(scale, transform->scale.lane, sizeof scale);
    /* Where the origin is -inf all logits are -inf or NaN: with 0 as origin their terms are 0 or NaN. */
    for (int i = 0; i < VECTORS; i++)
        origin[i] = FLP_MATH(select)(origin[i] > -INFINITY, origin[i], FLP_MATH(splat)(0));
    for (int begin = 0; begin < count; begin += TERMS_IN_FLOAT) {
        int end = begin + TERMS_IN_FLOAT < count ? begin + TERMS_IN_FLOAT : count;
        FLP_FLOATS sum[VECTORS] = { 0 }, moment[VECTORS] = { 0 };
        for (int v = begin; v < end; v++) {
            const FLP_FLOATS *row = (const FLP_FLOATS *)(logits + v * FLP_LANES);
            for (int i = 0; i < VECTORS; i++) {
                FLP_FLOATS x = (row[i] - origin[i]) * scale[i], power = FLP_MATH(exp2)(x);
                sum[i] += power;
                if (wants_moment)
                    moment[i] += FLP_OF_WIDTH(moment_term)(x, power);
            }
        }
        for (int lane = 0; lane < FLP_LANES; lane++)
            part->sum[lane] += sum[lane / WIDTH][lane % WIDTH];
        for (int lane = 0; wants_moment && lane < FLP_LANES; lane++)
            part->moment[lane] += moment[lane / WIDTH][lane % WIDTH];
    }
}

TARGET static void FLP_OF_WIDTH(add_powers)(flp_row_statistics *part, const flp_row_transform *transform, const float *logits, int count)
{
    if (transform->wants_moment)
        FLP_OF_WIDTH(add_powers_inline)(part, transform, 1, logits, count);
    else
        FLP_OF_WIDTH(add_powers_inline)(part, transform, 0, logits, count);
}

#undef VECTORS
