// A kernel that begins beside the end of the one before, on the multiprocessors that its last round of tiles leaves idle.
//
// As long as any warp of a block waits for the kernel before, nothing that the block loads arrives. So nobody waits who has nothing to wait for, and who has
// lets the block multiply first what it has accumulators for.
// Config: consumer_groups, turns, cluster

// So many clusters begin early: the first tiles are theirs alone, as many for each as they have time for. most: what a block can multiply before it waits.
template <class Params, int most> struct HeadStart {
    const Params &params;
    __device__ __forceinline__ int workers() const { return params.head_workers; }
    __device__ __forceinline__ int tiles() const { return params.head_workers * min(params.head_tiles, most); }
};
template <class Config, class Params> __device__ __forceinline__ bool begins_early(const Params &params) {
    return worker_index<Config>(0) < params.head_workers;
}
constexpr int no_limit = 0x7fffffff; // nothing is waited for before the kernel's end

// Behind all of a block's work, by those of its warps that end last.
template <class Config> __device__ __forceinline__ void consumers_wait_for_previous_kernel() {
    if (warp_index() / 4 < Config::consumer_groups) wait_for_previous_kernel();
}

// Behind a tile's products, by a consumer: before what the kernel before reads may be written. Where warpgroups take turns and the block began early, the
// other one has then multiplied its first tile, too.
template <class Config, class Params> __device__ __forceinline__ void wait_before_store(const Stages<Config> &stages, const Params &params) {
    if constexpr (Config::turns > 1) {
        const WarpTurn &own = stages.turns.of_warp[thread_index_reread() / 32];
        if (begins_early<Config>(params) && own.turn == 1 && own.others > 1)
            mbarrier_wait(shared_address(&stages.turns.barrier[0]), 0); // group 0, which has one more
    }
    wait_for_previous_kernel();
}
