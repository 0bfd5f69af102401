// Maxima of a lane's elements, two at a time where a word holds two, and the minimum over a warp's lanes: PTX ISA, "max", "redux.sync".
// Config: none

// The larger of each pair of elements; NaN only where both are NaN.
template <class T> __device__ __forceinline__ u32 larger_elements(u32 a, u32 b);
template <> __device__ __forceinline__ u32 larger_elements<float>(u32 a, u32 b) { return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b))); }
template <> __device__ __forceinline__ u32 larger_elements<bf16>(u32 a, u32 b) {
    u32 pair;
    asm("max.bf16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}
template <> __device__ __forceinline__ u32 larger_elements<f16>(u32 a, u32 b) {
    u32 pair;
    asm("max.f16x2 %0, %1, %2;" : "=r"(pair) : "r"(a), "r"(b));
    return pair;
}

// The smallest of the lanes' numbers.
__device__ __forceinline__ int warp_smallest(int x) { return __reduce_min_sync(0xffffffffu, x); }
