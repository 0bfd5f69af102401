/* exp2 and tanh of four floats at a time, without branches or calls. */
#ifndef FLP_CPU_VECTOR_MATH_H
#define FLP_CPU_VECTOR_MATH_H
#include <stdint.h>

/* Explicit vectors, for compilers vectorise such loops at different levels of optimisation, if at all. 16 bytes are what
 * every 64-bit target passes in registers. Comparisons give all ones or 0 in each lane. */
typedef float flp_float4 __attribute__((vector_size(16)));
typedef int32_t flp_int4 __attribute__((vector_size(16)));
typedef uint32_t flp_uint4 __attribute__((vector_size(16)));

static inline flp_float4 flp_float4_splat(float value)
{
    return (flp_float4){ value, value, value, value };
}

/* Lanes of `yes` where mask is all ones, else of `no`. */
static inline flp_int4 flp_int4_select(flp_int4 mask, flp_int4 yes, flp_int4 no)
{
    return (mask & yes) | (~mask & no);
}

static inline flp_float4 flp_float4_select(flp_int4 mask, flp_float4 yes, flp_float4 no)
{
    return (flp_float4)flp_int4_select(mask, (flp_int4)yes, (flp_int4)no);
}

/* 2^x for x <= 127, within 1.25 ulp; 0 below 2^-126; NaN for NaN. libm's exp2f is no better and takes a call per element.
 * x = n + f with n = rint(x), by adding and taking away 1.5 * 2^23, whose low bits then hold n; 2^f by a polynomial
 * with the least relative error on [-0.5, 0.5] (2.0e-9, own fit), 2^n by its exponent field. */
static inline flp_float4 flp_float4_exp2(flp_float4 x)
{
    const flp_float4 shift = flp_float4_splat(12582912.0f);
    flp_float4 shifted = x + shift;
    flp_float4 f = x - (shifted - shift);
    flp_float4 p = f * 1.53533617864e-4f + 1.33988743782e-3f;
    p = p * f + 9.61843735844e-3f;
    p = p * f + 5.55033247126e-2f;
    p = p * f + 2.40226479136e-1f;
    p = p * f + 6.93147202855e-1f;
    p = p * f + 1.0f;
    flp_float4 power = (flp_float4)(((flp_uint4)shifted << 23) + (127u << 23));
    return (flp_float4)(~(x < -126.0f) & (flp_int4)(p * power));
}

/* tanh x within 2 ulp. Near 0 an odd polynomial (least relative error on |x| < 0.625: 4.1e-9, own fit), else
 * 1 - 2 / (e^(2 |x|) + 1), which cancels little there; from 10 on it is 1. */
static inline flp_float4 flp_float4_tanh(flp_float4 x)
{
    const flp_int4 sign_bit = (flp_int4)flp_float4_splat(-0.0f);
    flp_int4 sign = (flp_int4)x & sign_bit;
    flp_float4 a = (flp_float4)((flp_int4)x & ~sign_bit), u = x * x;
    flp_float4 p = u * -5.71704549346e-3f + 2.06505877118e-2f;
    p = p * u - 5.37434982166e-2f;
    p = p * u + 1.33314912887e-1f;
    p = p * u - 3.33332839254e-1f;
    flp_float4 near = x + x * u * p;
    flp_float4 clamped = flp_float4_select(a > 10.0f, flp_float4_splat(10.0f), a);
    flp_float4 far = 1.0f - 2.0f / (flp_float4_exp2(clamped * 2.88539008178f) + 1.0f);
    return flp_float4_select(a < 0.625f, near, (flp_float4)((flp_int4)far | sign));
}

/* 1 - tanh(x)^2 without the cancellation where the tanh is near 1. */
static inline flp_float4 flp_float4_tanh_slope(flp_float4 x)
{
    flp_float4 magnitude = (flp_float4)((flp_int4)x & 0x7fffffff);
    flp_float4 e = flp_float4_exp2(magnitude * -2.88539008178f);
    return 4.0f * e / ((1.0f + e) * (1.0f + e));
}
#endif
