// fusedlogp linear_logp_grad_logits.bf16.d2048.bm128.bv256.c2.p4.sm_90a
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/common/types.cuh"
// Element types and short integer names; nothing of CUDA's headers is needed.
// Config: none
typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long i64;

struct bf16 { u16 bits; };
struct f16 { u16 bits; };

struct alignas(64) TensorMap { u64 opaque[16]; };

constexpr float infinity = __builtin_bit_cast(float, 0x7f800000u), not_a_number = __builtin_bit_cast(float, 0x7fffffffu);
constexpr float ln_2 = 0.6931471805599453f;

__host__ __device__ constexpr int ceil_div(int a, int b) { return (a + b - 1) / b; }
#line 1 "config"
struct Config {
    using element = bf16;
    static constexpr int block_rows = 128;
    static constexpr int block_vocab = 256;
    static constexpr int block_hidden = 64;
    static constexpr int cluster = 2;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = false;
    static constexpr int hidden_size = 2048;
    static constexpr bool has_bias = false;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f + 2048 * 0x1p-30f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = false;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    static constexpr int consumer_groups = 2;
    static constexpr int steps_together = 1;
    static constexpr bool weight_is_read_once = false;
    static constexpr bool splits_operands = false;
    static constexpr int producer_registers = 72;
    static constexpr int splitter_registers = 0;
    static constexpr int consumer_registers = 216;
    static constexpr int weight_box_columns = 64;
    static constexpr int weight_box_rows = 128;
    static constexpr int fragment_columns = 256;
    using out_element = bf16;
    static constexpr bool adds = false;
    static constexpr bool filters = false;
    static constexpr int threads = 384;
    static constexpr int shared_bytes = 230400;
};
#line 1 "templates/common/row_target.cuh"
// A row's target apart from its other logits: of all derivatives that by the target's logit is mostly the largest, and were it rounded with the
// others, its error would be that of the gradients. So it stays fp32, is 0 among the others, and its part of each product is added in fp32.
// KEEP IN STEP: row targets (runtime/ops/matrix_product_params.h).
// Config: none
struct RowTarget {
    int target; // -1: no row
    float derivative;
};

// A row by its target: the rows in the order of their targets, those of one target in their own.
struct TargetTerm {
    int target;
    int at;  // among the rows that count
    int row; // in hidden
    int unused;
};

// How many there are, where the device alone knows it.
__device__ __forceinline__ int counted(const int *count, int most) { return count ? min(*count, most) : most; }
#line 1 "templates/common/linear_logp_backward_params.cuh"
// What linear_logp's backward kernels take. The host half, with every field explained, is runtime/ops/linear_logp_backward_params.h.
// KEEP IN STEP: linear_logp backward parameters.
// Config: none

// Of one row that counts: dz[v] = level w[v] + p[v] (spread + tilt log2(p[v])) + [v = target] direct, p[v] = 2^(scale z[v] - lse2).
struct RowGradient {
    float scale, lse2, spread, tilt, direct;
    int target;
    float level;
    int unused;
};

struct BackwardRowsParams {
    const void *target;
    const float *row_temperature, *lse, *entropy, *g_logp, *g_lse, *g_entropy, *g_sum;
    RowGradient *gradient;
    int *row, *place, *count;
    float *factor, *inverse_factor;
    u64 *target_errors;
    i64 ignore_index;
    int rows, vocab, target_bytes;
    float inverse_temperature;
    int scales;
    int places, differentiates, stash_columns;
    float *row_factor;
    bf16 *stash;
    i64 stash_stride;
    const float *stash_offset, *target_logit;
    RowTarget *targets;
    int *chunk_counts;
    int chunk_rows, ignores;
};

struct BackwardTermsParams {
    const RowTarget *targets;
    const int *row, *row_count;
    TargetTerm *terms;
    int rows, unused;
};

struct BackwardGatherParams {
    const void *hidden;
    void *compact;
    float *sums;
    i64 hidden_stride, compact_stride;
    const int *row, *count;
    int rows, hidden_size;
    const float *row_factor;
    int skips_whole, unused;
};

struct LogitGradientsParams {
    const void *hidden, *weight, *bias;
    void *out;
    i64 hidden_stride, weight_stride, out_stride;
    const RowGradient *gradient;
    const int *row_count;
    int rows, vocab;
    int first_column, columns;
    float softcap, inverse_softcap;
    int group;
    float filter;
    const void *class_weights;
    u32 *kept;
    const float *factor;
    int kept_words, waits_late;
    RowTarget *targets;
};

struct BackwardFilterParams {
    u32 *kept;
    u64 *statistics;
    const int *row_count;
    int words, rows, columns;
    int unused;
};

struct BackwardBiasParams {
    const void *gradients;
    void *out;
    i64 stride;
    const int *row_count;
    const float *factor;
    int rows, columns;
    const float *row_factor;
    const RowTarget *targets;
    int first_column, unused;
};

struct BackwardFinishParams {
    const void *sums;
    void *out;
    i64 sums_stride, out_stride;
    const int *place, *count;
    int rows, hidden_size;
    const RowTarget *targets;
    const void *weight;
    i64 weight_stride;
    const float *factor;
    int first_place, places;
};
static_assert(sizeof(RowGradient) == 32 && sizeof(BackwardRowsParams) == 224 && sizeof(BackwardTermsParams) == 40 && sizeof(BackwardGatherParams) == 80 &&
              sizeof(LogitGradientsParams) == 144 && sizeof(BackwardFilterParams) == 40 && sizeof(BackwardBiasParams) == 72 && sizeof(BackwardFinishParams) == 96,
              "runtime/ops/linear_logp_backward_params.h disagrees");
