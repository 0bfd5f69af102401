// The clusters of a product's launch keep in step.
//
// Tiles at work together read the same rows of A and B, from memory once as long as all are at about the same step: what one has read stays in the L2 for
// some ten. But each cluster multiplies at a speed of its own. A hundred tiles later each row comes from memory three times, at a price in energy and so in
// clock. So ahead of every so many steps a cluster's producer counts itself, and waits until all others have.
//
// Nothing but speed depends on it. Where others do not come, as their multiprocessors are at another kernel, who has waited long enough says so, and nobody
// waits any more in this launch.
// Config: block_inner, cluster

template <class Config> struct ClustersInStep : AllSteps<Config> {
    static constexpr int steps_a_meeting = 128, patience = 400; // looks at the counter, some 0.3 ms
    static constexpr u32 nobody_waits = 1u << 31;
    u32 *meetings;   // the counter; NULL: they go their own ways
    int tile, tiles; // which of the launch's it is, and how many there are: behind a head start, with which all begin together

    template <class Walk> __device__ __forceinline__ ClustersInStep(int count, const MatrixProductParams &params, const Walk &walk, const Unit &unit)
        : AllSteps<Config>(count > 0 ? AllSteps<Config>{count} : AllSteps<Config>{1, ceil_div(params.inner, Config::block_inner) + 1}), // copied as zeros
          meetings(params.meetings), tile(walk.place(unit) - walk.head.tiles()), tiles(walk.row_blocks() * walk.column_tiles() - walk.head.tiles()) {}

    // By the producers of all blocks, which share what they load: a cluster's first one speaks for it.
    __device__ __forceinline__ bool operator()(int step) const {
        if (meetings && step % steps_a_meeting == 0 && tile >= 0 && blockIdx.x % Config::cluster == 0) meet(step / steps_a_meeting);
        return true;
    }

    // meeting: which of the tile's.
    __device__ __forceinline__ void meet(int meeting) const {
        int clusters = gridDim.x / Config::cluster, done = tile - tile % clusters; // tiles of the rounds before
        u32 wanted = done * ceil_div(this->count, steps_a_meeting) + (meeting + 1) * min(clusters, tiles - done);
        atomicAdd(meetings, 1u);
#pragma unroll 1
        for (int i = 0; i < patience; i++)
            if (*(volatile u32 *)meetings >= wanted) return;
        atomicOr(meetings, nobody_waits);
    }
};
