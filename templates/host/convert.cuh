// Rounds fp32 to the 16-bit types, to nearest even: the twin of parts/convert.cuh.
// Config: none
template <class T> __device__ __twin__ u32 round_one(float value);
template <> __device__ __twin__ u32 round_one<bf16>(float value) {
    u32 bits = __float_as_uint(value);
    return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
// Below 2^-14, where f16 numbers are multiples of 2^-24, adding 0.5 rounds: 2^-24 is the last bit of an fp32 number from 0.5 to 1.
template <> __device__ __twin__ u32 round_one<f16>(float value) {
    u32 sign = __float_as_uint(value) >> 16 & 0x8000;
    float size = fabsf(value);
    if (size != size) return 0x7fff;
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) return sign | (__float_as_uint(size + 0.5f) - __float_as_uint(0.5f));
    u32 bits = __float_as_uint(size);
    return sign | ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10);
}
template <class T> __device__ __twin__ u32 round_pair(float low, float high) { return round_one<T>(low) | round_one<T>(high) << 16; }

__device__ __twin__ void store_rounded(float value, float *to) { *to = value; }
__device__ __twin__ void store_rounded(float value, bf16 *to) { to->bits = (u16)round_one<bf16>(value); }
__device__ __twin__ void store_rounded(float value, f16 *to) { to->bits = (u16)round_one<f16>(value); }
