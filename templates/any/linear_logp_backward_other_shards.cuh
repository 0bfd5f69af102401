// Makes targets that lie in other shards of the vocabulary contribute nothing to this shard's products: each becomes entry 0 with a derivative of 0. Runs
// after the targets have been sorted, in which they come last.
// Config: threads
template <class Config> __device__ __forceinline__ void linear_logp_backward_other_shards(const OtherShardsParams &params) {
    int count = params.row_count ? min(*params.row_count, params.rows) : params.rows;
    for (int at = blockIdx.x * Config::threads + threadIdx.x; at < count; at += gridDim.x * Config::threads)
        if (params.targets[at].target == FLP_ENTRY_ELSEWHERE) params.targets[at] = RowTarget{0, 0};
}