#line 1 "templates/any/simt.cuh"
// Threads, votes, shuffles and single-instruction arithmetic.
// Config: none
__device__ __forceinline__ int lane_index() { return threadIdx.x % 32; }
// The warp's number in its block, in a uniform register: the compiler then keeps role branches convergent.
__device__ __forceinline__ int warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
// A number that all lanes have, in a uniform register.
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
// The thread's number, read anew at each call: what is computed from it inside a loop stays there instead of living in registers throughout.
__device__ __forceinline__ int thread_index_reread() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
__device__ __forceinline__ int lane_index_reread() {
    int lane;
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}
__device__ __forceinline__ void block_barrier() { __syncthreads(); }
__device__ __forceinline__ void warp_barrier() { __syncwarp(); }

template <class T> __device__ __forceinline__ T shuffle_xor(T value, int lane_mask) {
    return __shfl_xor_sync(0xffffffffu, value, lane_mask);
}
// What `lane` has.
template <class T> __device__ __forceinline__ T shuffle(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
__device__ __forceinline__ bool warp_any(bool condition) { return __any_sync(0xffffffffu, condition); }
__device__ __forceinline__ u32 warp_ballot(bool condition) { return __ballot_sync(0xffffffffu, condition); }

// Whether any of the four lanes that share a fragment row says so.
__device__ __forceinline__ bool quad_any(bool condition) {
    return (__ballot_sync(0xffffffffu, condition) >> (lane_index() & ~3)) & 15u;
}

// 2^x: at most 2 ulp off, exact for integers, 0 for -inf and for results below 2^-126.
__device__ __forceinline__ float exp2_approximate(float x) {
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

__device__ __forceinline__ float reciprocal_approximate(float x) {
    float y;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}

// tanh(x) without a branch, relative error below 4e-7: for |x| < 0.6 an odd polynomial (least squares on Chebyshev nodes of that interval,
// 1.6e-7), beyond it (1 - e) / (1 + e) with e = exp(-2 |x|), where 1 - e loses at most one bit. NaN stays NaN.
// slope: 1 - tanh(x)^2, from e, since the difference has few bits where the tangent is near 1.
__device__ __forceinline__ float hyperbolic_tangent(float x, float &slope) {
    float e = exp2_approximate(-2.8853900817779268f * fabsf(x)), inverse = reciprocal_approximate(1 + e);
    float large = copysignf((1 - e) * inverse, x);
    slope = 4 * e * inverse * inverse;
    float s = x * x;
    float p = fmaf(fmaf(fmaf(0.0156079458f, s, -0.0522078414f), s, 0.133130099f), s, -0.333325886f);
    float small = fmaf(x * s, p, x);
    return fabsf(x) < 0.6f ? small : large;
}
__device__ __forceinline__ float hyperbolic_tangent(float x) {
    float slope;
    return hyperbolic_tangent(x, slope);
}

__device__ __forceinline__ float to_float(float x) { return x; }
__device__ __forceinline__ float to_float(bf16 x) { return __uint_as_float((u32)x.bits << 16); }
__device__ __forceinline__ float to_float(f16 x) {
    float y;
    asm("cvt.f32.f16 %0, %1;" : "=f"(y) : "h"(x.bits));
    return y;
}

// Keeps loads below it from being gathered above it, where they would all need registers at once.
__device__ __forceinline__ void keep_order() { asm volatile("" ::: "memory"); }

// The value is computed by here, not moved to where it is used: what it is computed from then leaves the registers.
__device__ __forceinline__ void settle(float &value) { asm volatile("" : "+f"(value)); }

// What is derived from the word is computed anew behind this, instead of being kept in registers.
__device__ __forceinline__ void forget(u32 &word) { asm volatile("" : "+r"(word)); }
#line 1 "templates/any/convert.cuh"
// Rounds fp32 to the 16-bit types, to nearest even, two at a time: PTX ISA, "cvt".
// Config: none

// Two elements as they lie in memory: `low` at the lower address.
template <class T> __device__ __forceinline__ u32 round_pair(float low, float high);
template <> __device__ __forceinline__ u32 round_pair<bf16>(float low, float high) {
    u32 pair;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}
template <> __device__ __forceinline__ u32 round_pair<f16>(float low, float high) {
    u32 pair;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(high), "f"(low));
    return pair;
}

__device__ __forceinline__ void store_rounded(float value, float *to) { *to = value; }
__device__ __forceinline__ void store_rounded(float value, bf16 *to) { to->bits = (u16)round_pair<bf16>(value, 0); }
__device__ __forceinline__ void store_rounded(float value, f16 *to) { to->bits = (u16)round_pair<f16>(value, 0); }
#line 1 "templates/sm90a/mbarrier.cuh"
// Shared-memory barriers that also count bytes: PTX ISA, "mbarrier".
// Config: none
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

__device__ __forceinline__ void mbarrier_init(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
// Makes the initialised barriers visible to the cluster and to the copy engine.
__device__ __forceinline__ void mbarrier_init_fence() { asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory"); }

// Arrives once and announces bytes that copies will complete.
__device__ __forceinline__ void mbarrier_arrive_expect(u32 barrier, int bytes) {
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier), "r"(bytes) : "memory");
}
// Arrives at the barrier with the same address in block `block` of the cluster. The default (block) scope suffices: what a stage's readers
// release is the end of tensor-core reads, which wgmma's wait has completed, and a cluster-scope release would flush every step.
__device__ __forceinline__ void mbarrier_arrive_remote(u32 barrier, int block) {
    asm volatile("{\n.reg .b32 remote;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mbarrier.arrive.shared::cluster.b64 _, [remote];\n}" ::"r"(barrier), "r"(block) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(u32 barrier) {
    asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];" ::"r"(barrier) : "memory");
}
// Waits until the phase of this parity has completed.
__device__ __forceinline__ void mbarrier_wait(u32 barrier, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier), "r"(parity) : "memory");
}
// Makes this thread's ordinary writes to shared memory visible to the tensor cores' and the copy engine's reads.
__device__ __forceinline__ void async_proxy_fence() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#line 1 "templates/sm90a/tma.cuh"
// Tensor copies by the copy engine: PTX ISA, "cp.async.bulk.tensor".
// Config: none

