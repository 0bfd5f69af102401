// Synchronises the clusters of a product's launch with one another during the mainloop, through a counter in global memory.
//
// Clusters that work on neighbouring tiles read the same rows of A and B. These are read from memory only once as long as all clusters are at about the same
// step along the inner size: what one has read stays in the L2 for some ten steps. But each cluster multiplies at a speed of its own. A hundred tiles later,
// each row is read from memory three times, which costs energy and therefore clock frequency. So before every steps_a_meeting steps, each cluster's producer
// adds 1 to the counter and waits until all other clusters have done so.
//
// Only speed depends on this. If other clusters do not arrive, because their multiprocessors run another kernel, the first producer whose patience ends sets
// a flag, and no cluster waits any more in this launch.
// Config: block_inner, cluster

template <class Config> struct ClustersInStep : AllSteps<Config> {
    static constexpr int steps_a_meeting = 128, patience = 400; // patience: polls of the counter, some 0.3 ms
    static constexpr u32 nobody_waits = 1u << 31;
    u32 *meetings;   // the counter; NULL: the clusters do not synchronise
    int tile, tiles; // the tile's index and the number of tiles, both without those of a head start (early_start.cuh): after it all clusters begin together

    // count: the steps of the sum. Where there are none, one step past the ends of A and B is taken, which TMA fills with zeros.
    template <class Walk> __device__ __forceinline__ ClustersInStep(int count, const MatrixProductParams &params, const Walk &walk, const Unit &unit)
        : AllSteps<Config>(count > 0 ? AllSteps<Config>{count} : AllSteps<Config>{1, ceil_div(params.inner, Config::block_inner) + 1}), // copied as zeros
          meetings(params.meetings), tile(walk.place(unit) - walk.head.tiles()), tiles(walk.row_blocks() * walk.column_tiles() - walk.head.tiles()) {}

    // Called by the producer of each block before each step. The blocks of a cluster share what they load, so its first block synchronises for all.
    __device__ __forceinline__ bool operator()(int step) const {
        if (meetings && step % steps_a_meeting == 0 && tile >= 0 && blockIdx.x % Config::cluster == 0) meet(step / steps_a_meeting);
        return true;
    }

    // Adds 1 to the counter and waits for the other clusters. meeting: its index in the tile.
    __device__ __forceinline__ void meet(int meeting) const {
        int clusters = gridDim.x / Config::cluster, done = tile - tile % clusters; // tiles of the waves before
        u32 wanted = done * ceil_div(this->count, steps_a_meeting) + (meeting + 1) * min(clusters, tiles - done);
        atomicAdd(meetings, 1u);
#pragma unroll 1
        for (int i = 0; i < patience; i++)
            if (*(volatile u32 *)meetings >= wanted) return;
        atomicOr(meetings, nobody_waits);
    }
};
