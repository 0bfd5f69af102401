// fp32 as two tf32 numbers: the twin of sm80/tf32.cuh.
// Config: none

// cvt.rna: to the nearest of 10 fraction bits, ties away from zero; infinities and NaN stay.
__device__ __twin__ u32 round_to_tf32(float x) {
    u32 bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
__device__ __twin__ void split_tf32(u32 x, u32 &high, u32 &low) {
    float value = __uint_as_float(x);
    high = round_to_tf32(value);
    low = round_to_tf32(value - __uint_as_float(high));
}
