// fusedlogp weighted_sum.bf16.w_f32.y_bf16.t128.sm_90
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: y[row] bf16 = sum_d x[row, d] w[d], x [N, D] bf16, w [D] f32
// Grid: persistent: rows in turn
// Cluster: none
// Block: 256 threads: teams of 128 take a row each
// Shared memory: 64 bytes
//        64  a sum of each warp, of two rows in turn
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    using weight_element = float;
    using output_element = bf16;
    static constexpr int team = 128;
    static constexpr int unroll = 5;
    static constexpr int vector_bytes = 16;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 64;
};
#line 1 "templates/params/weighted_sum.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/any/weighted_sum.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 2)
flp_weighted_sum_bf16_w_f32_y_bf16_t128_sm_90(
    const __grid_constant__ WeightedSumParams params) {
    weighted_sum<Config>(params);
}
