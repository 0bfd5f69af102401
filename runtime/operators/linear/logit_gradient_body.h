/* The loops of logit_gradient.c over a chunk's logits, included once for each vector width. All widths give the same bits. No include guard. */
#define VECTORS (FLP_LANES / WIDTH)

/* Inlined into each case of apply: with a constant softcap of 0, the loop has no tanh; with constant uniform_weights NULL, it has no uniform_coefficient. */
TARGET static inline __attribute__((always_inline)) void FLP_OF_WIDTH(apply_inline)(const flp_logit_gradient *gradient, float softcap, const float *bias,
                                                                                    const float *uniform_weights, const float *logits, int count, int32_t first,
                                                                                    float *derivatives)
{
    const FLP_FLOATS *origin = (const FLP_FLOATS *)gradient->origin.lane, *scale = (const FLP_FLOATS *)gradient->transform.scale.lane;
    const FLP_FLOATS *log2_sum = (const FLP_FLOATS *)gradient->log2_sum.lane, *of_prob = (const FLP_FLOATS *)gradient->prob_coefficient.lane;
    const FLP_FLOATS *of_entropy = (const FLP_FLOATS *)gradient->entropy_coefficient.lane;
    const FLP_FLOATS *of_uniform = (const FLP_FLOATS *)gradient->uniform_coefficient.lane;
    const FLP_INTS *of_target = (const FLP_INTS *)gradient->target_coefficient.lane, *target = (const FLP_INTS *)gradient->target.lane;
    const FLP_INTS *replaced = (const FLP_INTS *)gradient->replaced.lane;
    for (int v = 0; v < count; v++) {
        const FLP_FLOATS *from = (const FLP_FLOATS *)(logits + v * FLP_LANES);
        FLP_FLOATS *to = (FLP_FLOATS *)(derivatives + v * FLP_LANES);
        for (int i = 0; i < VECTORS; i++) {
            FLP_FLOATS z = from[i] + bias[v], slope = FLP_MATH(splat)(1);
            if (softcap > 0) {
                FLP_FLOATS y = z * (1 / softcap);
                slope = FLP_MATH(tanh_slope)(y);
                z = softcap * FLP_MATH(tanh)(y);
            }
            FLP_FLOATS x = (z - origin[i]) * scale[i] - log2_sum[i];
            x = FLP_MATH(select)(x > 0, FLP_MATH(splat)(0), x); /* x > 0 is due to rounding: of a caller's lse, it may be many powers of two */
            /* Below -127, 2^x is 0. The logarithm is cut off there, so that the product is 0, not NaN, where x is -inf. */
            FLP_FLOATS log2_p = FLP_MATH(select)(x < -127.0f, FLP_MATH(splat)(-127.0f), x);
            FLP_FLOATS derivative = FLP_MATH(exp2)(x) * (of_prob[i] - of_entropy[i] * log2_p);
            FLP_INTS is_target = target[i] == (FLP_INTS){ 0 } + (first + v);
            derivative = (FLP_FLOATS)(~(is_target & replaced[i]) & (FLP_INTS)derivative);
            derivative += (FLP_FLOATS)(is_target & of_target[i]);
            if (uniform_weights != NULL)
                derivative += of_uniform[i] * uniform_weights[v];
            to[i] = derivative * slope;
        }
    }
}

TARGET static void FLP_OF_WIDTH(apply)(const flp_logit_gradient *gradient, const float *bias, const float *uniform_weights, const float *logits, int count,
                                       int32_t first, float *derivatives)
{
    if (gradient->transform.softcap > 0)
        FLP_OF_WIDTH(apply_inline)(gradient, gradient->transform.softcap, bias, uniform_weights, logits, count, first, derivatives);
    else if (uniform_weights != NULL)
        FLP_OF_WIDTH(apply_inline)(gradient, 0, bias, uniform_weights, logits, count, first, derivatives);
    else
        FLP_OF_WIDTH(apply_inline)(gradient, 0, bias, NULL, logits, count, first, derivatives);
}

/* flp_convert_f32_to_bf16; the result is in the high halves. */
TARGET static inline FLP_INTS FLP_OF_WIDTH(round_to_bf16)(FLP_INTS bits)
{
    FLP_INTS rounded = bits + 0x7fff + (bits >> 16 & 1), is_nan = (bits & 0x7fffffff) > 0x7f800000;
    return (is_nan & (bits | 0x400000)) | (~is_nan & rounded);
}

TARGET static void FLP_OF_WIDTH(pack)(const float *derivatives, int count, int rows, float *pairs)
{
    FLP_INTS taken[VECTORS];
    for (int lane = 0; lane < FLP_LANES; lane++)
        taken[lane / WIDTH][lane % WIDTH] = lane < rows ? -1 : 0;
    for (int v = 0; v < count; v += 2) {
        const FLP_INTS *low = (const FLP_INTS *)(derivatives + v * FLP_LANES), *high = low + VECTORS;
        FLP_INTS *to = (FLP_INTS *)(pairs + v / 2 * FLP_LANES);
        for (int i = 0; i < VECTORS; i++) {
            FLP_INTS last = v + 1 < count ? FLP_OF_WIDTH(round_to_bf16)(high[i]) & (int)0xffff0000 : (FLP_INTS){ 0 };
            to[i] = taken[i] & ((FLP_OF_WIDTH(round_to_bf16)(low[i]) >> 16 & 0xffff) | last);
        }
    }
}

#undef VECTORS
