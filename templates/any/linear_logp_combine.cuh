// Merges the splits' statistics of each row into its log-probability: one warp a row.
//
// The splits' sums leave the target's term out. Let S 2^k be the merged sum of the other logits' terms 2^z2, and r its ratio to the target's term. Then logp
// = -log1p(r), and the other logits have r / (1 + r) of the probability: no difference of two large numbers, however likely the target is.
//
// The order of additions is fixed: lane l adds splits l, l + 32, ... in turn, then the lanes merge pairwise. It depends only on the number of splits.
// Config: threads, wants_argmax, wants_entropy, wants_logit_sum
struct MergedRow {
    float k, sum, moment; // of all logits but the target's
};

// A lane has eight loads in flight at a time: with few rows, the latency of one load after the other would be most of the kernel's time.
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
            for (int i = 0; i < batch; i++) row.moment += part[i].x == -infinity ? part_moment[i] : move_moment(part_moment[i], part[i].y, part[i].x - k);
        }
        if (row.k != -infinity) row.sum *= exp2_approximate(row.k - k);
        row.k = k;
#pragma unroll
        for (int i = 0; i < batch; i++) // without an offset, the sum y is 0 or NaN
            row.sum += part[i].x == -infinity ? part[i].y : part[i].y * exp2_approximate(part[i].x - k);
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::wants_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    return row;
}

// The logp of a row whose target is ignored or bad. Counts a bad target.
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

// The target's z2 as whole + rest, where whole is an integer. Without a target whole is -inf.
struct TargetLogit {
    float whole, rest;
};

// logit: the target's logit and the factor that makes it z2; k: the others' offset. Where either is large, z2 is rounded first, as the others' z2 were
// (row_offset.cuh).
__device__ __forceinline__ TargetLogit target_term(float2 logit, float k) {
    float z2 = finite_product(logit.x, logit.y), whole = rintf(z2);
    bool is_rounded = is_large(k) || is_large(whole);
    float rest = is_rounded ? z2 - whole : fmaf(logit.x, logit.y, -whole);
    return {whole, whole == -infinity ? 0 : rest};
}

// r = S 2^(k - whole - rest). The power is applied in two steps, each within the range of a float. Infinite without a target.
__device__ __forceinline__ float ratio_to(TargetLogit target, const MergedRow &others) {
    if (target.whole == -infinity) return infinity;
    float change = fminf(fmaxf(target.whole - others.k, -600.0f), 600.0f), half = rintf(0.5f * change);
    return others.sum * exp2f(-target.rest) * exp2f(-half) * exp2f(half - change);
}

// The totals from which a row's outputs are computed.
struct RowTotal {
    float ratio;       // r
    float whole, rest; // log2 of the sum of all terms: an integer, and the rest
    float from_k;      // the same log2, minus the others' k
    float logp;
};

__device__ __forceinline__ RowTotal total_of(TargetLogit target, const MergedRow &others) {
    constexpr float far = 16777216.0f; // 2^24: beyond it 1 + r is r
    RowTotal row;
    float ratio = ratio_to(target, others), log2_sum = log2f(others.sum), change = target.whole - others.k;
    bool leads = ratio <= 1;
    row.ratio = ratio;
    row.whole = leads ? target.whole : others.k;
    row.rest = fmaf(log1pf(leads ? ratio : 1 / ratio), log2_e, leads ? target.rest : log2_sum);
    row.from_k = leads ? change + row.rest : row.rest;
    row.logp = ratio < far ? 0 - log1pf(ratio) : (change + (target.rest - log2_sum)) * ln_2;
    return row;
}

// In nats. Where z2 is large, it may have been clamped to the finite range, so lse is computed from the target's logit itself.
__device__ __forceinline__ float lse_of(const RowTotal &row, float2 target_logit) {
    if (is_large(row.whole) && row.ratio < 16777216.0f) return fmaf(target_logit.x, target_logit.y * ln_2, -row.logp);
    return (row.whole + row.rest) * ln_2;
}

