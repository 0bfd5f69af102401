// Adds the tiles' parts of grad_w: a block has FLP_WEIGHTED_SUM_COMBINE_COLUMNS columns, one for each lane, and its warps share the tiles.
//
// The order is fixed: warp i adds tiles i, i + warps, ... in turn, then the warps' sums are added in index order, and with accumulate the result is added to
// what grad_w holds. It depends only on the number of tiles.
// Config: weight_gradient_element, threads, shared_bytes
template <class Config> struct SharedStorage { float sums[Config::threads / 32][FLP_WEIGHTED_SUM_COMBINE_COLUMNS]; };

// Eight loads are in flight at a time, to hide their latency.
template <class Config> __device__ __forceinline__ float add_tiles(const WeightedSumCombineParams &params, int column) {
    constexpr int batch = 8, warps = Config::threads / 32;
    float sum = 0;
    if (column >= params.columns) return sum;
    for (int first = threadIdx.x / 32; first < params.tiles; first += batch * warps) {
        float part[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int tile = first + i * warps;
            part[i] = tile < params.tiles ? params.partial[(i64)tile * params.partial_stride + column] : 0;
        }
#pragma unroll
        for (int i = 0; i < batch; i++) sum += part[i];
    }
    return sum;
}

template <class Config> __device__ __forceinline__ void weighted_sum_combine(const WeightedSumCombineParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/kernels/helpers.lua disagrees");
    int column = blockIdx.x * FLP_WEIGHTED_SUM_COMBINE_COLUMNS + lane_index();
    wait_for_previous_kernel();
    shared.sums[threadIdx.x / 32][lane_index()] = add_tiles<Config>(params, column);
    block_barrier();
    if (threadIdx.x >= 32 || column >= params.columns) return;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Config::threads / 32; i++) sum += shared.sums[i][lane_index()];
    auto to = (typename Config::weight_gradient_element *)params.grad_w + column;
    if (params.accumulate) sum = to_float(*to) + sum;
    store_rounded(sum, to);
}
