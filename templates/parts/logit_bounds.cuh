// What fp32 has no room for: temperatures and logits beyond these bounds count as the nearest within.
// Config: none
constexpr float largest_finite = __builtin_bit_cast(float, 0x7f7fffffu);

// z log2(e) / temperature: finite where z is.
__device__ __forceinline__ float finite_product(float z, float scale) {
    float product = z * scale, bounded = fminf(fmaxf(product, -largest_finite), largest_finite);
    return fabsf(z) < infinity ? bounded : product;
}

// A row's own, within the range of the call's: masks of the lowest numbers still are beside an infinite one, and scales are neither 0 nor infinite.
// KEEP IN STEP: temperatures (runtime/core/arguments.h, runtime/cpu/target_share.h).
__device__ __forceinline__ float row_temperature(float temperature) {
    constexpr float least = __builtin_bit_cast(float, 0x1f800000u), most = __builtin_bit_cast(float, 0x5f800000u); // 2^-64, 2^64
    return temperature < least ? least : temperature > most ? most : temperature;
}
