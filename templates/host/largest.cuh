// Maxima of a lane's elements, and the minimum over a warp's lanes: the twin of parts/largest.cuh.
// Config: none
template <class T> __device__ __twin__ u32 larger_element(u16 a, u16 b) {
    float x = to_float(T{a}), y = to_float(T{b});
    return x < y || x != x ? b : a;
}
template <class T> __device__ __twin__ u32 larger_elements(u32 a, u32 b) {
    return larger_element<T>((u16)a, (u16)b) | larger_element<T>((u16)(a >> 16), (u16)(b >> 16)) << 16;
}
template <> __device__ __twin__ u32 larger_elements<float>(u32 a, u32 b) { return __float_as_uint(fmaxf(__uint_as_float(a), __uint_as_float(b))); }

__device__ __twin__ int warp_smallest(int x) {
    for (int m = 16; m > 0; m /= 2) x = min(x, shuffle_xor(x, m));
    return x;
}
