// What fp32 has no room for: temperatures and logits beyond these bounds count as the nearest within.
// Config: none
constexpr float largest_finite = __builtin_bit_cast(float, 0x7f7fffffu);

// z log2(e) / temperature: finite where z is.
__device__ __forceinline__ float finite_product(float z, float scale) {
    float product = z * scale, bounded = fminf(fmaxf(product, -largest_finite), largest_finite);
    return fabsf(z) < infinity ? bounded : product;
}

// A row's own, within the range of the call's.
__device__ __forceinline__ float row_temperature(float temperature) {
    constexpr float least = FLP_LEAST_TEMPERATURE, most = FLP_MOST_TEMPERATURE;
    return temperature < least ? least : temperature > most ? most : temperature;
}
