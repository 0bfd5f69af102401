// What the walks of tile kernels deal out: neighbouring tiles of a row block.
// Config: cluster
struct Unit {
    int row_block = 0; // of block_rows * cluster rows
    int split = 0;     // of the vocabulary, which a unit's tiles make up; of products 0
    int first_tile = 0, tiles = 0;
};

// Those that share a launch's units: the clusters of blocks and, where warpgroups take turns, each of their warpgroups. All blocks' first come first, so
// that few units are of different blocks.
template <class Config, int turns> __device__ __forceinline__ int worker_count() { return gridDim.x / Config::cluster * turns; }
template <class Config> __device__ __forceinline__ int worker_index(int turn) { return blockIdx.x / Config::cluster + turn * (gridDim.x / Config::cluster); }

// a / b of numbers that are not negative, which takes fewer instructions than of any.
__device__ __forceinline__ int divide(int a, int b) { return (int)((u32)a / (u32)b); }

template <class T> __device__ __forceinline__ void exchange_values(T &one, T &other) {
    T kept = one;
    one = other;
    other = kept;
}
