// Merges the splits' statistics of each row of a shard into the partial that the shard leaves for the merge of all shards: one warp a row, in the combine's
// order.
// Config: threads, wants_argmax, wants_entropy, wants_logit_sum
struct BestLogit {
    float largest;
    int index;
};

// The larger logit; of two equal ones that with the smaller index.
__device__ __forceinline__ BestLogit better(BestLogit one, BestLogit other) {
    return other.largest > one.largest || (other.largest == one.largest && other.index < one.index) ? other : one;
}

// The row's largest logit, with its id in the whole vocabulary in place of the shard's column.
__device__ __forceinline__ BestLogit merge_best(const float2 *best, int splits, int vocab_first) {
    BestLogit row = {-infinity, FLP_NO_INDEX};
    for (int i = lane_index(); i < splits; i += 32) row = better(row, BestLogit{best[i].x, vocab_first + __float_as_int(best[i].y)});
    for (int m = 16; m > 0; m /= 2) row = better(row, BestLogit{shuffle_xor(row.largest, m), shuffle_xor(row.index, m)});
    return row;
}

__device__ __forceinline__ float sum_logits(const float *sums, int splits) {
    float sum = 0;
    for (int i = lane_index(); i < splits; i += 32) sum += sums[i];
    for (int m = 16; m > 0; m /= 2) sum += shuffle_xor(sum, m);
    return sum * ln_2;
}

template <class Config> __device__ __forceinline__ void linear_logp_partials(const LinearPartialsParams &params) {
    i64 row = (i64)blockIdx.x * (Config::threads / 32) + warp_index(), at = row * params.splits;
    if (row >= params.rows) return;
    wait_for_previous_kernel();
    allow_next_kernel();
    int entry = params.entry[row];
    float2 target = entry >= 0 && entry < params.vocab ? params.target_logit[row] : make_float2(-infinity, 0);
    MergedRow merged = merge_splits<Config>((const float2 *)params.partial + at, Config::wants_entropy ? params.moment + at : nullptr, params.splits);
    LinearPartial part = {merged.k, merged.sum, target.x, target.y, 0, -infinity, FLP_NO_INDEX, 0};
    if constexpr (Config::wants_entropy) part.moment = merged.moment;
    if constexpr (Config::wants_argmax) {
        BestLogit best = merge_best((const float2 *)params.best + at, params.splits, params.vocab_first);
        part.largest = best.largest;
        part.largest_index = best.index;
    }
    if constexpr (Config::wants_logit_sum) part.logit_sum = sum_logits(params.logit_sums + at, params.splits);
    if (lane_index() == 0) params.out[row] = part;
}
