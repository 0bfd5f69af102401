// fusedlogp linear_logp.f32.d512.bm64.bv128.s108.c1.p4.dv.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    static constexpr int block_rows = 64;
    static constexpr int block_vocab = 128;
    static constexpr int block_hidden = 16;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int hidden_size = 512;
    static constexpr bool has_bias = false;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = false;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 51200;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp.h"
#line 1 "templates/common/target.cuh"
#line 1 "templates/common/compact_rows.cuh"
#line 1 "templates/any/simt.cuh"
#line 1 "templates/sm80/cp_async.cuh"
#line 1 "templates/sm80/ldmatrix.cuh"
#line 1 "templates/sm80/mma.cuh"
#line 1 "templates/sm80/tf32.cuh"
#line 1 "templates/sm80/shared_tile.cuh"
#line 1 "templates/sm80/tensor_product.cuh"
#line 1 "templates/sm80/tile_product.cuh"
#line 1 "templates/common/schedule.cuh"
#line 1 "templates/common/moment.cuh"
#line 1 "templates/common/logit_bounds.cuh"
#line 1 "templates/common/large_logits.cuh"
#line 1 "templates/common/row_statistics.cuh"
#line 1 "templates/sm80/warp_statistics.cuh"
#line 1 "templates/sm80/linear_logp.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 2)
flp_linear_logp_f32_d512_bm64_bv128_s108_c1_p4_dv_sm_80(const __grid_constant__ LinearLogpParams params) {
    linear_logp<Config>(params);
}