// Copies the box at (column, row) of the tensor to shared memory; its bytes complete on the barrier. What lies outside the tensor is
// filled with zeros and counts in the bytes.
__device__ __forceinline__ void tma_load(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// For what is read once: the first to go from the L2 again, so that what others keep there stays.
__device__ __forceinline__ void tma_load_once(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    asm volatile("{\n.reg .b64 policy;\n"
                 "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], policy;\n}" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// The same box to the same address, and the same bytes on the same barrier, in every block of the cluster whose bit is set.
__device__ __forceinline__ void tma_load_multicast(u32 to, const TensorMap *map, int column, int row, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}
#line 1 "templates/sm90a/tma_store.cuh"
// Fragments to shared memory, and tensor copies from there by the copy engine: PTX ISA, "stmatrix", "cp.async.bulk.tensor",
// "cp.reduce.async.bulk.tensor".
// Config: none

// Writes the box at (column, row) of the tensor; what lies outside the tensor is not written. The bytes must have been made visible by
// async_proxy_fence.
__device__ __forceinline__ void tma_store(const TensorMap *map, u32 from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from)
                 : "memory");
}
// Adds the box to what the tensor holds, each element once: with one writer the result has one value.
__device__ __forceinline__ void tma_add(const TensorMap *map, u32 from, int column, int row) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from)
                 : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most `pending` committed groups of this thread still read shared memory.
template <int pending> __device__ __forceinline__ void bulk_wait_read() {
    asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory");
}
// ... have not yet written.
template <int pending> __device__ __forceinline__ void bulk_wait() {
    asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory");
}
// Four 8 x 8 matrices of 16-bit elements: lane l names where row l % 8 of matrix l / 8 goes, and gives of each matrix the 32 bits at row
// l / 4, position l % 4 ("stmatrix").
__device__ __forceinline__ void store_shared_matrices(u32 row_address, const u32 (&d)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address), "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3])
                 : "memory");
}
__device__ __forceinline__ void store_shared_pair(u32 address, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}
#line 1 "templates/sm90a/cluster.cuh"
// Thread block clusters and warpgroup register budgets: PTX ISA, "barrier.cluster", "setmaxnreg".
// Config: none
__device__ __forceinline__ int cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_barrier() {
    asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory");
}
// count: a multiple of 8 in 24 .. 256; all warps of the warpgroup execute it.
template <int count> __device__ __forceinline__ void registers_release() {
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
}
template <int count> __device__ __forceinline__ void registers_claim() {
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
}
#line 1 "templates/sm90a/dependent_launch.cuh"
// Kernels of one stream that overlap: PTX ISA, "griddepcontrol".
// Config: none

// The next kernel's blocks may start, where there is room, before this kernel has ended.
__device__ __forceinline__ void allow_next_kernel() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#line 1 "templates/sm90a/wgmma.cuh"
// Warpgroup matrix products from shared memory: PTX ISA, "wgmma". The instruction itself, and the wait for all of its results, are emitted for
// the shape in use.
// Config: none

// A tile in the 128-byte swizzle, at a multiple of 1024 bytes. K-major (rows of 128 bytes along K): the stride is from 8 rows to the
// next 8, the leading offset is not used. MN-major (rows of 64 elements along M or N): the leading offset is from 64 elements to
// the next 64, the stride from 8 steps of K to the next 8. Advance the start address to step along K: by 32 bytes K-major, by 2048 MN-major.
__device__ __forceinline__ u64 wgmma_descriptor(u32 address, int leading_bytes, int stride_bytes) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading_bytes >> 4) << 16 | (u64)(stride_bytes >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `pending` committed groups are unfinished.
template <int pending> __device__ __forceinline__ void wgmma_wait() {
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory");
}
// The accumulators (64 x 256 of the warpgroup) += a . b over the stage's K; without accumulate they are overwritten.
__device__ __forceinline__ void wgmma_stage(float (&d)[128], u64 a, u64 b, int accumulate) {
    asm volatile("{\n.reg .pred p;\n.reg .b64 a, b;\nsetp.ne.b32 p, %130, 0;\n"
                 "add.s64 a, %128, 0;\nadd.s64 b, %129, 0;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, p, 1, 1, 0, 0;\n"
                 "add.s64 a, %128, 2;\nadd.s64 b, %129, 2;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, 1, 1, 1, 0, 0;\n"
                 "add.s64 a, %128, 4;\nadd.s64 b, %129, 4;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, 1, 1, 1, 0, 0;\n"
                 "add.s64 a, %128, 6;\nadd.s64 b, %129, 6;\n"
                 "wgmma.mma_async.sync.aligned.m64n256k16.f32.bf16.bf16 "
                 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, %22, %23, %24, %25, %26, %27, %28, %29, %30, %31, %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, %49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63, %64, %65, %66, %67, %68, %69, %70, %71, %72, %73, %74, %75, %76, %77, %78, %79, %80, %81, %82, %83, %84, %85, %86, %87, %88, %89, %90, %91, %92, %93, %94, %95, %96, %97, %98, %99, %100, %101, %102, %103, %104, %105, %106, %107, %108, %109, %110, %111, %112, %113, %114, %115, %116, %117, %118, %119, %120, %121, %122, %123, %124, %125, %126, %127}, a, b, 1, 1, 1, 0, 0;\n"
                 "}"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])
                 : "l"(a), "l"(b), "r"(accumulate));
}

