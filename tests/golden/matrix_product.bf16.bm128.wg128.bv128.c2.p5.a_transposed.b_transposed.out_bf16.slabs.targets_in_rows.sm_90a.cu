// fusedlogp matrix_product.bf16.bm128.wg128.bv128.c2.p5.a_transposed.b_transposed.out_bf16.slabs.targets_in_rows.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: out[rows, columns] bf16 = factor . A B of bf16, summed in fp32; A lies [inner, rows], in slabs, B [inner, columns]; the targets'
//   derivatives contribute in fp32
// Grid: persistent: min(multiprocessors / 2, row groups x column tiles) clusters, which share B's tiles; a row group has 256 rows
// Cluster: 2 blocks
// Block: 384 threads: warpgroups 0 and 1 take turns to multiply, with tiles of their own: one's sums lie under the other's products; the first thread
//   of warpgroup 2 loads, its second warp looks up the targets of the next tile
// Shared memory: 198656 bytes
//     81920  stages.a: 5 stages of A, 128 rows x 64 of the inner size
//     81920  stages.b: 5 stages of B, 128 columns x 64 of the inner size
//        80  stages.full, stages.empty: two barriers a stage
//        80  stages.turns: a barrier for each warpgroup, for each warp the other's tiles and its turn
//       864  unused, up to a multiple of 1024
//     32768  out: two boxes of 16 rows of 128 bytes for each consumer warp, which the copy engine writes
//      1024  the targets in this tile and the next, and their barriers
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int block_rows = 128;
    static constexpr int block_columns = 128;
    static constexpr int block_inner = 64;
    static constexpr int cluster = 2;
    static constexpr int stages = 5;
    static constexpr bool a_transposed = true;
    static constexpr bool b_transposed = true;
    static constexpr int consumer_groups = 2;
    static constexpr int group_rows = 128;
    static constexpr int turns = 2;
    static constexpr int steps_together = 1;
    static constexpr bool b_is_read_once = false;
    static constexpr bool splits_operands = false;
    static constexpr int producer_registers = 40;
    static constexpr int splitter_registers = 0;
    static constexpr int consumer_registers = 232;
    static constexpr int b_box_columns = 64;
    static constexpr int b_box_rows = 64;
    static constexpr int fragment_columns = 128;
    static constexpr int inner_size = 0;
    static constexpr bool filters = false;
    static constexpr bool keeps_in_step = false;
    static constexpr bool in_parts = false;
    static constexpr bool in_slabs = true;
    static constexpr bool out_is_ragged = false;
    using out_element = bf16;
    static constexpr bool adds = false;
    static constexpr bool takes_factors = false;
    static constexpr bool targets_of_rows = false;
    static constexpr bool targets_in_rows = true;
    static constexpr bool targets_in_columns = false;
    static constexpr int threads = 384;
    static constexpr int shared_bytes = 198656;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/matrix_product.h"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/parts/convert.cuh"
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/sm90a/tma.cuh"
#line 1 "templates/sm90a/tma_store.cuh"
#line 1 "templates/sm90a/cluster.cuh"
#line 1 "templates/sm90/dependent_launch.cuh"
#line 1 "templates/sm90a/wgmma.cuh"
// Warpgroup matrix products from shared memory: PTX ISA, "wgmma". The generator emits the instruction itself, and the wait for all of its results, for the
// shape in use (gen/wgmma.lua).
// Config: none

// The descriptor of a tile in the 128-byte swizzle, at a multiple of 1024 bytes. K-major (rows of 128 bytes along K): the stride is the distance from 8 rows
// to the next 8, and the leading offset is not used. MN-major (rows of 64 elements along M or N): the leading offset is the distance from 64 elements to the
// next 64, the stride from 8 steps of K to the next 8. To step along K, advance the start address by 32 bytes (K-major) or 2048 bytes (MN-major).
__device__ __forceinline__ u64 wgmma_descriptor(u32 address, int leading_bytes, int stride_bytes) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading_bytes >> 4) << 16 | (u64)(stride_bytes >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `pending` committed groups are unfinished.
template <int pending> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory"); }
// The accumulators (64 x 128 of the warpgroup) += a . b over the stage's K; without accumulate they are overwritten. a_offset: is added to A's descriptor.
template <int a_offset> __device__ __forceinline__ void wgmma_stage(float (&d)[64], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %66, 0;\n"
                 "add.s64 a, %64, %67;\nadd.s64 b, %65, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, a, b, p, 1, 1, 1, 1;\n"
                 "add.s64 a, a, 128;\nadd.s64 b, %65, 128;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, a, b, 1, 1, 1, 1, 1;\n"
                 "add.s64 a, a, 128;\nadd.s64 b, %65, 256;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, a, b, 1, 1, 1, 1, 1;\n"
                 "add.s64 a, a, 128;\nadd.s64 b, %65, 384;\n"
                 "wgmma.mma_async.sync.aligned.m64n128k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31,"
                 "%32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47,"
                 "%48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
                 "}, a, b, 1, 1, 1, 1, 1;\n"
                 "}"
                 :
                 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
                 "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
                 "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
                 "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 : "l"(a), "l"(b), "r"(accumulate), "n"(a_offset));
}

// Waits for all products: before this the accumulators are no results, and no read of them may move above it.
__device__ __forceinline__ void wgmma_finish(float (&d)[64]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 :
                 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]),
                 "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]),
                 "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]),
                 "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]),
                 "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63])
                 :
                 : "memory");
}
#line 1 "templates/parts/unit.cuh"
#line 1 "templates/sm90a/tile_product.cuh"
#line 1 "templates/sm90a/tile_kernel.cuh"
#line 1 "templates/sm90a/turns.cuh"
#line 1 "templates/sm90a/tile_store.cuh"
#line 1 "templates/parts/product_tiles.cuh"
#line 1 "templates/sm90a/early_start.cuh"
#line 1 "templates/parts/product_parts.cuh"
#line 1 "templates/sm90a/product_slabs.cuh"
#line 1 "templates/parts/product_epilogue.cuh"
#line 1 "templates/sm90a/product_targets.cuh"
#line 1 "templates/parts/target_contribution.cuh"
#line 1 "templates/parts/streaming.cuh"
#line 1 "templates/parts/vector.cuh"
#line 1 "templates/sm90a/target_lookahead.cuh"
#line 1 "templates/sm90a/matrix_product.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
flp_matrix_product_bf16_bm128_wg128_bv128_c2_p5_a_transposed_b_transposed_out_bf16_slabs_targets_in_rows_sm_90a(
    const __grid_constant__ TensorMap a_map,
    const __grid_constant__ TensorMap b_map,
    const __grid_constant__ TensorMap out_map,
    const __grid_constant__ MatrixProductParams params) {
    matrix_product<Config>(a_map, b_map, out_map, params);
}
