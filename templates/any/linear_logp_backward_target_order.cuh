// The valid rows in the order of their targets, and those of one target in their own: a warp has several, and counts the rows that come before
// each. That is N^2 comparisons, which stay far below the products' flops.
// Config: threads
template <class Config> __device__ __forceinline__ void linear_logp_backward_target_order(const TargetOrderParams &params) {
    constexpr int own_rows = 32 / FLP_TARGET_ORDER_ROW_THREADS;
    wait_for_previous_kernel();
    allow_next_kernel();
    int rows = counted(params.row_count, params.rows), first = (blockIdx.x * (Config::threads / 32) + warp_index()) * own_rows;
    if (first >= rows) return;
    int own[own_rows], before[own_rows] = {};
#pragma unroll
    for (int r = 0; r < own_rows; r++) own[r] = params.targets[min(first + r, rows - 1)].target;
#pragma unroll 16 // loads in flight
    for (int j = lane_index(); j < rows; j += 32) {
        int target = params.targets[j].target;
#pragma unroll
        for (int r = 0; r < own_rows; r++) before[r] += target < own[r] + (j < first + r); // its equals before it come before it
    }
#pragma unroll
    for (int r = 0; r < own_rows; r++) {
        for (int m = 16; m > 0; m /= 2) before[r] += shuffle_xor(before[r], m);
        if (lane_index() == 0 && first + r < rows) params.sorted[before[r]] = SortedTarget{own[r], first + r, params.row[first + r], 0};
    }
}
