// fusedlogp matrix_product.f32.bm128.bv128.c1.p4.kn.out_f32.adds.vec4.sm_80
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/params/types.h"
#line 1 "templates/common/types.cuh"
#line 1 "config"
struct Config {
    using element = float;
    static constexpr int block_rows = 128;
    static constexpr int block_vocab = 128;
    static constexpr int block_hidden = 16;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 4;
    static constexpr int fragment_columns = 64;
    using out_element = float;
    static constexpr bool adds = true;
    static constexpr int terms_along = 0;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 65536;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/matrix_product.h"
#line 1 "templates/common/counted.cuh"
#line 1 "templates/any/simt.cuh"
#line 1 "templates/sm80/cp_async.cuh"
#line 1 "templates/sm80/ldmatrix.cuh"
#line 1 "templates/sm80/mma.cuh"
#line 1 "templates/sm80/tf32.cuh"
#line 1 "templates/sm80/shared_tile.cuh"
#line 1 "templates/sm80/tensor_product.cuh"
#line 1 "templates/sm80/tile_product.cuh"
#line 1 "templates/any/convert.cuh"
#line 1 "templates/common/product_tiles.cuh"
#line 1 "templates/sm80/product_walk.cuh"
#line 1 "templates/sm80/tile_store.cuh"
#line 1 "templates/common/scale_product.cuh"
#line 1 "templates/common/target_terms.cuh"
#line 1 "templates/sm80/matrix_product.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 1)
flp_matrix_product_f32_bm128_bv128_c1_p4_kn_out_f32_adds_vec4_sm_80(const __grid_constant__ MatrixProductParams params) {
    matrix_product<Config>(params);
}
