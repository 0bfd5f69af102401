// fusedlogp linear_logp.f32.d512.bm64.bv128.s108.c1.p4.dv.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: of each row and split of the vocabulary (tiles of 128 columns, in about 108 splits) the sum of 2^(z log2(e) / temperature - k) and its
//   integer offset k, and the target's logit; z = hidden . weight^T, hidden [N, D] f32, D = 512, weight [D, V]
// Grid: persistent: min(resident blocks, row blocks x splits); a row block has 64 rows
// Cluster: none
// Block: 128 threads: 2 x 2 warps copy together, and multiply 32 rows x 64 columns each
// Shared memory: 51200 bytes
//     49152  stages: 4 of A, 64 rows x 16 of the inner size, and B, 128 columns
//      2048  merge: the statistics that the warps of a row merge
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    static constexpr int block_rows = 64;
    static constexpr int block_columns = 128;
    static constexpr int block_inner = 16;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool a_transposed = false;
    static constexpr bool b_transposed = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int inner_size = 512;
    static constexpr bool has_bias = false;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = false;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_packed = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 51200;
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
#line 1 "templates/sm80/tf32.cuh"
#line 1 "templates/sm80/shared_tile.cuh"
#line 1 "templates/sm80/tensor_product.cuh"
#line 1 "templates/parts/unit.cuh"
#line 1 "templates/sm80/tile_product.cuh"
#line 1 "templates/sm80/tile_kernel.cuh"
#line 1 "templates/parts/schedule.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/row_offset.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/values_in_memory.cuh"
#line 1 "templates/parts/row_statistics.cuh"
#line 1 "templates/sm80/warp_statistics.cuh"
#line 1 "templates/sm80/linear_logp.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 2)
flp_linear_logp_f32_d512_bm64_bv128_s108_c1_p4_dv_sm_80(
    const __grid_constant__ LinearLogpParams params) {
    linear_logp<Config>(params);
}
