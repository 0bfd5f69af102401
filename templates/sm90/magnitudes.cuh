// The larger magnitude of each of a word's one or two elements; the signs of the results mean nothing: PTX ISA, "max", ".xorsign.abs", one instruction, from
// sm_86 on.
// Config: none

// For each pair of elements; NaN only where both are NaN.
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
