// The larger magnitude of a word's elements, one or two; the signs say nothing: PTX ISA, "max", ".xorsign.abs", in one instruction from sm_86 on.
// Config: none

// Element by element; NaN where both are.
template <class T> __device__ __forceinline__ u32 larger_magnitudes(u32 a, u32 b);
template <> __device__ __forceinline__ u32 larger_magnitudes<float>(u32 a, u32 b) {
    return __float_as_uint(fmaxf(fabsf(__uint_as_float(a)), fabsf(__uint_as_float(b))));
}
template <> __device__ __forceinline__ u32 larger_magnitudes<bf16>(u32 a, u32 b) {
    u32 pair;
    asm("max.xorsign.abs.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}
template <> __device__ __forceinline__ u32 larger_magnitudes<f16>(u32 a, u32 b) {
    u32 pair;
    asm("max.xorsign.abs.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}
