// grad_bias of a chunk of the vocabulary: the sums over the rows of the derivatives by the logits.
//
// A block has FLP_BIAS_COLUMNS columns, one for each lane. Each warp adds every `warps`-th row; then the warps' sums are added in their order.
// Config: element, out_element, adds, threads, shared_bytes
template <class Config> __device__ __forceinline__ void linear_logp_backward_bias(const BackwardBiasParams &params) {
    using element = typename Config::element;
    using Out = typename Config::out_element;
    constexpr int warps = Config::threads / 32;
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &part = *(float(*)[warps][FLP_BIAS_COLUMNS])dynamic_shared;
    static_assert(sizeof(part) == Config::shared_bytes, "gen/kernels/helpers.lua disagrees");
    wait_for_previous_kernel();
    allow_next_kernel();
    int column = column_at(blockIdx.x * FLP_BIAS_COLUMNS, lane_index()), rows = counted(params.row_count, params.rows);
    bool is_column = is_before(column, params.columns);
    int target = column_at(params.first_column, column);
    auto from = (const element *)params.gradients + (is_column ? column : 0);
    float sum = 0;
#pragma unroll 8
    for (int r = warp_index(); r < rows; r += warps) {
        float derivative = to_float(from[r * params.stride]);
        sum = params.row_factor ? fmaf(derivative, params.row_factor[r], sum) : sum + derivative;
        if (params.targets[r].target == target) sum += params.targets[r].derivative;
    }
    part[warp_index()][lane_index()] = sum;
    block_barrier();
    if (warp_index() != 0 || !is_column) return;
    for (int w = 1; w < warps; w++) sum += part[w][lane_index()];
    sum *= *params.factor;
    Out *to = (Out *)params.out + column;
    if constexpr (Config::adds) sum += to_float(*to);
    store_rounded(sum, to);
}
