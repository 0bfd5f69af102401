// grad_hidden from the products' sums: each valid row's is rounded once and written to the row's place, and the other rows get zeros. Where the sums lack the
// contribution of the targets' derivatives (params/rows.h), it is added here. With Config::in_parts, of a product in parts (product_parts.cuh), the rows stay
// packed.
// Config: sum_element, in_parts, adds_targets, weight_element, weight_is_hidden_vocab, out_element, adds, threads

// Adds the derivative of packed row `at` times its target's row of the weight, from element d on.
template <class Config, int count>
__device__ __forceinline__ void add_target_contribution(const BackwardFinishParams &params, int at, int d, float (&values)[count]) {
    using Weight = typename Config::weight_element;
    RowTarget target = params.targets[at];
    float by = target.derivative * (params.factor ? *params.factor : 1), weight[count];
    if constexpr (Config::weight_is_hidden_vocab) {
#pragma unroll
        for (int e = 0; e < count; e++)
            weight[e] = d + e < params.hidden_size ? to_float(((const Weight *)params.weight)[(d + e) * params.weight_stride + target.target]) : 0;
    } else {
        load_floats((const Weight *)params.weight + target.target * params.weight_stride + d, params.hidden_size - d, weight);
    }
#pragma unroll
    for (int e = 0; e < count; e++) values[e] = fmaf(by, weight[e], values[e]);
}

// Adds the other parts of the sums to those of the first, from the address `sums` on.
template <class Sum, int count>
__device__ __forceinline__ void add_parts(const BackwardFinishParams &params, const Sum *sums, int valid, float (&values)[count]) {
#pragma unroll 4
    for (int part = 1; part < params.parts; part++) {
        float more[count];
        load_floats(sums + part * params.part_rows * params.sums_stride, valid, more);
#pragma unroll
        for (int e = 0; e < count; e++) values[e] += more[e];
    }
}

template <class Config> __device__ __forceinline__ void finish_rows(const BackwardFinishParams &params) {
    using Sum = typename Config::sum_element;
    using Out = typename Config::out_element;
    constexpr int elements = vector_elements<Out>;
    if (params.mark && blockIdx.x == 0 && threadIdx.x == 0) *params.mark = 0;
    if (!Config::in_parts && params.count && *params.count == params.rows) return;
    int rows = Config::in_parts ? min(*params.count, params.packed_rows) : params.rows;
    for (int i = blockIdx.x; i < rows; i += gridDim.x) {
        int place = Config::in_parts ? i : params.packed_index[i], at = Config::in_parts ? i : place - params.first_packed;
        bool counts = place >= 0;
        if (counts ? at < 0 || at >= params.packed_rows : Config::adds || params.first_packed > 0) continue;
        const Sum *sums = (const Sum *)params.sums + (counts ? at : 0) * params.sums_stride;
        float factor = params.row_factor && counts ? params.row_factor[at] : 1;
        Out *out = (Out *)params.out + i * params.out_stride;
        for (int d = elements * threadIdx.x; d < params.hidden_size; d += elements * Config::threads) {
            int valid = params.hidden_size - d;
            float values[elements], old[elements];
            load_floats(sums + d, counts ? valid : 0, values);
            if constexpr (Config::in_parts) add_parts(params, sums + d, valid, values);
            if (params.row_factor) {
#pragma unroll
                for (int e = 0; e < elements; e++) values[e] *= factor;
            }
            if constexpr (Config::adds_targets)
                if (counts) add_target_contribution<Config>(params, at, d, values);
            if constexpr (Config::adds) {
                load_floats(out + d, valid, old);
#pragma unroll
                for (int e = 0; e < elements; e++) values[e] += old[e];
            }
            store_anywhere(narrow<Out>(values), out + d, valid);
        }
    }
}

template <class Config> __device__ __forceinline__ void linear_logp_backward_finish(const BackwardFinishParams &params) {
    enter_kernel(params.pdl_wait_last);
    finish_rows<Config>(params);
    leave_kernel(params.pdl_wait_last);
}
