// After a chunk of the vocabulary: counts how many blocks of its derivatives the gradient filter has kept, of how many, and clears their bits for the next
// chunk. Launched with one block.
// Config: threads
template <class Config> __device__ __forceinline__ void linear_logp_backward_filter(const BackwardFilterParams &params) {
    wait_for_previous_kernel();
    int found = 0;
    for (int i = threadIdx.x; i < params.words; i += Config::threads) {
        found += __popc(params.kept[i]);
        params.kept[i] = 0;
    }
    if (params.columns == 0) return;
    for (int m = 16; m > 0; m /= 2) found += shuffle_xor(found, m);
    if (lane_index() == 0) atomicAdd(&tally_now(params.statistics)[0], (u64)found);
    if (threadIdx.x != 0) return;
    u64 row_blocks = ceil_div(counted(params.row_count, params.rows), FLP_KEPT_BLOCK);
    u64 column_blocks = ceil_div(params.columns, FLP_KEPT_BLOCK);
    atomicAdd(&tally_now(params.statistics)[1], row_blocks * column_blocks);
}