// Where the target's z2 was clamped to the finite range, far below the others, logp is computed from the target's logit itself.
__device__ __forceinline__ float logp_of(const RowTotal &row, float2 target_logit, float whole) {
    if (whole != -largest_finite || row.ratio < 16777216.0f) return row.logp;
    return finite_product(target_logit.x, target_logit.y * ln_2) - lse_of(row, target_logit);
}

// The target's -p log p, plus the others' share of the probability times the mean of their -log p.
__device__ __forceinline__ float entropy_of(const RowTotal &row, const MergedRow &others) {
    float of_target = row.ratio == infinity ? 0 : -row.logp / (1 + row.ratio);
    if (row.ratio == 0) return of_target; // no others
    float share = row.ratio < 16777216.0f ? row.ratio / (1 + row.ratio) : 1;
    float entropy = fmaf(share * (row.from_k - others.moment / others.sum), ln_2, of_target);
    return entropy < 0 ? 0 : entropy; // rounding only; NaN stays
}

// Leaves the row's log-sum-exp and logp for the backward (RowGradient, params/rows.h).
__device__ __forceinline__ void hand_over(const LinearLogpCombineParams &params, i64 place, const RowTotal &row) {
    if (params.gradient == nullptr) return;
    float offset = row.whole + rintf(row.rest);
    params.gradient[place].offset = offset;
    params.gradient[place].prob_coefficient = (row.whole - offset) + row.rest;
    params.gradient[place].target_coefficient = row.logp;
}

// Where a row has terms too large for its offset, sets the offset to the log2 of the sum of the row's terms, relative to which none is too large, and marks
// the row's block, which linear_logp_save_exp then computes again.
__device__ __forceinline__ void correct_offset(const LinearLogpCombineParams &params, i64 place, const MergedRow &others) {
    if (params.overflow == nullptr || !params.overflow[place]) return;
    params.offset[place] = rintf(others.k + log2f(others.sum));
    atomicExch(&params.block_overflow[0], 1);
    atomicExch(&params.block_overflow[1 + place / params.block_rows], 1);
}

template <class Config> __device__ __forceinline__ void linear_logp_combine(const LinearLogpCombineParams &params) {
    i64 row = (i64)blockIdx.x * (Config::threads / 32) + warp_index();
    if (row >= params.rows) return;
    i64 target = load_target(params.target, params.target_bytes, row); // an input of the call: no need to wait for the tile kernel
    bool is_known = target >= 0 && target < params.vocab, has_part = is_known && !is_ignored(params, target);
    wait_for_previous_kernel();
    allow_next_kernel();
    if (!has_part && params.blanks_others) {
        if (lane_index() == 0) blank_row<Config>(params, row, target);
        return;
    }
    i64 place = row;
    if (params.packed_index) {
        place = params.packed_index[row] - params.first_packed;
        if (place < 0 || place >= params.packed_rows) return;
    }
    float2 target_logit = is_known ? params.target_logit[place] : make_float2(-infinity, 1);
    const float *moment = Config::wants_entropy ? params.moment + place * params.splits : nullptr;
    MergedRow merged = merge_splits<Config>((const float2 *)params.partial + place * params.splits, moment, params.splits);

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
    correct_offset(params, place, merged);
    TargetLogit term = target_term(target_logit, merged.k);
    RowTotal total = total_of(term, merged);
    total.logp = logp_of(total, target_logit, term.whole);
    if constexpr (Config::wants_logit_sum) params.logit_sum[row] = logit_sum * ln_2;
    if (params.lse != nullptr) params.lse[row] = lse_of(total, target_logit);
    if constexpr (Config::wants_entropy)
        if (params.entropy != nullptr) params.entropy[row] = entropy_of(total, merged);
    params.logp[row] = has_part ? total.logp : logp_without_part(params, row, target);
    if (has_part) hand_over(params, place, total);
}
