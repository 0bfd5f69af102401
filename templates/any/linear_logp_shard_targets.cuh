// Computes each row's entry: the index of its target within a shard of the vocabulary, or why it has none there (params/linear_logp_shard.h). The kernels
// that follow read entries in place of targets. In an empty shard all valid rows count as ignored.
// Config: threads
template <class Config> __device__ __forceinline__ void linear_logp_shard_targets(const ShardTargetsParams &params) {
    i64 row = (i64)blockIdx.x * Config::threads + threadIdx.x;
    if (row >= params.rows) return;
    i64 target = load_target(params.target, params.target_bytes, row), entry = target - params.vocab_first;
    if (is_ignored(params, target)) entry = FLP_ENTRY_IGNORED;
    else if (target < 0 || target >= params.vocab_total) entry = FLP_ENTRY_BAD;
    else if (params.vocab == 0) entry = FLP_ENTRY_IGNORED;
    else if (entry < 0 || entry >= params.vocab) entry = FLP_ENTRY_ELSEWHERE;
    params.entry[row] = (i32)entry;
}
