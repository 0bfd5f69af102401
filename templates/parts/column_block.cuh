// The columns and rows that a thread of weighted_sum's backward works on: the columns of one vector, in every lanes-th of the block's rows.
// Config: none
template <class Config> struct ColumnBlock {
    int vector; // index of the vector in the row
    int lane;   // among the threads that have the same vector
    int row_block;
    bool is_used; // false in the threads that are left over, as a slab's width need divide neither the block's threads nor the row

    // Neighbouring blocks take the slabs of the same rows, so that blocks that run at the same time read the same rows.
    __device__ __forceinline__ ColumnBlock(int vectors, int slab, int slabs, int lanes) {
        int place = threadIdx.x % slab, number = blockIdx.x % slabs;
        vector = number * slab + place;
        lane = threadIdx.x / slab;
        row_block = blockIdx.x / slabs;
        is_used = lane < lanes && vector < vectors;
    }
};
