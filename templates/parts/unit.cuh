// Units of work of the tile kernels, and the workers to which a scheduler (a "walk") deals them.
// Config: cluster

// Neighbouring tiles of a row block.
struct Unit {
    int row_block = 0; // of block_rows * cluster rows
    int split = 0;     // the split of the vocabulary that the unit's tiles make up; in products 0
    int first_tile = 0, tiles = 0;
};

// The workers that share a launch's units: its clusters or, in the ping-pong schedule (turns > 1), each consumer warpgroup of each cluster. The first
// warpgroups of all clusters come first, so that a launch with few units uses as many clusters as possible.
template <class Config, int turns> __device__ __forceinline__ int worker_count() { return gridDim.x / Config::cluster * turns; }
template <class Config> __device__ __forceinline__ int worker_index(int turn) { return blockIdx.x / Config::cluster + turn * (gridDim.x / Config::cluster); }

// a / b of numbers that are not negative: an unsigned division takes fewer instructions.
__device__ __forceinline__ int divide(int a, int b) { return (int)((u32)a / (u32)b); }

template <class T> __device__ __forceinline__ void exchange_values(T &one, T &other) {
    T kept = one;
    one = other;
    other = kept;
}
