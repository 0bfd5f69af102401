// The gradient filter: which blocks (FLP_KEPT_BLOCK) of the logits' derivatives hold one that is not below the threshold. One bit a block.
// Config: none

// Blocks of zeros, as behind the last row and the last entry, are never kept, however low the threshold.
// By a warp with 16 rows from `row` on, of one row block, and the columns from `column` on.
template <int count> __device__ __forceinline__ void note_kept(u32 *kept, int words, float threshold, const float (&z)[count], int row, int column) {
    constexpr int own = FLP_KEPT_BLOCK / 2; // of a block's columns, in the thread's two rows
    u32 bits = 0;
#pragma unroll
    for (int block = 0; block < count / own; block++) {
        float largest = 0;
        bool is_number = true;
#pragma unroll
        for (int i = own * block; i < own * (block + 1); i++) {
            largest = fmaxf(largest, fabsf(z[i]));
            is_number = is_number && z[i] == z[i];
        }
        if (warp_any((largest >= threshold && largest > 0) || !is_number)) bits |= 1u << block;
    }
    int step = column / FLP_KEPT_BLOCK;
    if (bits != 0 && lane_index() == 0) atomicOr(&kept[(i64)(row / FLP_KEPT_BLOCK) * words + step / 32], bits << (step % 32));
}