// Waits for all products: before this the accumulators are no results, and no read of them may move above it.
__device__ __forceinline__ void wgmma_finish(float (&d)[128]) {
    asm volatile("wgmma.wait_group.sync.aligned 0;" : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3]), "+f"(d[4]), "+f"(d[5]), "+f"(d[6]), "+f"(d[7]), "+f"(d[8]), "+f"(d[9]), "+f"(d[10]), "+f"(d[11]), "+f"(d[12]), "+f"(d[13]), "+f"(d[14]), "+f"(d[15]), "+f"(d[16]), "+f"(d[17]), "+f"(d[18]), "+f"(d[19]), "+f"(d[20]), "+f"(d[21]), "+f"(d[22]), "+f"(d[23]), "+f"(d[24]), "+f"(d[25]), "+f"(d[26]), "+f"(d[27]), "+f"(d[28]), "+f"(d[29]), "+f"(d[30]), "+f"(d[31]), "+f"(d[32]), "+f"(d[33]), "+f"(d[34]), "+f"(d[35]), "+f"(d[36]), "+f"(d[37]), "+f"(d[38]), "+f"(d[39]), "+f"(d[40]), "+f"(d[41]), "+f"(d[42]), "+f"(d[43]), "+f"(d[44]), "+f"(d[45]), "+f"(d[46]), "+f"(d[47]), "+f"(d[48]), "+f"(d[49]), "+f"(d[50]), "+f"(d[51]), "+f"(d[52]), "+f"(d[53]), "+f"(d[54]), "+f"(d[55]), "+f"(d[56]), "+f"(d[57]), "+f"(d[58]), "+f"(d[59]), "+f"(d[60]), "+f"(d[61]), "+f"(d[62]), "+f"(d[63]), "+f"(d[64]), "+f"(d[65]), "+f"(d[66]), "+f"(d[67]), "+f"(d[68]), "+f"(d[69]), "+f"(d[70]), "+f"(d[71]), "+f"(d[72]), "+f"(d[73]), "+f"(d[74]), "+f"(d[75]), "+f"(d[76]), "+f"(d[77]), "+f"(d[78]), "+f"(d[79]), "+f"(d[80]), "+f"(d[81]), "+f"(d[82]), "+f"(d[83]), "+f"(d[84]), "+f"(d[85]), "+f"(d[86]), "+f"(d[87]), "+f"(d[88]), "+f"(d[89]), "+f"(d[90]), "+f"(d[91]), "+f"(d[92]), "+f"(d[93]), "+f"(d[94]), "+f"(d[95]), "+f"(d[96]), "+f"(d[97]), "+f"(d[98]), "+f"(d[99]), "+f"(d[100]), "+f"(d[101]), "+f"(d[102]), "+f"(d[103]), "+f"(d[104]), "+f"(d[105]), "+f"(d[106]), "+f"(d[107]), "+f"(d[108]), "+f"(d[109]), "+f"(d[110]), "+f"(d[111]), "+f"(d[112]), "+f"(d[113]), "+f"(d[114]), "+f"(d[115]), "+f"(d[116]), "+f"(d[117]), "+f"(d[118]), "+f"(d[119]), "+f"(d[120]), "+f"(d[121]), "+f"(d[122]), "+f"(d[123]), "+f"(d[124]), "+f"(d[125]), "+f"(d[126]), "+f"(d[127])::"memory");
}
#line 1 "templates/common/product_tiles.cuh"
// Which output tiles a persistent block works through, in which order: within a group of row blocks, rows run fastest, so that blocks at
// work together share column tiles in the L2 while the group's rows stay there.
// Config: block_rows, block_vocab, cluster
template <class Config> struct ProductTiles {
    int row_blocks, column_tiles, group; // row blocks: of block_rows * cluster rows
    int index;

    __device__ __forceinline__ ProductTiles(int rows, int columns, int group)
        : row_blocks(ceil_div(rows, Config::block_rows * Config::cluster)), column_tiles(ceil_div(columns, Config::block_vocab)), group(group),
          index(blockIdx.x / Config::cluster) {}

    __device__ __forceinline__ bool next(int &row_block, int &column_tile) {
        if (index >= row_blocks * column_tiles) return false;
        int g = index / (group * column_tiles), within = index - g * group * column_tiles;
        int height = min(group, row_blocks - g * group);
        column_tile = within / height;
        row_block = g * group + within - column_tile * height;
        index += gridDim.x / Config::cluster;
        return true;
    }
};
#line 1 "templates/sm90a/tile_product.cuh"
// The Hopper mainloop: a producer warp streams hidden and weight tiles through a ring of shared-memory stages, consumer warpgroups
// multiply them with wgmma.
//
// full[s]: the stage's bytes have arrived (one arrival, block_bytes + weight bytes). empty[s]: all consumers of all blocks of the cluster are
// done with it; with multicast a block fills its neighbours' stages too, so it must wait for their consumers as well.
// split[s], for fp32: a splitter warpgroup has replaced the stage's numbers by their tf32 parts (split_operands.cuh).
// Config: element, block_rows, block_vocab, block_hidden, hidden_size, hidden_is_transposed, stages, steps_together, cluster, consumer_groups,
// weight_is_hidden_vocab, weight_is_read_once, weight_box_*, splits_operands
template <class Config, bool splits> struct LowParts {};
template <class Config> struct LowParts<Config, true> {
    float hidden[Config::stages][Config::block_rows * Config::block_hidden];
    float weight[Config::stages][Config::block_vocab * Config::block_hidden];
    u64 split[Config::stages];
};

template <class Config> struct alignas(1024) Stages {
    typename Config::element hidden[Config::stages][Config::block_rows * Config::block_hidden];
    typename Config::element weight[Config::stages][Config::block_vocab * Config::block_hidden];
    LowParts<Config, Config::splits_operands> low;
    u64 full[Config::stages], empty[Config::stages];
};

