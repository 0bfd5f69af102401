/* Functions of vectors of WIDTH floats, included by cpu/vector_math.h once for each width. TARGET: the functions' attributes. No include guard. */
TARGET static inline FLP_FLOATS FLP_MATH(splat)(float value)
{
    return value - (FLP_FLOATS){ 0 }; /* -0 stays -0 */
}

/* In each lane `yes` where the mask is all ones, `no` where it is 0. */
TARGET static inline FLP_INTS FLP_INT_MATH(select)(FLP_INTS mask, FLP_INTS yes, FLP_INTS no)
{
    return (mask & yes) | (~mask & no);
}

TARGET static inline FLP_FLOATS FLP_MATH(select)(FLP_INTS mask, FLP_FLOATS yes, FLP_FLOATS no)
{
    return (FLP_FLOATS)FLP_INT_MATH(select)(mask, (FLP_INTS)yes, (FLP_INTS)no);
}

/* 2^x for x <= 127, within 1.25 ulp; 0 below 2^-126; NaN for NaN. libm's exp2f is no better and takes a call per element.
 * x = n + f with n = rint(x): x + 1.5 * 2^23 has n in its low bits, and subtracting 1.5 * 2^23 again gives n as a float. 2^f is a
 * polynomial with the least relative error on [-0.5, 0.5] (2.0e-9, own fit); 2^n is made by its exponent field. */
TARGET static inline FLP_FLOATS FLP_MATH(exp2)(FLP_FLOATS x)
{
    const FLP_FLOATS shift = FLP_MATH(splat)(12582912.0f);
    FLP_FLOATS shifted = x + shift;
    FLP_FLOATS f = x - (shifted - shift);
    FLP_FLOATS p = f * 1.53533617864e-4f + 1.33988743782e-3f;
    p = p * f + 9.61843735844e-3f;
    p = p * f + 5.55033247126e-2f;
    p = p * f + 2.40226479136e-1f;
    p = p * f + 6.93147202855e-1f;
    p = p * f + 1.0f;
    FLP_FLOATS power = (FLP_FLOATS)(((FLP_UINTS)shifted << 23) + (127u << 23));
    return (FLP_FLOATS)(~(x < -126.0f) & (FLP_INTS)(p * power));
}

/* tanh x within 2 ulp. For |x| < 0.625 it is an odd polynomial (least relative error there: 4.1e-9, own fit), else
 * 1 - 2 / (e^(2 |x|) + 1), which cancels few digits there; from 10 on it is 1. */
TARGET static inline FLP_FLOATS FLP_MATH(tanh)(FLP_FLOATS x)
{
    const FLP_INTS sign_bit = (FLP_INTS)FLP_MATH(splat)(-0.0f);
    FLP_INTS sign = (FLP_INTS)x & sign_bit;
    FLP_FLOATS a = (FLP_FLOATS)((FLP_INTS)x & ~sign_bit), u = x * x;
    FLP_FLOATS p = u * -5.71704549346e-3f + 2.06505877118e-2f;
    p = p * u - 5.37434982166e-2f;
    p = p * u + 1.33314912887e-1f;
    p = p * u - 3.33332839254e-1f;
    FLP_FLOATS near = x + x * u * p;
    FLP_FLOATS clamped = FLP_MATH(select)(a > 10.0f, FLP_MATH(splat)(10.0f), a);
    FLP_FLOATS far = 1.0f - 2.0f / (FLP_MATH(exp2)(clamped * 2.88539008178f) + 1.0f);
    return FLP_MATH(select)(a < 0.625f, near, (FLP_FLOATS)((FLP_INTS)far | sign));
}

/* 1 - tanh(x)^2, computed without cancellation where tanh(x) is near 1. */
TARGET static inline FLP_FLOATS FLP_MATH(tanh_slope)(FLP_FLOATS x)
{
    FLP_FLOATS magnitude = (FLP_FLOATS)((FLP_INTS)x & 0x7fffffff);
    FLP_FLOATS e = FLP_MATH(exp2)(magnitude * -2.88539008178f);
    return 4.0f * e / ((1.0f + e) * (1.0f + e));
}
