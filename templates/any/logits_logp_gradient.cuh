// Gradients of rows of logits whose lse is known, in one read and one write: a warp takes one segment at a time.
// Config: those of logits_segment; threads
constexpr float log2_e_low = 1.9259630e-8f; // log2(e) minus its fp32 value
constexpr float largest_float = __builtin_bit_cast(float, 0x7f7fffffu);

template <class Config> __device__ __forceinline__ LogitsNormaliser load_normaliser(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number,
                                                                                    const LogitsScale &scale) {
    if (params.normaliser != nullptr) {
        float4 kept = *(const float4 *)(params.normaliser + 4 * (i64)number);
        return {kept.x, kept.y, kept.z, kept.w};
    }
    // The origin is the logit whose z2 equals lse log2(e); log2_sum is the difference that rounding leaves.
    float lse = params.given_lse[row.place], origin = lse * (log2_e / scale.scale), entropy = 0;
    if (fabsf(lse) < infinity) origin = fmaxf(fminf(origin, largest_float), -largest_float); // the temperature may be huge
    float k = power_of(origin, scale);
    float log2_sum = is_large(k) ? 0 : fmaf(lse, log2_e_low, fmaf(lse, log2_e, -k));
    if constexpr (Config::has_entropy) entropy = params.given_entropy[row.place];
    return {origin, log2_sum, entropy, params.given_logp != nullptr ? params.given_logp[row.place] : not_a_number};
}

// The target's logp from its logit z (after the softcap) and the lse. Only the rounding of an lse from the caller can make it positive; where powers are
// large, that rounding may be many powers, and the result is 0.
__device__ __forceinline__ float logp_from(const LogitsNormaliser &normaliser, float z, const LogitsScale &scale) {
    float log2_p = distance(z, normaliser.origin, scale) - normaliser.log2_sum;
    return log2_p > 0 && is_large(power_of(normaliser.origin, scale)) ? 0 : log2_p * ln_2;
}

template <class Config> __device__ __forceinline__ void logits_logp_gradient(const LogitsLogpParams &params) {
    using Segment = Segment<Config>;
    constexpr int warps = Config::threads / 32;
    // Warps take the segments of all rows round robin. The distance `step` to a warp's next segment is step / segments rows and step % segments segments.
    u32 first = blockIdx.x * warps + warp_index(), step = gridDim.x * warps, segments = params.segments, rows = (u32)params.rows;
    wait_for_previous_kernel();
    for (u32 number = first / segments, s = first % segments; number < rows; number += step / segments, s += step % segments) {
        if (s >= segments) {
            s -= segments;
            if (++number >= rows) break;
        }
        LogitsRow<Config> row(params, number);
        if (s == 0 && lane_index() == 0 && params.normaliser == nullptr) count_bad_target(params, row, (int)number); // else the forward has counted it
        if (row.place < 0) continue;
        Segment segment;
        if (row.target >= 0) segment.load(row.logits(params), s, params.vocab);
        int first_column = s * Segment::columns;
        bool has_target = owns_target(row, first_column);
        float target_logit = has_target ? to_float(load_target_logit(params, row)) : 0;
        LogitsScale scale = row.scale(params);
        LogitsNormaliser normaliser = {0, 0, 0, 0};
        if (row.target >= 0) normaliser = load_normaliser(params, row, number, scale);
        if (has_target && params.normaliser == nullptr && params.given_logp == nullptr) // logp can only be computed as z - lse
            normaliser.logp = logp_from(normaliser, soften<Config>(target_logit, scale), scale);
        LogitsFactors factors = find_factors(params, row, scale, load_upstream(params, row), normaliser, has_target, target_logit);
        if (row.target >= 0) segment.put_together();
        write_gradients(params, row, segment, first_column, scale, factors);
    }
}
