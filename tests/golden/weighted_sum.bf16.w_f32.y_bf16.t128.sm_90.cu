// fusedlogp weighted_sum.bf16.w_f32.y_bf16.t128.sm_90
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
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
#line 1 "templates/any/simt.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/any/streaming.cuh"
#line 1 "templates/common/vector.cuh"
#line 1 "templates/any/weighted_sum.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 2)
flp_weighted_sum_bf16_w_f32_y_bf16_t128_sm_90(const __grid_constant__ WeightedSumParams params) {
    weighted_sum<Config>(params);
}
