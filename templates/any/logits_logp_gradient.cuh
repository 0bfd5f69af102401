// Gradients of logits whose lse is known, one read and one write: a warp takes a segment at a time.
// Config: as for a segment; threads
template <class Config>
__device__ __forceinline__ LogitsNormaliser load_normaliser(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number) {
    if (params.normaliser != nullptr) {
        float4 kept = *(const float4 *)(params.normaliser + 4 * (i64)number);
        return {kept.x, kept.y, kept.z};
    }
    float lse2 = params.given_lse[row.place] * 1.4426950408889634f, offset = rintf(lse2), entropy = 0;
    if constexpr (Config::has_entropy) entropy = params.given_entropy[row.place];
    return {offset, lse2 - offset, entropy};
}

template <class Config> __device__ __forceinline__ void logits_logp_gradient(const LogitsLogpParams &params) {
    using Segment = Segment<Config>;
    constexpr int warps = Config::threads / 32;
    wait_for_previous_kernel();
    for (i64 unit = (i64)blockIdx.x * warps + warp_index(); unit < params.rows * params.segments; unit += (i64)gridDim.x * warps) {
        int number = (int)(unit / params.segments), s = (int)(unit % params.segments);
        LogitsRow<Config> row(params, number);
        if (s == 0 && lane_index() == 0 && params.normaliser == nullptr) count_bad_target(params, row, number); // else the forward has
        if (row.place < 0) continue;
        Segment segment;
        if (row.target >= 0) segment.load(row.logits(params), s, params.vocab);
        float target_logit = owns_target(row, s, params.segments) ? load_target_logit(params, row) : 0;
        LogitsNormaliser normaliser = {0, 0, 0};
        if (row.target >= 0) normaliser = load_normaliser(params, row, number);
        write_gradients(params, row, segment, s, row.scale(params), find_factors(params, row, load_upstream(params, row), normaliser), target_logit);
    }
}
