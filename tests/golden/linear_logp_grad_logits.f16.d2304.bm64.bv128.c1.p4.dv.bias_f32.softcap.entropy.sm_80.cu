// fusedlogp linear_logp_grad_logits.f16.d2304.bm64.bv128.c1.p4.dv.bias_f32.softcap.entropy.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int block_rows = 64;
    static constexpr int block_vocab = 128;
    static constexpr int block_hidden = 32;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int hidden_size = 2304;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = true;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    using out_element = f16;
    static constexpr bool adds = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 49152;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp_backward.h"
#line 1 "templates/common/counted.cuh"
#line 1 "templates/any/simt.cuh"
#line 1 "templates/sm80/cp_async.cuh"
#line 1 "templates/sm80/ldmatrix.cuh"
#line 1 "templates/sm80/mma.cuh"
#line 1 "templates/sm80/shared_tile.cuh"
#line 1 "templates/sm80/tensor_product.cuh"
#line 1 "templates/sm80/tile_product.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/common/product_tiles.cuh"
#line 1 "templates/sm80/product_walk.cuh"
#line 1 "templates/sm80/tile_store.cuh"
#line 1 "templates/common/logit_bounds.cuh"
#line 1 "templates/common/large_logits.cuh"
#line 1 "templates/common/logit_gradients.cuh"
#line 1 "templates/sm80/linear_logp_grad_logits.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 2)
flp_linear_logp_grad_logits_f16_d2304_bm64_bv128_c1_p4_dv_bias_f32_softcap_entropy_sm_80(const __grid_constant__ LogitGradientsParams params) {
    linear_logp_grad_logits<Config>(params);
}
