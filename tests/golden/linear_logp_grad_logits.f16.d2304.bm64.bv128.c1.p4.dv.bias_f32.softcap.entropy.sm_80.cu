// fusedlogp linear_logp_grad_logits.f16.d2304.bm64.bv128.c1.p4.dv.bias_f32.softcap.entropy.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: out[N, columns], the derivatives of the loss by the logits of a chunk of the vocabulary, whose targets' stay apart in fp32; z =
//   softcap(hidden . weight^T + bias), hidden [N, D] f16, D = 2304, weight [D, V]
// Grid: persistent: min(resident blocks, row blocks x column tiles); a row block has 64 rows
// Cluster: none
// Block: 128 threads: 2 x 2 warps copy together, and multiply 32 rows x 64 columns each
// Shared memory: 49152 bytes
//     49152  stages: 4 of A, 64 rows x 32 of the inner size, and B, 128 columns
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = f16;
    static constexpr int block_rows = 64;
    static constexpr int block_columns = 128;
    static constexpr int block_inner = 32;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool a_transposed = false;
    static constexpr bool b_transposed = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int inner_size = 2304;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = true;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_packed = false;
    using out_element = f16;
    static constexpr bool adds = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 49152;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp_backward.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/sm80/cp_async.cuh"
#line 1 "templates/sm80/ldmatrix.cuh"
#line 1 "templates/sm80/mma.cuh"
#line 1 "templates/sm80/shared_tile.cuh"
#line 1 "templates/sm80/tensor_product.cuh"
#line 1 "templates/parts/unit.cuh"
#line 1 "templates/sm80/tile_product.cuh"
#line 1 "templates/sm80/tile_kernel.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/product_tiles.cuh"
#line 1 "templates/sm80/tile_store.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/row_offset.cuh"
#line 1 "templates/parts/softcap.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/values_in_memory.cuh"
#line 1 "templates/parts/tile_grad_logits.cuh"
#line 1 "templates/sm80/linear_logp_grad_logits.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 2)
flp_linear_logp_grad_logits_f16_d2304_bm64_bv128_c1_p4_dv_bias_f32_softcap_entropy_sm_80(
    const __grid_constant__ GradLogitsParams params) {
    linear_logp_grad_logits<Config>(params);
}
