// Merges the statistics that the shards of a vocabulary have left of each row, in the shards' order and with the combine's arithmetic: one thread a row.
// Config: threads
struct ShardsRow {
    MergedRow others;
    float2 target; // the target's z, and the factor that makes it z2
    bool has_target;
    float largest;
    int index;
};

__device__ __forceinline__ void add_part(ShardsRow &row, const LinearPartial &part) {
    bool is_empty = part.offset == -infinity; // its sum is 0 or NaN
    float change = part.offset - row.others.k;
    row.others.sum += is_empty ? part.sum : part.sum * exp2_approximate(change);
    row.others.moment += is_empty ? part.moment : move_moment(part.moment, part.sum, change);
    if (part.scale != 0) {
        row.target = make_float2(part.target, part.scale);
        row.has_target = true;
    }
    if (part.largest > row.largest || (part.largest == row.largest && part.largest_index < row.index)) {
        row.largest = part.largest;
        row.index = part.largest_index;
    }
}

__device__ __forceinline__ ShardsRow merge_shards(const LinearMergeParams &params, i64 row) {
    ShardsRow merged = {{-infinity, 0, 0}, make_float2(-infinity, 1), false, -infinity, FLP_NO_INDEX};
    for (int rank = 0; rank < params.ranks; rank++) merged.others.k = fmaxf(merged.others.k, params.partials[rank * params.rows + row].offset);
    for (int rank = 0; rank < params.ranks; rank++) add_part(merged, params.partials[rank * params.rows + row]);
    return merged;
}

template <class Config> __device__ __forceinline__ void linear_logp_merge(const LinearMergeParams &params) {
    i64 row = (i64)blockIdx.x * Config::threads + threadIdx.x;
    if (row >= params.rows) return;
    wait_for_previous_kernel();
    allow_next_kernel();
    i64 target = load_target(params.target, params.target_bytes, row);
    bool ignored = is_ignored(params, target), known = target >= 0 && target < params.vocab_total;
    ShardsRow merged = merge_shards(params, row);
    TargetLogit term = target_term(merged.target, merged.others.k);
    RowTotal total = total_of(term, merged.others);
    total.logp = logp_of(total, merged.target, term.whole);
    if (!ignored && !known) tally_bad_target(params.target_errors, row);
    if (params.logp != nullptr) params.logp[row] = ignored ? 0 : known && merged.has_target ? total.logp : not_a_number;
    if (params.lse != nullptr) params.lse[row] = lse_of(total, merged.target);
    if (params.entropy != nullptr) params.entropy[row] = entropy_of(total, merged.others);
    if (params.argmax != nullptr) params.argmax[row] = merged.index;
}
