// The larger magnitude of each of a word's one or two elements; the signs of the results mean nothing: PTX ISA, "max".
// Config: none

// For each pair of elements; NaN only where both are NaN.
template <class T> __device__ __forceinline__ u32 larger_magnitudes(u32 a, u32 b) { return larger_elements<T>(a & 0x7fff7fffu, b & 0x7fff7fffu); }
template <> __device__ __forceinline__ u32 larger_magnitudes<float>(u32 a, u32 b) {
    return __float_as_uint(fmaxf(fabsf(__uint_as_float(a)), fabsf(__uint_as_float(b))));
}
