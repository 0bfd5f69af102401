// fusedlogp weighted_sum_tile.bf16.g_bf16.gw_f32.vec2.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: partial[tile, d] = sum of g[row] x[row, d] over a tile's rows, x [N, D] bf16, g [N] bf16; of one tile grad_w f32 itself
// Grid: slabs of columns x tiles of rows
// Cluster: none
// Block: 512 threads: a vector's columns each, and every lanes-th row
// Shared memory: 8192 bytes
//      8192  the lanes' sums
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    using gradient_element = bf16;
    using weight_gradient_element = float;
    static constexpr int unroll = 8;
    static constexpr int vector_bytes = 2;
    static constexpr int threads = 512;
    static constexpr int shared_bytes = 8192;
};
#line 1 "templates/params/weighted_sum.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/parts/column_block.cuh"
#line 1 "templates/any/weighted_sum_tile.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(512, 1)
flp_weighted_sum_tile_bf16_g_bf16_gw_f32_vec2_sm_90a(
    const __grid_constant__ WeightedSumTileParams params) {
    weighted_sum_tile<Config>(params);
}
