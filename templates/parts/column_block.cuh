// Which columns and rows a thread of weighted_sum's backward works on: one vector's columns, and every lanes-th row of the block's.
// Config: threads
template <class Config> struct ColumnBlock {
    int vector; // of the row
    int lane;   // among the threads of the same columns
    int row_block;
    bool is_used; // the slab's width does not divide the threads, nor the row

    // Blocks that start together share rows: the slabs of a row follow one another.
    __device__ __forceinline__ ColumnBlock(int vectors, int slab, int slabs, int lanes) {
        int place = threadIdx.x % slab, number = blockIdx.x % slabs;
        vector = number * slab + place;
        lane = threadIdx.x / slab;
        row_block = blockIdx.x / slabs;
        is_used = lane < lanes && vector < vectors;
    }
};
