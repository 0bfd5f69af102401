// The larger magnitude of each of a word's elements: the twin of parts/magnitudes.cuh and sm90/magnitudes.cuh.
// Config: none
template <class T> __device__ __twin__ u32 larger_magnitudes(u32 a, u32 b) { return larger_elements<T>(a & 0x7fff7fffu, b & 0x7fff7fffu); }
template <> __device__ __twin__ u32 larger_magnitudes<float>(u32 a, u32 b) {
    return __float_as_uint(fmaxf(fabsf(__uint_as_float(a)), fabsf(__uint_as_float(b))));
}
