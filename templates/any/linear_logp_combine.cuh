// Merges the splits' statistics of each row into its log-probability: one warp a row.
//
// The order is fixed: lane l adds splits l, l + 32, ... in turn, then the lanes merge pairwise. It depends on the number of splits only.
// Config: threads, wants_argmax
template <class Config> __device__ __forceinline__ void linear_logp_combine(const LinearLogpCombineParams &params) {
    i64 row = (i64)blockIdx.x * (Config::threads / 32) + warp_index();
    if (row >= params.rows) return;
    wait_for_previous_kernel();
    auto partial = (const float2 *)params.partial + row * params.splits;

    float k = -infinity;
    for (int i = lane_index(); i < params.splits; i += 32) k = fmaxf(k, partial[i].x);
    for (int m = 16; m > 0; m /= 2) k = fmaxf(k, shuffle_xor(k, m));
    float sum = 0;
    for (int i = lane_index(); i < params.splits; i += 32) {
        float2 part = partial[i];
        sum += part.x == -infinity ? part.y : part.y * exp2_approximate(part.x - k); // y: 0, or NaN, where there is no offset
    }
    for (int m = 16; m > 0; m /= 2) sum += shuffle_xor(sum, m);
    float log2_sum = log2f(sum);

    if constexpr (Config::wants_argmax) {
        auto best = (const float2 *)params.best + row * params.splits;
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

    if (lane_index() != 0) return;
    if (params.lse != nullptr) params.lse[row] = (k + log2_sum) * ln_2;
    i64 target = load_target(params.target, params.target_bytes, row);
    float logp;
    if (target == params.ignore_index) {
        logp = 0;
    } else if (target < 0 || target >= params.vocab) {
        logp = not_a_number;
        atomicAdd(&params.target_errors[0], 1ull);
        atomicMin(&params.target_errors[1], (u64)row);
    } else {
        // The integer goes first: a likely target's logit is close to it, and the difference keeps its small bits.
        logp = ((params.target_logit[row] - k) - log2_sum) * ln_2;
        if (logp > 0) logp = 0; // rounding only; NaN stays
    }
    params.logp[row] = logp;
}
