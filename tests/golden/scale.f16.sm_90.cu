// fusedlogp scale.f16.sm_90
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: x[row, D] *= factor[0], rounded once; nothing where the factor is 1
// Grid: a block for each part of 32 KiB of a row
// Cluster: none
// Block: 256 threads: eight vectors of 16 bytes
// Shared memory: none
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int unroll = 8;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/params/scale.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/any/scale.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 4)
flp_scale_f16_sm_90(
    const __grid_constant__ ScaleParams params) {
    scale<Config>(params);
}
