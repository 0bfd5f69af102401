// fusedlogp matrix_product.f32.bm128.bv128.c1.p4.b_transposed.out_f32.adds.vec4.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: out[rows, columns] f32 += factor . A B of f32, summed in fp32; A lies [rows, inner], B [inner, columns]
// Grid: persistent: min(resident blocks, row blocks x column tiles); a row block has 128 rows
// Cluster: none
// Block: 256 threads: 4 x 2 warps copy together, and multiply 32 rows x 64 columns each
// Shared memory: 65536 bytes
//     65536  stages: 4 of A, 128 rows x 16 of the inner size, and B, 128 columns
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    static constexpr int block_rows = 128;
    static constexpr int block_columns = 128;
    static constexpr int block_inner = 16;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool a_transposed = false;
    static constexpr bool b_transposed = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 4;
    static constexpr int fragment_columns = 64;
    static constexpr int inner_size = 0;
    static constexpr bool in_parts = false;
    using out_element = float;
    static constexpr bool adds = true;
    static constexpr bool takes_factors = true;
    static constexpr bool targets_of_rows = false;
    static constexpr bool targets_in_rows = false;
    static constexpr bool targets_in_columns = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 65536;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/matrix_product.h"
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
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/parts/product_tiles.cuh"
#line 1 "templates/sm80/tile_store.cuh"
#line 1 "templates/parts/product_epilogue.cuh"
#line 1 "templates/sm80/matrix_product.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 1)
flp_matrix_product_f32_bm128_bv128_c1_p4_b_transposed_out_f32_adds_vec4_sm_80(
    const __grid_constant__ MatrixProductParams params) {
    matrix_product<Config>(params);
}
