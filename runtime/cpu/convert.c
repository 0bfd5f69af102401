/* Conversions of bf16 and fp16 to and from fp32. */
#include "cpu/convert.h"
#include <string.h>
#include "cpu/vector_math.h"

static float float_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint32_t bits_from_float(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

float flp_convert_bf16_to_f32(uint16_t bits)
{
    return float_from_bits((uint32_t)bits << 16);
}

uint16_t flp_convert_f32_to_bf16(float value)
{
    uint32_t bits = bits_from_float(value);
    if ((bits & 0x7fffffff) > 0x7f800000)
        return (uint16_t)(bits >> 16 | 0x40); /* a quiet NaN: cutting its low bits alone might leave infinity */
    return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

uint16_t flp_convert_f32_to_f16(float value)
{
    uint32_t bits = bits_from_float(value);
    uint16_t sign = (uint16_t)(bits >> 16 & 0x8000);
    uint32_t magnitude = bits & 0x7fffffff;
    if (magnitude > 0x7f800000)
        return (uint16_t)(sign | 0x7e00 | (magnitude >> 13 & 0x3ff));
    if (magnitude >= 0x477ff000)
        return sign | 0x7c00; /* 65520 and more round to infinity */
    if (magnitude < 113u << 23) {
        /* Below 2^-14: adding 0.5 leaves multiples of 2^-24 in the low bits, rounded to nearest even by the addition. */
        return (uint16_t)(sign | (bits_from_float(float_from_bits(magnitude) + 0.5f) - 0x3f000000));
    }
    return (uint16_t)(sign | ((magnitude - (112u << 23) + 0xfff + (magnitude >> 13 & 1)) >> 13));
}

/* Four elements at a time, in explicit vectors, because not every optimisation level vectorises the loop. memcpy stands for an
 * unaligned load. */
typedef uint16_t half4 __attribute__((vector_size(8)));
typedef uint32_t uint4 __attribute__((vector_size(16)));
typedef float float4 __attribute__((vector_size(16)));

static inline uint4 load_halves(const unsigned char *from)
{
    half4 bits;
    memcpy(&bits, from, sizeof bits);
    return __builtin_convertvector(bits, uint4);
}

/* Subnormals are computed as 2^-14 (1 + m) - 2^-14. So no fp32 subnormal occurs, which would become 0 where the caller has set
 * flush-to-zero mode. */
static inline uint4 widen_f16(uint4 bits)
{
    const uint4 tiny = (uint4){ 0 } + (113u << 23);
    uint4 magnitude = (bits & 0x7fff) << 13;
    uint4 is_subnormal = (uint4)(magnitude < (1u << 23)), is_special = (uint4)(magnitude >= (31u << 23));
    uint4 subnormal = (uint4)((float4)(magnitude | tiny) - (float4)tiny);
    uint4 others = (magnitude + (112u << 23)) | (is_special & 0x7f800000);
    return (bits & 0x8000) << 16 | (is_subnormal & subnormal) | (~is_subnormal & others);
}

float flp_convert_f16_to_f32(uint16_t bits)
{
    return float_from_bits(widen_f16((uint4){ bits })[0]);
}

static inline uint4 widen_bf16(uint4 bits)
{
    return bits << 16;
}

static inline __attribute__((always_inline)) void widen_all(uint4 (*widen)(uint4 bits), const unsigned char *from, float *to, size_t count)
{
    size_t i = 0;
    for (; i + 4 <= count; i += 4) {
        uint4 bits = widen(load_halves(from + 2 * i));
        memcpy(to + i, &bits, sizeof bits);
    }
    for (; i < count; i++) {
        uint16_t bits;
        memcpy(&bits, from + 2 * i, sizeof bits);
        to[i] = float_from_bits(widen((uint4){ bits })[0]);
    }
}

void flp_convert_to_f32(flp_dtype dtype, const void *from, float *to, size_t count)
{
    switch (dtype) {
    case FLP_BF16:
        widen_all(widen_bf16, from, to, count);
        break;
    case FLP_F16:
        widen_all(widen_f16, from, to, count);
        break;
    default:
        memcpy(to, from, count * sizeof *to);
        break;
    }
}

/* Rounding to bf16 is compiled for each vector width, because it takes half of the time that writing gradients takes. */
#define EACH_WIDTH "cpu/convert_body.h"
#include "cpu/each_width.h"

void flp_convert_from_f32(flp_dtype dtype, const float *from, void *to, size_t count)
{
    unsigned char *bytes = to;
    if (dtype == FLP_F32) {
        memcpy(to, from, count * sizeof *from);
        return;
    }
    size_t i = 0;
    if (dtype == FLP_BF16)
        i = FLP_BY_WIDTH(flp_vector_width(), round_bf16)(from, bytes, count);
    for (; i < count; i++) {
        uint16_t bits = dtype == FLP_BF16 ? flp_convert_f32_to_bf16(from[i]) : flp_convert_f32_to_f16(from[i]);
        memcpy(bytes + 2 * i, &bits, sizeof bits);
    }
}
