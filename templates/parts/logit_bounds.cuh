// Clamps to what fp32 can represent: a temperature or a scaled logit beyond these bounds counts as the nearest number within them.
// Config: none
constexpr float largest_finite = __builtin_bit_cast(float, 0x7f7fffffu);

// z scale, that is z log2(e) / temperature: finite where z is finite.
__device__ __forceinline__ float finite_product(float z, float scale) {
    float product = z * scale, bounded = fminf(fmaxf(product, -largest_finite), largest_finite);
    return fabsf(z) < infinity ? bounded : product;
}

// A row's own temperature, clamped to the range that a call's temperature may have.
__device__ __forceinline__ float row_temperature(float temperature) {
    constexpr float least = FLP_LEAST_TEMPERATURE, most = FLP_MOST_TEMPERATURE;
    return temperature < least ? least : temperature > most ? most : temperature;
}
