// Sorts the valid rows by target; rows with the same target keep their order. Each block has several rows, and counts for each how many of all rows come before
// it. That takes N^2 comparisons, far fewer than the products' operations.
// Config: threads, shared_bytes

// Sorts by target, then by index.
__device__ __forceinline__ i64 order_key(int target, int at) { return (i64)target << 32 | (u32)at; }

template <class Config> struct TargetOrder {
    static constexpr int own_rows = FLP_TARGET_ORDER_ROWS, warps = Config::threads / 32, in_flight = 8;
    static constexpr i64 behind_all = 0x7fffffffffffffff;
    const TargetOrderParams &params;
    int rows, first; // all, and the block's first

    __device__ __forceinline__ i64 key(int at) const { return at < rows ? order_key(params.targets[at].target, at) : behind_all; }

    // How many rows come before each of the block's, of those that the thread looks at.
    __device__ __forceinline__ void count(int (&before)[own_rows]) const {
        i64 own[own_rows], other[in_flight];
#pragma unroll
        for (int r = 0; r < own_rows; r++) own[r] = key(first + r);
#pragma unroll 1
        for (int begin = threadIdx.x; begin < rows; begin += in_flight * Config::threads) {
#pragma unroll
            for (int i = 0; i < in_flight; i++) other[i] = key(begin + i * Config::threads);
#pragma unroll
            for (int i = 0; i < in_flight; i++)
#pragma unroll
                for (int r = 0; r < own_rows; r++) before[r] += other[i] < own[r];
        }
    }

    __device__ __forceinline__ void run(int (&of_warp)[warps][own_rows]) const {
        int before[own_rows] = {}, warp = warp_index(), at = 0, own = first + threadIdx.x;
        count(before);
#pragma unroll
        for (int r = 0; r < own_rows; r++) {
            before[r] = warp_sum(before[r]);
            if (lane_index() == 0) of_warp[warp][r] = before[r];
        }
        block_barrier();
        if (threadIdx.x >= own_rows || own >= rows) return;
        for (int w = 0; w < warps; w++) at += of_warp[w][threadIdx.x];
        params.sorted[at] = SortedTarget{params.targets[own].target, own, params.row[own], 0};
    }
};

template <class Config> __device__ __forceinline__ void linear_logp_backward_target_order(const TargetOrderParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(int(*)[TargetOrder<Config>::warps][TargetOrder<Config>::own_rows])dynamic_shared;
    static_assert(sizeof(shared) == Config::shared_bytes, "gen/kernels/helpers.lua disagrees");
    wait_for_previous_kernel();
    allow_next_kernel();
    int rows = counted(params.row_count, params.rows), first = blockIdx.x * TargetOrder<Config>::own_rows;
    if (first < rows) TargetOrder<Config>{params, rows, first}.run(shared);
}
