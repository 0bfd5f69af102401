// Programmatic dependent launch of tile kernels: a kernel begins beside the end of the previous one, on the multiprocessors that the previous one's last wave
// of tiles leaves idle.
//
// As long as any warp of a block waits for the previous kernel (griddepcontrol.wait), nothing that the block loads arrives (measured on Hopper). So only
// those warps wait that must, and only after the block has multiplied as many tiles as it has accumulators for.
// Config: consumer_groups, turns

// The head start of the clusters that begin early: the launch's first tiles are theirs alone, to each as many as it has time for. most: the tiles that a
// block can multiply before it must wait.
template <class Params, int most> struct HeadStart {
    const Params &params;
    __device__ __forceinline__ int workers() const { return params.head_workers; }
    __device__ __forceinline__ int tiles() const { return params.head_workers * min(params.head_tiles, most); }
};
template <class Config, class Params> __device__ __forceinline__ bool begins_early(const Params &params) {
    return worker_index<Config>(0) < params.head_workers;
}
constexpr int no_limit = 0x7fffffff; // for kernels that wait only at their end

// Called after all of a block's work: only the consumers wait, whose warps end last.
template <class Config> __device__ __forceinline__ void consumers_wait_for_previous_kernel() {
    if (warp_index() / 4 < Config::consumer_groups) wait_for_previous_kernel();
}

// Called by a consumer between a tile's products and its store, which may overwrite what the previous kernel reads. In the ping-pong schedule, in a block
// that began early, warpgroup 0 first lets warpgroup 1 multiply its first tile, too, whose operands would not arrive while any warp waits.
template <class Config, class Params> __device__ __forceinline__ void wait_before_store(const Stages<Config> &stages, const Params &params) {
    if constexpr (Config::turns > 1) {
        const WarpTurn &own = stages.turns.of_warp[thread_index_reread() / 32];
        if (begins_early<Config>(params) && own.turn == 1 && own.others > 1)
            mbarrier_wait(shared_address(&stages.turns.barrier[0]), 0); // group 1 arrives there, as group 0 has another tile
    }
    wait_for_previous_kernel();
}
