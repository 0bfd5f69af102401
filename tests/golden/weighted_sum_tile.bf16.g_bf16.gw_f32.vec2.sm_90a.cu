// fusedlogp weighted_sum_tile.bf16.g_bf16.gw_f32.vec2.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
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
#line 1 "templates/any/simt.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/any/streaming.cuh"
#line 1 "templates/common/vector.cuh"
#line 1 "templates/sm90a/dependent_launch.cuh"
#line 1 "templates/common/column_block.cuh"
#line 1 "templates/any/weighted_sum_tile.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(512, 1)
flp_weighted_sum_tile_bf16_g_bf16_gw_f32_vec2_sm_90a(const __grid_constant__ WeightedSumTileParams params) {
    weighted_sum_tile<Config>(params);
}
