// fusedlogp linear_logp_save_exp.bf16.d2048.bm128.bv128.s108.c1.p4.bias_f32.entropy.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: of each row and split of the vocabulary (tiles of 128 columns, in about 108 splits) the sum of 2^(z log2(e) / temperature - k) and its
//   integer offset k, their moment for the entropy, and the target's logit; z = hidden . weight^T + bias, hidden [N, D] bf16, D = 2048,
//   weight [V, D]; and keeps the powers themselves of the first columns, with one k a row
// Grid: persistent: min(resident blocks, row blocks x splits); a row block has 128 rows
// Cluster: none
// Block: 256 threads: 4 x 2 warps copy together, and multiply 32 rows x 64 columns each
// Shared memory: 70656 bytes
//     65536  stages: 4 of A, 128 rows x 32 of the inner size, and B, 128 columns
//      5120  merge: the statistics that the warps of a row merge
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int block_rows = 128;
    static constexpr int block_columns = 128;
    static constexpr int block_inner = 32;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool a_transposed = false;
    static constexpr bool b_transposed = false;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int inner_size = 2048;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_packed = true;
    using out_element = bf16;
    static constexpr bool adds = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 70656;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp.h"
#line 1 "templates/parts/target.cuh"
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
#line 1 "templates/sm80/tile_store.cuh"
#line 1 "templates/parts/schedule.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/row_offset.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/values_in_memory.cuh"
#line 1 "templates/parts/row_statistics.cuh"
#line 1 "templates/parts/saved_exp_statistics.cuh"
#line 1 "templates/sm80/warp_statistics.cuh"
#line 1 "templates/sm80/linear_logp_save_exp.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 1)
flp_linear_logp_save_exp_bf16_d2048_bm128_bv128_s108_c1_p4_bias_f32_entropy_sm_80(
    const __grid_constant__ LinearLogpParams params) {
    linear_logp_save_exp<Config>(params);
}
