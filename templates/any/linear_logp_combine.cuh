// Merges the splits' statistics of each row into its log-probability: one warp a row.
//
// The order is fixed: lane l adds splits l, l + 32, ... in turn, then the lanes merge pairwise. It depends on the number of splits only.
// Config: threads, wants_argmax, wants_entropy, wants_logit_sum
struct MergedRow {
    float k, sum, moment;
};

// Loads come eight at a time: with few rows, the latency of one after the other would be most of the kernel.
template <class Config> __device__ __forceinline__ MergedRow merge_splits(const float2 *partial, const float *moment, int splits) {
    constexpr int batch = 8;
    MergedRow row = {-infinity, 0, 0};
    for (int first = 0; first < splits; first += 32 * batch) {
        float2 part[batch];
        float part_moment[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int at = first + 32 * i + lane_index();
            part[i] = at < splits ? partial[at] : make_float2(-infinity, 0);
            if constexpr (Config::wants_entropy) part_moment[i] = at < splits ? moment[at] : 0;
        }
        float k = row.k;
#pragma unroll
        for (int i = 0; i < batch; i++) k = fmaxf(k, part[i].x);
        for (int m = 16; m > 0; m /= 2) k = fmaxf(k, shuffle_xor(k, m));
        if constexpr (Config::wants_entropy) {
            if (row.k != -infinity) row.moment = move_moment(row.moment, row.sum, row.k - k);
#pragma unroll
            for (int i = 0; i < batch; i++)
                row.moment += part[i].x == -infinity ? part_moment[i] : move_moment(part_moment[i], part[i].y, part[i].x - k);
        }
        if (row.k != -infinity) row.sum *= exp2_approximate(row.k - k);
        row.k = k;
#pragma unroll
        for (int i = 0; i < batch; i++) // y without an offset is 0 or NaN
            row.sum += part[i].x == -infinity ? part[i].y : part[i].y * exp2_approximate(part[i].x - k);
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::wants_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    return row;
}

// Of a row whose target is ignored or bad.
__device__ __forceinline__ float logp_without_part(const LinearLogpCombineParams &params, i64 row, i64 target) {
    if (is_ignored(params, target)) return 0;
    tally_bad_target(params.target_errors, row);
    return not_a_number;
}

template <class Config> __device__ __forceinline__ void blank_row(const LinearLogpCombineParams &params, i64 row, i64 target) {
    params.logp[row] = logp_without_part(params, row, target);
    if (params.lse != nullptr) params.lse[row] = 0;
    if constexpr (Config::wants_entropy)
        if (params.entropy != nullptr) params.entropy[row] = 0;
    if constexpr (Config::wants_logit_sum) params.logit_sum[row] = 0;
}

// linear_logp_stash is run again where a row has terms too large for its offset. From its log-sum-exp, none is.
__device__ __forceinline__ void correct_offset(const LinearLogpCombineParams &params, i64 place, float lse2) {
    if (params.overflow == nullptr || !params.overflow[place]) return;
    params.offset[place] = rintf(lse2);
    atomicExch(&params.block_overflow[0], 1);
    atomicExch(&params.block_overflow[1 + place / params.block_rows], 1);
}

template <class Config> __device__ __forceinline__ void linear_logp_combine(const LinearLogpCombineParams &params) {
    i64 row = (i64)blockIdx.x * (Config::threads / 32) + warp_index();
    if (row >= params.rows) return;
    i64 target = load_target(params.target, params.target_bytes, row); // an input: it was there before the tile kernel
    bool is_known = target >= 0 && target < params.vocab, has_part = is_known && !is_ignored(params, target);
    wait_for_previous_kernel();
    allow_next_kernel();
    if (!has_part && params.blanks_others) {
        if (lane_index() == 0) blank_row<Config>(params, row, target);
        return;
    }
    i64 place = row;
    if (params.place) {
        place = params.place[row] - params.first_place;
        if (place < 0 || place >= params.places) return;
    }
    float target_logit = is_known ? params.target_logit[place] : 0;
    const float *moment = Config::wants_entropy ? params.moment + place * params.splits : nullptr;
    MergedRow merged = merge_splits<Config>((const float2 *)params.partial + place * params.splits, moment, params.splits);
    float log2_sum = log2f(merged.sum);

    if constexpr (Config::wants_argmax) {
        auto best = (const float2 *)params.best + place * params.splits;
        float largest = -infinity;
        int index = 0x7fffffff;
        auto merge = [&](float other, int other_index) {
            if (other > largest || (other == largest && other_index < index)) {
                largest = other;
                index = other_index;
            }
        };
        for (int i = lane_index(); i < params.splits; i += 32) merge(best[i].x, __float_as_int(best[i].y));
        for (int m = 16; m > 0; m /= 2) {
            float other = shuffle_xor(largest, m);
            int other_index = shuffle_xor(index, m);
            merge(other, other_index);
        }
        if (lane_index() == 0 && params.argmax != nullptr) params.argmax[row] = index;
    }

    float logit_sum = 0;
    if constexpr (Config::wants_logit_sum) {
        for (int i = lane_index(); i < params.splits; i += 32) logit_sum += params.logit_sums[place * params.splits + i];
        for (int m = 16; m > 0; m /= 2) logit_sum += shuffle_xor(logit_sum, m);
    }

    if (lane_index() != 0) return;
    correct_offset(params, place, merged.k + log2_sum);
    if constexpr (Config::wants_logit_sum) params.logit_sum[row] = logit_sum * ln_2;
    if (params.lse != nullptr) params.lse[row] = (merged.k + log2_sum) * ln_2;
    if constexpr (Config::wants_entropy) {
        float entropy = (log2_sum - merged.moment / merged.sum) * ln_2;
        if (entropy < 0) entropy = 0; // rounding only; NaN stays
        if (params.entropy != nullptr) params.entropy[row] = entropy;
    }
    float logp;
    if (has_part) {
        // The integer goes first: a likely target's logit is close to it, and the difference keeps its small bits.
        logp = ((target_logit - merged.k) - log2_sum) * ln_2;
        if (logp > 0) logp = 0; // rounding only; NaN stays
    } else {
        logp = logp_without_part(params, row, target);
    }
    params.logp[row] = logp;
}