template <class Config> struct Ring {
    int stage = 0, phase = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == Config::stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

template <class Config> struct TileProduct {
    using Shared = Stages<Config>;
    static constexpr int element_bytes = sizeof(typename Config::element);
    static constexpr int weight_bytes = sizeof(Shared::weight[0]);
    static constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    static constexpr int row_bytes = Config::block_hidden * element_bytes;
    static_assert(row_bytes == 128, "a stage's row is one 128-byte swizzle row");
    static constexpr int box_bytes = Config::weight_box_columns * Config::weight_box_rows * element_bytes;
    static constexpr int boxes = weight_bytes / box_bytes, boxes_of_block = boxes / Config::cluster;
    static_assert(boxes_of_block * Config::cluster * box_bytes == weight_bytes, "blocks of a cluster load equal shares of the weight tile");
    static constexpr int accumulators = Config::block_vocab / 2;

    Shared &shared;
    Ring<Config> ring;
    int hidden_rows; // that a copy brings
    __device__ __forceinline__ TileProduct(Shared &shared, int hidden_rows = Config::block_rows) : shared(shared), hidden_rows(hidden_rows) {}

    __device__ __forceinline__ u32 full() const { return shared_address(&shared.full[ring.stage]); }
    __device__ __forceinline__ u32 empty() const { return shared_address(&shared.empty[ring.stage]); }
    __device__ __forceinline__ u32 split() const { return shared_address(&shared.low.split[ring.stage]); }

    // One thread of the block, before the block's (cluster's) first barrier.
    __device__ __forceinline__ static void init(Shared &shared) {
        for (int s = 0; s < Config::stages; s++) {
            mbarrier_init(shared_address(&shared.full[s]), 1);
            mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups * Config::cluster);
            if constexpr (Config::splits_operands) mbarrier_init(shared_address(&shared.low.split[s]), 128);
        }
        mbarrier_init_fence();
    }

    // Rows of hidden's box where it has no more than there are. KEEP IN STEP: hidden's box (runtime/ops/linear_logp_launch.c).
    __device__ __forceinline__ static int box_rows(i64 rows) { return rows < Config::block_rows ? (int)rows : Config::block_rows; }

    // All threads, before the block's first barrier: makes the rows 0 that such a box leaves alone. The copy engine would do so with rows outside
    // the tensor, but takes its time: 63 of 64 are a tenth of a kernel that lives off memory.
    __device__ __forceinline__ static void clear_hidden(Shared &shared, i64 rows) {
        if (box_rows(rows) == Config::block_rows) return;
        auto words = (uint4 *)shared.hidden;
        for (int i = threadIdx.x; i < (int)(sizeof(shared.hidden) / sizeof(uint4)); i += Config::threads) words[i] = make_uint4(0, 0, 0, 0);
        async_proxy_fence();
    }

    // Of this step and of those that are filled together with it.
    __device__ __forceinline__ void wait_for_free_stages() const {
        Ring<Config> ahead = ring;
#pragma unroll
        for (int i = 0; i < Config::steps_together; i++) {
            mbarrier_wait(shared_address(&shared.empty[ahead.stage]), ahead.phase ^ 1);
            ahead.advance();
        }
    }

    // Producer, one thread: loads the tiles of one accumulator tile, row and column being its corner.
    __device__ __forceinline__ void load(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank,
                                         int steps = TileProduct::steps) {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (step % Config::steps_together == 0) wait_for_free_stages();
            load_step(hidden_map, weight_map, row, column, rank, step);
        }
    }

    // The same of those steps alone for which kept(step) says so.
    template <class Kept>
    __device__ __forceinline__ void load_kept(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank, int steps,
                                              const Kept &kept) {
        static_assert(Config::steps_together == 1, "a stage at a time");
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (!kept(step)) continue;
            wait_for_free_stages();
            load_step(hidden_map, weight_map, row, column, rank, step);
        }
    }

    __device__ __forceinline__ void load_step(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank, int step) {
        mbarrier_arrive_expect(full(), hidden_rows * row_bytes + weight_bytes);
        int k = step * Config::block_hidden;
        load_hidden(hidden_map, k, row);
#pragma unroll
        for (int i = 0; i < boxes_of_block; i++) load_weight_box(weight_map, k, column, rank * boxes_of_block + i);
        ring.advance();
    }

    __device__ __forceinline__ void load_hidden(const TensorMap &map, int k, int row) {
        u32 to = shared_address(shared.hidden[ring.stage]);
        if constexpr (Config::hidden_is_transposed) {
#pragma unroll
            for (int group = 0; group < Config::block_rows / 64; group++)
                tma_load(to + group * 64 * row_bytes, &map, row + group * 64, k, full());
        } else {
            tma_load(to, &map, k, row, full());
        }
    }

    __device__ __forceinline__ void load_weight_box(const TensorMap &map, int k, int column, int box) {
        u32 to = shared_address(shared.weight[ring.stage]) + box * box_bytes;
        int x = Config::weight_is_hidden_vocab ? column + box * Config::weight_box_columns : k;
        int y = Config::weight_is_hidden_vocab ? k : column + box * Config::weight_box_rows;
        if constexpr (Config::cluster > 1) tma_load_multicast(to, &map, x, y, full(), (1 << Config::cluster) - 1);
        else if constexpr (Config::weight_is_read_once) tma_load_once(to, &map, x, y, full());
        else tma_load(to, &map, x, y, full());
    }

    __device__ __forceinline__ static u64 hidden_descriptor(const void *tile, int group) {
        return wgmma_descriptor(shared_address(tile) + group * 64 * row_bytes, 16, 8 * row_bytes); // of one box: no leading offset either way
    }
    __device__ __forceinline__ static u64 weight_descriptor(const void *tile) {
        return Config::weight_is_hidden_vocab ? wgmma_descriptor(shared_address(tile), box_bytes, 1024)
                                              : wgmma_descriptor(shared_address(tile), 16, 8 * row_bytes);
    }

    // Consumer warpgroup `group`: the product of its 64 rows with the tile.
    __device__ __forceinline__ void multiply(float (&d)[accumulators], int group, int steps = TileProduct::steps) {
        if constexpr (Config::splits_operands) multiply_split(d, group);
        else multiply_plain(d, group, steps);
    }

    // Starts a stage's products, which are added to d or, the first, become it.
    __device__ __forceinline__ void multiply_step(float (&d)[accumulators], int group, int adds) {
        mbarrier_wait(full(), ring.phase);
        wgmma_fence();
        u64 a = hidden_descriptor(shared.hidden[ring.stage], group), b = weight_descriptor(shared.weight[ring.stage]);
        wgmma_stage(d, a, b, adds);
        wgmma_commit();
    }

    // With two consumer warpgroups a stage is released one step late, when the products that read it have finished while the next ones run.
    // One warpgroup has few rows and waits for memory anyway: there the stage is released, and loaded again, as soon as may be.
    __device__ __forceinline__ void multiply_plain(float (&d)[accumulators], int group, int steps) {
        constexpr bool late = Config::consumer_groups > 1;
        u32 previous = 0;
#pragma unroll 1 // copies of a statement with so many registers are a third of the compile
        for (int step = 0; step < steps; step++) {
            if constexpr (late) ring.stage = uniform(ring.stage); // and so the descriptors, which else move there one by one
            multiply_step(d, group, step != 0);
            wgmma_wait<late ? 1 : 0>();
            if (late && step > 0) release(previous);
            if (!late) release(empty());
            previous = empty();
            ring.advance();
        }
        wgmma_finish(d);
        if (late && steps > 0) release(previous);
    }

    // Of the steps that load_kept loads; how many these are. d is not written where there are none.
    template <class Kept> __device__ __forceinline__ int multiply_kept(float (&d)[accumulators], int group, int steps, const Kept &kept) {
        int done = 0;
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (!kept(step)) continue;
            multiply_step(d, group, done != 0);
            wgmma_wait<0>();
            release(empty());
            ring.advance();
            done++;
        }
        wgmma_finish(d);
        return done;
    }

    // The tensor cores truncate what they accumulate. That would cost fp32 its accuracy over a long D, so only a stage's products are summed
    // there, small ones first (low x low is below fp32's last bit), and the stages by ordinary additions.
    __device__ __forceinline__ void multiply_split(float (&d)[accumulators], int group) {
        float stage_sum[accumulators];
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            mbarrier_wait(split(), ring.phase);
            wgmma_fence();
            u64 a = hidden_descriptor(shared.hidden[ring.stage], group), b = weight_descriptor(shared.weight[ring.stage]);
            u64 a_low = hidden_descriptor(shared.low.hidden[ring.stage], group), b_low = weight_descriptor(shared.low.weight[ring.stage]);
            wgmma_stage(stage_sum, a_low, b, 0);
            wgmma_stage(stage_sum, a, b_low, 1);
            wgmma_stage(stage_sum, a, b, 1);
            wgmma_commit();
            wgmma_finish(stage_sum);
            release(empty());
#pragma unroll
            for (int i = 0; i < accumulators; i++) d[i] = step == 0 ? stage_sum[i] : d[i] + stage_sum[i];
            ring.advance();
        }
    }

    __device__ __forceinline__ void release(u32 barrier) {
        int thread = threadIdx.x % 128;
        if constexpr (Config::cluster == 1) {
            if (thread == 0) mbarrier_arrive(barrier);
        } else {
            if (thread < Config::cluster) mbarrier_arrive_remote(barrier, thread);
        }
    }
};
#line 1 "templates/sm90a/tile_store.cuh"
// From accumulators to a matrix in memory through the copy engine: a warp lays 16 rows of 128 bytes at a time into one of its two
// buffers, in the 128-byte swizzle, and the engine writes them (or, fp32, adds them) while the next are laid. What lies outside the matrix is
// cut off. What is added to 16-bit elements is added here, before the one rounding.
// Config: out_element, fragment_columns, consumer_groups, adds
template <class Out> struct OutMatrix {
    const Out *data;
    i64 stride;
    int rows, columns;
};

