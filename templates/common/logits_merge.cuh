// Merges the segments of a row, by one warp: lane l takes segments l, l + 32, ... in turn, then the lanes merge pairwise. The order depends on
// the number of segments only.
// Config: has_entropy, wants_argmax
struct LogitsSlots {
    float2 *partial; // [segments]: offset (an integer; -inf: nothing but -inf), sum
    float2 *best;    // [segments]: largest logit, its column (int bits)
    float *moment;   // [segments]
};

template <class Config> __device__ __forceinline__ LogitsSums merge_segments(const LogitsSlots &from, int segments) {
    constexpr int batch = 4; // loads under way at once
    LogitsSums row = {-infinity, 0, 0, -infinity, 0x7fffffff};
    if (segments == 1) { // what the general way would give
        row = {from.partial[0].x, from.partial[0].y, Config::has_entropy ? from.moment[0] : 0, 0, 0};
        if constexpr (Config::wants_argmax) row.best_index = from.best[0].x == -infinity ? 0 : __float_as_int(from.best[0].y);
        return row;
    }
    for (int first = 0; first < segments; first += 32 * batch) {
        float2 part[batch];
        float moment[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int at = first + 32 * i + lane_index();
            part[i] = at < segments ? from.partial[at] : make_float2(-infinity, 0);
            moment[i] = Config::has_entropy && at < segments ? from.moment[at] : 0;
        }
        float k = row.offset;
#pragma unroll
        for (int i = 0; i < batch; i++) k = fmaxf(k, part[i].x);
        for (int m = 16; m > 0; m /= 2) k = fmaxf(k, shuffle_xor(k, m));
        auto rescale = [&](float offset, float &sum, float &moment) {
            if (offset == -infinity) return; // the sum is 0 or NaN
            float power = exp2_approximate(offset - k);
            sum *= power;
            if constexpr (Config::has_entropy) moment = fmaf(sum, fmaxf(offset - k, lowest_power), moment * power);
        };
        rescale(row.offset, row.sum, row.moment);
        row.offset = k;
#pragma unroll
        for (int i = 0; i < batch; i++) {
            rescale(part[i].x, part[i].y, moment[i]);
            row.sum += part[i].y;
            row.moment += moment[i];
        }
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::has_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    if constexpr (Config::wants_argmax) {
        auto take = [&](float other, int other_index) {
            if (other > row.best || (other == row.best && other_index < row.best_index)) {
                row.best = other;
                row.best_index = other_index;
            }
        };
        for (int i = lane_index(); i < segments; i += 32) take(from.best[i].x, __float_as_int(from.best[i].y));
        for (int m = 16; m > 0; m /= 2) {
            float other = shuffle_xor(row.best, m);
            int other_index = shuffle_xor(row.best_index, m);
            take(other, other_index);
        }
        if (row.best == -infinity) row.best_index = 0; // nothing but -inf and NaN
    }
    return row;
}

template <class Config> __device__ __forceinline__ void leave(const LogitsSums &sums, const LogitsSlots &to, int segment) {
    if (lane_index() != 0) return;
    to.partial[segment] = make_float2(sums.offset, sums.sum);
    if constexpr (Config::has_entropy) to.moment[segment] = sums.moment;
    if constexpr (Config::wants_argmax) to.best[segment] = make_float2(sums.best, __int_as_float(sums.best_index));
}

// The scratch of a row; `number` is its place in the call.
template <class Config> __device__ __forceinline__ LogitsSlots scratch_slots(const LogitsLogpParams &params, int number) {
    i64 at = (i64)number * params.segments;
    return {(float2 *)params.partial + at, Config::wants_argmax ? (float2 *)params.best + at : nullptr,
            Config::has_entropy ? params.moment + at : nullptr};
}

// By one warp: merges a row's segments and writes what is wanted of it.
template <class Config>
__device__ __forceinline__ LogitsNormaliser finish_row(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number,
                                                       const LogitsSlots &slots, float target_logit, bool writes) {
    LogitsSums sums = {0, 0, 0, 0, 0};
    if (row.is_read(params)) sums = merge_segments<Config>(slots, params.segments);
    LogitsNormaliser normaliser = LogitsNormaliser::of(sums);
    if (!writes || lane_index() != 0) return normaliser;
    write_results(params, row, number, sums, normaliser, target_logit);
    if (params.normaliser != nullptr)
        *(float4 *)(params.normaliser + 4 * (i64)number) = make_float4(normaliser.offset, normaliser.log2_sum, normaliser.entropy, 0);
    return normaliser;
}

template <class Config> __device__ __forceinline__ float load_target_logit(const LogitsLogpParams &params, const LogitsRow<Config> &row) {
    return row.target >= 0 ? to_float(row.logits(params)[row.target]) : 0;
}
