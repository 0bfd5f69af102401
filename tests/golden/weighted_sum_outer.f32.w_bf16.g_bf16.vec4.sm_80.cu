// fusedlogp weighted_sum_outer.f32.w_bf16.g_bf16.vec4.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
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
#line 1 "templates/any/simt.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/any/streaming.cuh"
#line 1 "templates/common/vector.cuh"
#line 1 "templates/common/column_block.cuh"
#line 1 "templates/any/weighted_sum_outer.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_weighted_sum_outer_f32_w_bf16_g_bf16_vec4_sm_80(const __grid_constant__ WeightedSumOuterParams params) {
    weighted_sum_outer<Config>(params);
}
