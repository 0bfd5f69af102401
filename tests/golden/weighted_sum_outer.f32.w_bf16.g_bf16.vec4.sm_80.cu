// fusedlogp weighted_sum_outer.f32.w_bf16.g_bf16.vec4.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: grad_x[row, d] = g[row] w[d], grad_x [N, D] f32, g [N] bf16, w [D] bf16
// Grid: slabs of columns x groups of rows, short blocks in the order of memory
// Cluster: none
// Block: 256 threads: a vector of w each, times g into a few rows
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    using weight_element = bf16;
    using gradient_element = bf16;
    static constexpr int unroll = 8;
    static constexpr int vector_bytes = 4;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/weighted_sum.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/parts/column_block.cuh"
#line 1 "templates/any/weighted_sum_outer.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_weighted_sum_outer_f32_w_bf16_g_bf16_vec4_sm_80(
    const __grid_constant__ WeightedSumOuterParams params) {
    weighted_sum_outer<Config>(params);
}
