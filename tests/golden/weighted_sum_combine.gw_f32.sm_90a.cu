// fusedlogp weighted_sum_combine.gw_f32.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: grad_w[d] = the sum of the tiles' parts [tiles, D]
// Grid: a block for each 32 columns
// Cluster: none
// Block: 512 threads: warp i adds tiles i, i + 16, ..., then the warps' sums in their order
// Shared memory: 2048 bytes
//      2048  the warps' sums
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using weight_gradient_element = float;
    static constexpr int threads = 512;
    static constexpr int shared_bytes = 2048;
};
#line 1 "templates/params/weighted_sum.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/any/weighted_sum_combine.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(512, 2)
flp_weighted_sum_combine_gw_f32_sm_90a(
    const __grid_constant__ WeightedSumCombineParams params) {
    weighted_sum_combine<Config>(params);
}
