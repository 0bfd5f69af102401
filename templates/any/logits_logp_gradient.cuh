// Gradients of logits whose lse is known, one read and one write: a warp takes a segment at a time.
// Config: as for a segment; threads
constexpr float log2_e_low = 1.9259630e-8f; // what fp32 leaves of log2(e)
constexpr float largest_float = __builtin_bit_cast(float, 0x7f7fffffu);

template <class Config> __device__ __forceinline__ LogitsNormaliser load_normaliser(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number,
                                                                                    const LogitsScale &scale) {
    if (params.normaliser != nullptr) {
        float4 kept = *(const float4 *)(params.normaliser + 4 * (i64)number);
        return {kept.x, kept.y, kept.z, kept.w};
    }
    // The logit whose z2 is the lse's, and what that lacks.
    float lse = params.given_lse[row.place], origin = lse * (log2_e / scale.scale), entropy = 0;
    if (fabsf(lse) < infinity) origin = fmaxf(fminf(origin, largest_float), -largest_float); // of a temperature without bound
    float k = power_of(origin, scale);
    float log2_sum = is_large(k) ? 0 : fmaf(lse, log2_e_low, fmaf(lse, log2_e, -k));
    if constexpr (Config::has_entropy) entropy = params.given_entropy[row.place];
    return {origin, log2_sum, entropy, params.given_logp != nullptr ? params.given_logp[row.place] : not_a_number};
}

// z: the target's logit, softened. Above the origin it is by the rounding of a given lse, which may be many powers where these are large.
__device__ __forceinline__ float logp_from(const LogitsNormaliser &normaliser, float z, const LogitsScale &scale) {
    float log2_p = distance(z, normaliser.origin, scale) - normaliser.log2_sum;
    return log2_p > 0 && is_large(power_of(normaliser.origin, scale)) ? 0 : log2_p * ln_2;
}

template <class Config> __device__ __forceinline__ void logits_logp_gradient(const LogitsLogpParams &params) {
    using Segment = Segment<Config>;
    constexpr int warps = Config::threads / 32;
    // Units are the segments of all rows in turn: `step` of them are so many rows, and so many segments of one.
    u32 first = blockIdx.x * warps + warp_index(), step = gridDim.x * warps, segments = params.segments, rows = (u32)params.rows;
    wait_for_previous_kernel();
    for (u32 number = first / segments, s = first % segments; number < rows; number += step / segments, s += step % segments) {
        if (s >= segments) {
            s -= segments;
            if (++number >= rows) break;
        }
        LogitsRow<Config> row(params, number);
        if (s == 0 && lane_index() == 0 && params.normaliser == nullptr) count_bad_target(params, row, (int)number); // else the forward has
        if (row.place < 0) continue;
        Segment segment;
        if (row.target >= 0) segment.load(row.logits(params), s, params.vocab);
        int first_column = s * Segment::columns;
        bool has_target = owns_target(row, first_column);
        float target_logit = has_target ? to_float(load_target_logit(params, row)) : 0;
        LogitsScale scale = row.scale(params);
        LogitsNormaliser normaliser = {0, 0, 0, 0};
        if (row.target >= 0) normaliser = load_normaliser(params, row, number, scale);
        if (has_target && params.normaliser == nullptr && params.given_logp == nullptr) // z - lse is all there is
            normaliser.logp = logp_from(normaliser, soften<Config>(target_logit, scale), scale);
        LogitsFactors factors = find_factors(params, row, scale, load_upstream(params, row), normaliser, has_target, target_logit);
        if (row.target >= 0) segment.put_together();
        write_gradients(params, row, segment, first_column, scale, factors);
    }
}
