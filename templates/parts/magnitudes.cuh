// The larger magnitude of a word's elements, one or two; the signs say nothing: PTX ISA, "max".
// Config: none

// Element by element; NaN where both are.
template <class T> __device__ __forceinline__ u32 larger_magnitudes(u32 a, u32 b) { return larger_elements<T>(a & 0x7fff7fffu, b & 0x7fff7fffu); }
template <> __device__ __forceinline__ u32 larger_magnitudes<float>(u32 a, u32 b) {
    return __float_as_uint(fmaxf(fabsf(__uint_as_float(a)), fabsf(__uint_as_float(b))));
}
