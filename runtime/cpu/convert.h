/* Conversions of bf16 and fp16 to and from fp32. */
#ifndef FLP_CPU_CONVERT_H
#define FLP_CPU_CONVERT_H
#include "base/dtype.h"
#include <stddef.h>
#include <stdint.h>

float flp_convert_bf16_to_f32(uint16_t bits);
float flp_convert_f16_to_f32(uint16_t bits);
/* Both round to nearest even; NaN stays NaN. */
uint16_t flp_convert_f32_to_bf16(float value);
uint16_t flp_convert_f32_to_f16(float value);
/* Converts count elements of a floating-point dtype to fp32. `from` need not be aligned. */
void flp_convert_to_f32(flp_dtype dtype, const void *from, float *to, size_t count);
/* Converts count fp32 numbers to dtype, rounded to nearest even. `to` need not be aligned. */
void flp_convert_from_f32(flp_dtype dtype, const float *from, void *to, size_t count);
#endif