template <class Config> struct TileStore {
    using Out = typename Config::out_element;
    static constexpr int box_columns = 128 / sizeof(Out), box_bytes = 16 * 128;
    static constexpr int boxes = Config::fragment_columns / box_columns;
    static constexpr bool engine_adds = Config::adds && sizeof(Out) == 4, adds_first = Config::adds && sizeof(Out) == 2;

    struct alignas(1024) Shared {
        u8 box[Config::consumer_groups * 4][2][box_bytes];
    };

    // row, column: the corner of the warp's 16 rows in the matrix; old: the matrix, read only where adds_first.
    template <int count>
    __device__ __forceinline__ static void store(Shared &shared, const TensorMap &map, const OutMatrix<Out> &old, float (&d)[count], int row,
                                                 int column) {
        static_assert(count == Config::fragment_columns / 2, "two rows of two columns of eight");
        if constexpr (adds_first) add(old, d, row, column);
        store_values(shared, map, row, column, [&](int i) { return d[i]; });
    }

    // value(i): what takes accumulator i's place, asked for once each and in their order.
    template <class Value>
    __device__ __forceinline__ static void store_values(Shared &shared, const TensorMap &map, int row, int column, Value value) {
        u32 buffer = shared_address(shared.box[warp_index()]);
#pragma unroll
        for (int box = 0; box < boxes; box++) {
            u32 to = buffer + (box % 2) * box_bytes;
            if (lane_index() == 0) bulk_wait_read<1>(); // the engine has read what this buffer held
            __syncwarp();
            lay(to, value, box);
            async_proxy_fence();
            __syncwarp();
            if (lane_index() == 0) {
                if constexpr (engine_adds) tma_add(&map, to, column + box * box_columns, row);
                else tma_store(&map, to, column + box * box_columns, row);
                bulk_commit();
            }
        }
    }

    template <int count> __device__ __forceinline__ static void add(const OutMatrix<Out> &old, float (&d)[count], int row, int column) {
        int lane = lane_index(), c = column + 2 * (lane % 4);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane / 4 + 8 * h;
            if (r >= old.rows) continue;
            const Out *from = old.data + r * old.stride + c;
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                if (c + 2 * i < old.columns) d[i + 2 * h] += to_float(from[2 * i]);
                if (c + 2 * i + 1 < old.columns) d[i + 2 * h + 1] += to_float(from[2 * i + 1]);
            }
        }
    }

    // A fragment (row_statistics.cuh) of 16 rows and box_columns columns, from accumulator 4 (box_columns / 8) box on.
    template <class Value> __device__ __forceinline__ static void lay(u32 to, Value value, int box) {
        if constexpr (sizeof(Out) == 4) lay_pairs(to, value, box);
        else lay_matrices(to, value, box);
    }

    template <class Value> __device__ __forceinline__ static void lay_pairs(u32 to, Value value, int box) {
        int lane = lane_index(), line = lane / 4, pair = lane % 4;
#pragma unroll
        for (int j = 0; j < box_columns / 8; j++) {
#pragma unroll
            for (int h = 0; h < 2; h++) {
                int i = (box * (box_columns / 8) + j) * 4 + 2 * h, byte = (8 * j + 2 * pair) * 4;
                float first = value(i), second = value(i + 1);
                store_shared_pair(to + (line + 8 * h) * 128 + (((byte / 16) ^ line) * 16) + byte % 16, first, second);
            }
        }
    }

    // Sixteen columns at a time: two rows of two 8 x 8 matrices. This lane's row of them is lane % 8 of matrix lane / 8.
    template <class Value> __device__ __forceinline__ static void lay_matrices(u32 to, Value value, int box) {
        int lane = lane_index(), line = lane % 8, h = lane / 8 % 2, side = lane / 16;
        u32 row = to + (line + 8 * h) * 128;
#pragma unroll
        for (int j = 0; j < box_columns / 8; j += 2) {
            u32 d[4];
#pragma unroll
            for (int part = 0; part < 4; part++) {
                int i = (box * (box_columns / 8) + j + part / 2) * 4 + 2 * (part % 2);
                float first = value(i), second = value(i + 1);
                d[part] = round_pair<Out>(first, second);
            }
            store_shared_matrices(row + ((j + side) ^ line) * 16, d);
        }
    }

    // Before the block ends, its shared memory must have been read and its writes be done.
    __device__ __forceinline__ static void finish() {
        if (lane_index() == 0) bulk_wait<0>();
    }
};

