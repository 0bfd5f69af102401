/* exp2 and tanh of many floats at a time, without branches or calls: flp_float4_exp2, flp_float16_exp2 and so on. */
#ifndef FLP_CPU_VECTOR_MATH_H
#define FLP_CPU_VECTOR_MATH_H
#include <stdint.h>

/* Explicit vectors, because compilers vectorise such loops at different optimisation levels, if at all. Every 64-bit target passes vectors of 16 bytes in
 * registers; vectors of 64 bytes are for AVX-512, and give the same bits. A comparison gives all ones or 0 in each lane. */
typedef float flp_float4 __attribute__((vector_size(16)));
typedef int32_t flp_int4 __attribute__((vector_size(16)));
typedef uint32_t flp_uint4 __attribute__((vector_size(16)));

/* For code that is compiled once for each vector width, in files that are included with WIDTH and TARGET defined: the vector types of this width, the names of
 * functions of such vectors (FLP_MATH of floats, FLP_INT_MATH of integers), and a function's name with the width appended (FLP_OF_WIDTH). */
#define FLP_JOIN_NAMES(a, b) a##b
#define FLP_JOIN(a, b) FLP_JOIN_NAMES(a, b)
#define FLP_FLOATS FLP_JOIN(flp_float, WIDTH)
#define FLP_INTS FLP_JOIN(flp_int, WIDTH)
#define FLP_UINTS FLP_JOIN(flp_uint, WIDTH)
#define FLP_MATH(function) FLP_JOIN(FLP_FLOATS, _##function)
#define FLP_INT_MATH(function) FLP_JOIN(FLP_INTS, _##function)
#define FLP_OF_WIDTH(function) FLP_JOIN(function##_, WIDTH)

#ifdef __x86_64__
typedef float flp_float16 __attribute__((vector_size(64), aligned(16)));
typedef int32_t flp_int16 __attribute__((vector_size(64), aligned(16)));
typedef uint32_t flp_uint16 __attribute__((vector_size(64), aligned(16)));

#define FLP_WIDE_TARGET __attribute__((target("avx512f")))
/* The function that FLP_OF_WIDTH named for vectors of `width` floats. */
#define FLP_BY_WIDTH(width, function) ((width) == 16 ? function##_16 : function##_4)

/* Floats in the widest vector that this processor supports: 16 or 4. */
static inline int flp_vector_width(void)
{
    return __builtin_cpu_supports("avx512f") ? 16 : 4;
}
#else
#define FLP_BY_WIDTH(width, function) ((void)(width), function##_4)
static inline int flp_vector_width(void)
{
    return 4;
}
#endif

#define EACH_WIDTH "cpu/vector_math_body.h"
#include "cpu/each_width.h"
#endif
