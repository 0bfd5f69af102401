// fusedlogp linear_logp_offsets.bf16.d2048.bm64.bv64.c1.p8.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
//
// Computes: of each row the integer offset k, the rounded maximum of z log2(e) / temperature over the vocabulary's first 64 entries; z = hidden .
//   weight^T, hidden [N, D] bf16, D = 2048, weight [V, D]
// Grid: ceil(N / 64) blocks
// Cluster: none
// Block: 256 threads: warpgroup 0 multiplies 64 rows; the first thread of warpgroup 1 loads
// Shared memory: 132096 bytes
//     65536  stages.a: 8 stages of A, 64 rows x 64 of the inner size
//     65536  stages.b: 8 stages of B, 64 columns x 64 of the inner size
//       128  stages.full, stages.empty: two barriers a stage
//       896  unused, up to a multiple of 1024
// Parts:
#line 1 "templates/params/types.h"
#line 1 "templates/parts/types.cuh"
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int block_rows = 64;
    static constexpr int block_columns = 64;
    static constexpr int block_inner = 64;
    static constexpr int cluster = 1;
    static constexpr int stages = 8;
    static constexpr bool a_transposed = false;
    static constexpr bool b_transposed = false;
    static constexpr int inner_size = 2048;
    static constexpr bool has_bias = false;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f + 2048 * 0x1p-30f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = false;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_packed = true;
    static constexpr int consumer_groups = 1;
    static constexpr int group_rows = 64;
    static constexpr int turns = 1;
    static constexpr int steps_together = 2;
    static constexpr bool b_is_read_once = false;
    static constexpr bool splits_operands = false;
    static constexpr int producer_registers = 0;
    static constexpr int splitter_registers = 0;
    static constexpr int consumer_registers = 0;
    static constexpr int b_box_columns = 64;
    static constexpr int b_box_rows = 64;
    static constexpr int fragment_columns = 64;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 132096;
};
#line 1 "templates/params/rows.h"
#line 1 "templates/params/tally.h"
#line 1 "templates/params/tiles.h"
#line 1 "templates/params/linear_logp.h"
#line 1 "templates/parts/target.cuh"
#line 1 "templates/parts/simt.cuh"
#line 1 "templates/sm90a/mbarrier.cuh"
#line 1 "templates/sm90a/tma.cuh"
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
// The accumulators (64 x 64 of the warpgroup) += a . b over the stage's K; without accumulate they are overwritten. a_offset: is added to A's descriptor.
template <int a_offset> __device__ __forceinline__ void wgmma_stage(float (&d)[32], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %34, 0;\n"
                 "add.s64 a, %32, %35;\nadd.s64 b, %33, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, a, b, p, 1, 1, 0, 0;\n"
                 "add.s64 a, a, 2;\nadd.s64 b, %33, 2;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, a, b, 1, 1, 1, 0, 0;\n"
                 "add.s64 a, a, 2;\nadd.s64 b, %33, 4;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, a, b, 1, 1, 1, 0, 0;\n"
                 "add.s64 a, a, 2;\nadd.s64 b, %33, 6;\n"
                 "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {"
                 "%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15,"
                 "%16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
                 "}, a, b, 1, 1, 1, 0, 0;\n"
                 "}"
                 :
                 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 : "l"(a), "l"(b), "r"(accumulate), "n"(a_offset));
}

// Waits for all products: before this the accumulators are no results, and no read of them may move above it.
__device__ __forceinline__ void wgmma_finish(float (&d)[32]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;"
                 :
                 "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]),
                 "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]),
                 "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]),
                 "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31])
                 :
                 : "memory");
}
#line 1 "templates/parts/unit.cuh"
#line 1 "templates/sm90a/tile_product.cuh"
#line 1 "templates/sm90a/tile_kernel.cuh"
#line 1 "templates/parts/schedule.cuh"
#line 1 "templates/parts/logit_bounds.cuh"
#line 1 "templates/parts/row_offset.cuh"
#line 1 "templates/parts/local_memory.cuh"
#line 1 "templates/parts/values_in_memory.cuh"
#line 1 "templates/parts/row_statistics.cuh"
#line 1 "templates/parts/saved_exp_statistics.cuh"
#line 1 "templates/sm90a/statistics_kernel.cuh"
#line 1 "templates/sm90a/linear_logp_offsets.cuh"
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 1)
flp_linear_logp_offsets_bf16_d2048_bm64_bv64_c1_p8_sm_90a(
    const __grid_constant__ TensorMap hidden_map,
    const __grid_constant__ TensorMap weight_map,
    const __grid_constant__ LinearLogpParams params) {
    linear_logp_offsets<Config>(hidden_map, weight_map, params);
}