template <class Config> struct ProductShared {
    Stages<Config> stages;
    typename TileStore<Config>::Shared out;
};
#line 1 "templates/common/logit_gradients.cuh"
// The backward's epilogue: from accumulator tiles to the loss' derivative by each logit.
//
// The derivative by the target's logit leaves for RowTarget (row_target.cuh), and is 0 here.
// Columns past the vocabulary come out as 0: their products are 0 (or the bias of nothing) and their gradients are set.
// Config: fragment_columns, has_bias, bias_element, has_softcap, wants_entropy, wants_logit_sum, has_class_weights, class_element, correction
template <class Config> struct LogitGradients {
    static constexpr int count = Config::fragment_columns / 2; // accumulators
    static constexpr int piece = 16; // shorter ones' branches become predicates, and all pieces one again
    static_assert(count % piece == 0, "whole pieces");
    RowGradient row[2];
    int first_row;

    __device__ __forceinline__ void begin(const LogitGradientsParams &params, int first) {
        first_row = first;
#pragma unroll
        for (int h = 0; h < 2; h++) row[h] = params.gradient[first_row + lane_index_reread() / 4 + 8 * h];
    }

    // Accumulator i's column, from the first one on. All comparisons are of this constant with a distance: the columns themselves would
    // need as many registers.
    __device__ __forceinline__ static constexpr int offset(int i) { return (i / 4) * 8 + (i & 1); }

    // z: hidden . weight^T of this warp's rows and the columns from first_column on; becomes the derivative.
    __device__ __forceinline__ void transform(const LogitGradientsParams &params, float (&z)[count], int first_column) const {
        int column = first_column + 2 * (lane_index() % 4); // the thread's first
#pragma unroll
        for (int i = 0; i < count; i += piece) transform_piece(params, &z[i], column + offset(i));
    }

    // The branches at its end are where the compiler cannot interleave one piece with the next: over all accumulators it takes three
    // times as long, and more registers than there are.
    __device__ __forceinline__ void transform_piece(const LogitGradientsParams &params, float *z, int column) const {
        int target[2] = {row[0].target - column, row[1].target - column};
        constexpr float correction = Config::has_bias || Config::has_softcap ? 1 : Config::correction;
        float scale[2] = {row[0].scale * correction, row[1].scale * correction};
        if constexpr (Config::has_bias) add_bias(params, z, column);
#pragma unroll
        for (int i = 0; i < piece; i++) {
            int h = (i >> 1) & 1;
            if constexpr (Config::has_softcap) z[i] = capped(params, z[i], scale[h], row[h], target[h] == offset(i), column + offset(i));
            else z[i] = with_level(params, spread_over(z[i], scale[h], row[h]), row[h], column + offset(i));
        }
        take_targets(params, z, target);
        mask(z, params.vocab - column);
    }

    __device__ __forceinline__ static void add_bias(const LogitGradientsParams &params, float *z, int column) {
        auto bias = (const typename Config::bias_element *)params.bias + column;
        int left = params.vocab - column;
#pragma unroll
        for (int i = 0; i < piece; i += 4) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float b = offset(i + c) < left ? to_float(bias[offset(i + c)]) : 0;
                z[i + c] = fmaf(z[i + c], Config::correction, b);
                z[i + 2 + c] = fmaf(z[i + 2 + c], Config::correction, b);
            }
        }
    }

    // p (spread + tilt log2(p)), which is 0 where p is: 2^x is from x = -126 down.
    __device__ __forceinline__ static float spread_over(float z, float scale, const RowGradient &row) {
        float x = fmaf(z, scale, -row.lse2), factor = row.spread;
        if constexpr (Config::wants_entropy) factor = fmaf(row.tilt, fmaxf(x, -150.0f), factor);
        return exp2_approximate(x) * factor;
    }

    // And what a loss of all logits adds, by the weight of column v's class.
    __device__ __forceinline__ static float with_level(const LogitGradientsParams &params, float derivative, const RowGradient &row, int v) {
        if constexpr (!Config::wants_logit_sum) return derivative;
        float weight = 1;
        if constexpr (Config::has_class_weights)
            weight = v < params.vocab ? to_float(((const typename Config::class_element *)params.class_weights)[v]) : 0;
        return fmaf(row.level, weight, derivative);
    }

    // The whole derivative by a logit that goes through the softcap, whose slope is 1 - tanh^2.
    __device__ __forceinline__ static float capped(const LogitGradientsParams &params, float z, float scale, const RowGradient &row, bool is_target,
                                                   int v) {
        float slope, t = hyperbolic_tangent(z * (params.inverse_softcap * (Config::has_bias ? 1 : Config::correction)), slope);
        float direct = is_target ? row.direct : 0;
        return (with_level(params, spread_over(params.softcap * t, scale, row), row, v) + direct) * slope;
    }

    // Few warps meet one.
    __device__ __forceinline__ void take_targets(const LogitGradientsParams &params, float *z, const int (&target)[2]) const {
        if (!warp_any((unsigned)target[0] <= offset(piece - 1) || (unsigned)target[1] <= offset(piece - 1))) return;
        float derivative[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < piece; i++) {
            int h = (i >> 1) & 1;
            if (target[h] != offset(i)) continue;
            derivative[h] = z[i] + (Config::has_softcap ? 0 : row[h].direct); // capped() has added it
            z[i] = 0;
        }
        RowTarget *to = params.targets + first_row + lane_index_reread() / 4;
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (is_mine(target[h])) to[8 * h].derivative = derivative[h];
    }

    // Of a piece's columns, those of this thread.
    __device__ __forceinline__ static bool is_mine(int distance) { return (unsigned)distance <= offset(piece - 1) && distance % 8 < 2; }

    // Columns past the vocabulary, whose products are of nothing; and behind the last row that counts, rows without a target: 0 whatever the
    // bias holds.
    __device__ __forceinline__ void mask(float *z, int left) const {
        bool is_row[2] = {row[0].target >= 0, row[1].target >= 0};
        if (!warp_any(left <= offset(piece - 1) || !is_row[0] || !is_row[1])) return;
#pragma unroll
        for (int i = 0; i < piece; i++)
            if (!is_row[(i >> 1) & 1] || offset(i) >= left) z[i] = 0;
    }
};
#line 1 "templates/sm90a/linear_logp_grad_logits.cuh"
// The derivative of the loss by a chunk of the logits on Hopper: the forward's mainloop, then logit_gradients.
// Config: filters, threads, consumer_groups, producer_registers, consumer_registers, and those of tile_product, product_tiles, logit_gradients and tile_store
template <class Config>
__device__ __forceinline__ void linear_logp_grad_logits(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &out_map,
                                                        const LogitGradientsParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(ProductShared<Config> *)dynamic_shared;
    static_assert(sizeof(ProductShared<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared.stages);
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    if (!params.waits_late) wait_for_previous_kernel();
    allow_next_kernel();

    int rows = counted(params.row_count, params.rows);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    TileProduct<Config> product(shared.stages);
    int row_block, column_tile, group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0)
            while (tiles.next(row_block, column_tile))
                product.load(hidden_map, weight_map, (row_block * Config::cluster + rank) * Config::block_rows,
                             params.first_column + column_tile * Config::block_vocab, rank);
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        float d[TileProduct<Config>::accumulators];
        LogitGradients<Config> gradients;
        while (tiles.next(row_block, column_tile)) {
            int row = (row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
            gradients.begin(params, row);
            product.multiply(d, group);
            gradients.transform(params, d, params.first_column + column_tile * Config::block_vocab);
            if constexpr (Config::filters)
                note_kept(params.kept, params.kept_words, params.filter * *params.factor, d, row, column_tile * Config::block_vocab);
            if (params.waits_late) wait_for_previous_kernel();
            TileStore<Config>::store(shared.out, out_map, {}, d, row, column_tile * Config::block_vocab);
        }
        TileStore<Config>::finish();
    }
    // What comes next waits for this kernel, and with it for the one before.
    if (params.waits_late) wait_for_previous_kernel();
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
flp_linear_logp_grad_logits_bf16_d2048_bm128_bv256_c2_p4_sm_90a(const __grid_constant__ TensorMap hidden_map, const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap out_map, const __grid_constant__ LogitGradientsParams params) {
    linear_logp_grad_logits<Config>(hidden_map, weight_map, out_map, params);
}
