// The gradient filter: one bit for each block (FLP_KEPT_BLOCK rows and columns) of the logits' derivatives, set where any derivative reaches the threshold.
// Config: none

// Called by a warp, whose fragment (row_statistics.cuh) z has the 16 rows from `row` on and the columns from `column` on. Blocks of zeros, such as those past
// the last row or column, are not kept even at a threshold of 0.
template <int count> __device__ __forceinline__ void note_kept(u32 *kept, int words, float threshold, const float (&z)[count], int row, int column) {
    constexpr int own = FLP_KEPT_BLOCK / 2; // the thread's accumulators in a block's columns
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
    if (bits == 0 || lane_index() != 0) return;
    int step = column / FLP_KEPT_BLOCK;
    u32 *word = &kept[(i64)(row / FLP_KEPT_BLOCK) * words + step / 32];
    u64 placed = (u64)bits << (step % 32); // the three blocks of a tile of 192 columns may lie across two words
    if ((u32)placed != 0) atomicOr(word, (u32)placed);
    if ((u32)(placed >> 32) != 0) atomicOr(word + 1, (u32)(placed >> 32));
}
