// Sorts the valid rows by target; rows with the same target keep their order. Each warp has several rows, and counts for each how many rows come before it.
// That takes N^2 comparisons, far fewer than the products' operations.
// Config: threads

// Sorts by target, then by index.
__device__ __forceinline__ i64 order_key(int target, int at) { return (i64)target << 32 | (u32)at; }

template <class Config> __device__ __forceinline__ void linear_logp_backward_target_order(const TargetOrderParams &params) {
    constexpr int own_rows = 32 / FLP_TARGET_ORDER_ROW_THREADS;
    wait_for_previous_kernel();
    allow_next_kernel();
    int rows = counted(params.row_count, params.rows), first = (blockIdx.x * (Config::threads / 32) + warp_index()) * own_rows;
    if (first >= rows) return;
    int before[own_rows] = {};
    i64 own[own_rows];
#pragma unroll
    for (int r = 0; r < own_rows; r++) own[r] = order_key(params.targets[min(first + r, rows - 1)].target, first + r);
#pragma unroll 2 // loads in flight
    for (int j = lane_index(); j < rows; j += 32) {
        i64 other = order_key(params.targets[j].target, j);
#pragma unroll
        for (int r = 0; r < own_rows; r++) before[r] += other < own[r];
    }
#pragma unroll
    for (int r = 0; r < own_rows; r++) {
        int at = warp_sum(before[r]);
        if (lane_index() == 0 && first + r < rows) params.sorted[at] = SortedTarget{(int)(own[r] >> 32), first + r, params.row[first + r], 0};
    }
}
