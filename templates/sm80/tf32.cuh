// fp32 as two tf32 numbers: PTX ISA, "cvt.rna.tf32".
// Config: none

// x = high + low + rest, |rest| <= 2^-22 |x|: two tf32 numbers together hold 22 of fp32's 24 bits.
__device__ __forceinline__ void split_tf32(u32 x, u32 &high, u32 &low) {
    float value = __uint_as_float(x);
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(high) : "f"(value));
    float rest = value - __uint_as_float(high);
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(low) : "f"(rest));
}
