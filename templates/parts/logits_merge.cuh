// Merges the sums of a row's segments, by one warp. Lane l takes segments l, l + 32, ... in turn, then the lanes merge pairwise. The order depends only on
// the number of segments.
//
// A warp executes this once for each row, mostly without the code in its instruction cache: few instructions matter more here than few passes over the
// segments.
// Config: element, has_entropy, wants_argmax
struct LogitsSlots {
    float2 *partial; // [segments]: origin (-inf: all logits are -inf), sum
    float2 *best;    // [segments]: largest logit, its column (the bits of an int)
    float *moment;   // [segments]
};

// under_way: how many loads a lane has in flight at once; more than 1 where the sums come from global memory.
template <class Config, int under_way = 1>
__device__ __forceinline__ LogitsSums merge_segments(const LogitsSlots &from, int segments, const LogitsScale &scale) {
    LogitsSums row = {-infinity, 0, 0, -infinity, 0x7fffffff};
#pragma unroll under_way
    for (int at = lane_index(); at < segments; at += 32) row.origin = fmaxf(row.origin, from.partial[at].x);
    row.origin = warp_largest(row.origin);
    float k = power_of(row.origin, scale);
    bool large = is_large(k);
#pragma unroll under_way
    for (int at = lane_index(); at < segments; at += 32) {
        float2 part = from.partial[at];
        float moment = Config::has_entropy ? from.moment[at] : 0;
        if (part.x != -infinity) { // else the sum is 0 or NaN, whatever the scale
            float change = large ? distance_from<true>(part.x, row.origin, scale) : power_of(part.x, scale) - k, power = exp2_approximate(change);
            part.y *= power;
            if constexpr (Config::has_entropy) moment = fmaf(part.y, fmaxf(change, lowest_power), moment * power);
        }
        row.sum += part.y;
        row.moment += moment;
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::has_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    if constexpr (Config::wants_argmax) {
        for (int i = lane_index(); i < segments; i += 32) row.take_best(from.best[i].x, __float_as_int(from.best[i].y));
        for (int m = 16; m > 0; m /= 2) {
            float other = shuffle_xor(row.best, m);
            int other_index = shuffle_xor(row.best_index, m);
            row.take_best(other, other_index);
        }
    }
    return row;
}

template <class Config> __device__ __forceinline__ void leave(const LogitsSums &sums, const LogitsSlots &to, int segment) {
    if (lane_index() != 0) return;
    to.partial[segment] = make_float2(sums.origin, sums.sum);
    if constexpr (Config::has_entropy) to.moment[segment] = sums.moment;
    if constexpr (Config::wants_argmax) to.best[segment] = make_float2(sums.best, __int_as_float(sums.best_index));
}

// A row's slots in scratch memory; `number` is the row's index in the call.
template <class Config> __device__ __forceinline__ LogitsSlots scratch_slots(const LogitsLogpParams &params, int number) {
    i64 at = (i64)number * params.segments;
    return {(float2 *)params.partial + at, Config::wants_argmax ? (float2 *)params.best + at : nullptr, Config::has_entropy ? params.moment + at : nullptr};
}

// Adds the target's term, which the segments' sums leave out, to the row's sums.
template <class Config>
__device__ __forceinline__ LogitsNormaliser find_normaliser(const LogitsRow<Config> &row, LogitsSums &sums, const LogitsScale &scale, float target_logit) {
    constexpr bool has_entropy = Config::has_entropy;
    if constexpr (Config::wants_argmax)
        if (row.target >= 0) sums.take_best(target_logit, row.target);
    return row.target >= 0 ? LogitsNormaliser::of<has_entropy>(soften<Config>(target_logit, scale), sums, scale)
                           : LogitsNormaliser::of_others<has_entropy>(sums);
}

// Called by one thread: writes the results that the caller has requested of the row.
template <class Config> __device__ __forceinline__ void write_row(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number, LogitsSums &sums,
                                                                  const LogitsNormaliser &normaliser, const LogitsScale &scale) {
    if (sums.best == -infinity) sums.best_index = 0; // nothing but -inf and NaN
    write_results(params, row, number, sums, normaliser, scale);
    if (params.normaliser != nullptr)
        *(float4 *)(params.normaliser + 4 * (i64)number) = make_float4(normaliser.origin, normaliser.log2_sum, normaliser.entropy, normaliser.logp);
}

// Called by one warp: merges a row's segments and, where `writes`, writes its results.
template <int under_way = 1, class Config> __device__ __forceinline__ LogitsNormaliser finish_row(const LogitsLogpParams &params, const LogitsRow<Config> &row,
                                                                                                  int number, const LogitsSlots &slots, float target_logit,
                                                                                                  bool writes) {
    LogitsSums sums = {0, 0, 0, 0, 0};
    LogitsScale scale = row.scale(params);
    if (row.is_read(params)) sums = merge_segments<Config, under_way>(slots, params.segments, scale);
    LogitsNormaliser normaliser = find_normaliser(row, sums, scale, target_logit);
    if (writes && lane_index() == 0) write_row(params, row, number, sums, normaliser, scale);
    return normaliser;
}

// The target's logit, not yet converted to fp32: the load stays in flight until the caller converts it.
template <class Config> __device__ __forceinline__ typename Config::element load_target_logit(const LogitsLogpParams &params, const LogitsRow<Config> &row) {
    return row.target >= 0 ? row.logits(params)[row.target] : typename Config::element{};
}
