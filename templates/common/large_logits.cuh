// Logits far from 0, and temperatures far from 1: what all that multiplies logits by log2(e) / temperature has in common.
//
// From an offset of 2^23 on, the fused multiply-add z scale - k would keep bits of the product above the point that k, rounded, does not have: such
// a row's z2 are rounded first, like its offset was.
// Config: none
constexpr float large_offset = 8388608.0f; // 2^23: from here on a float has no bits behind the point
constexpr float largest_finite = __builtin_bit_cast(float, 0x7f7fffffu);

// A row's offset k; infinite ones are none.
__device__ __forceinline__ bool is_large(float k) { return fabsf(k) >= large_offset && fabsf(k) < infinity; }

// Finite where z is.
__device__ __forceinline__ float finite_product(float z, float scale) {
    float product = z * scale, bounded = fminf(fmaxf(product, -largest_finite), largest_finite);
    return fabsf(z) < infinity ? bounded : product;
}

// A row's own: outside the range of the call's it counts as the nearest of them, so that scales are neither 0 nor infinite.
// KEEP IN STEP: temperatures (runtime/ops/arguments.h).
__device__ __forceinline__ float row_temperature(float temperature) {
    constexpr float least = __builtin_bit_cast(float, 0x01000000u), most = __builtin_bit_cast(float, 0x7e000000u); // 2^-125, 2^125
    return temperature < least ? least : temperature > most ? most : temperature;
}
