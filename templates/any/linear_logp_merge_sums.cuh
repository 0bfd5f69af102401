// What a loss needs of a row's shards in addition to linear_logp_merge: the sum of its logits, added in the shards' order. Rows that are ignored or whose
// target is bad get an lse, an entropy and a sum of 0, whatever their hidden holds. One thread a row.
// Config: threads
template <class Config> __device__ __forceinline__ void linear_logp_merge_sums(const LinearMergeSumsParams &params) {
    i64 row = (i64)blockIdx.x * Config::threads + threadIdx.x;
    if (row >= params.rows) return;
    wait_for_previous_kernel();
    allow_next_kernel();
    i64 target = load_target(params.target, params.target_bytes, row);
    bool counts = !is_ignored(params, target) && target >= 0 && target < params.vocab_total;
    float sum = 0;
    if (counts && params.logit_sum != nullptr)
        for (int rank = 0; rank < params.ranks; rank++) sum += params.partials[rank * params.rows + row].logit_sum;
    if (params.logit_sum != nullptr) params.logit_sum[row] = sum;
    if (counts) return;
    if (params.lse != nullptr) params.lse[row] = 0;
    if (params.entropy != nullptr) params.entropy[row] = 0;
}
