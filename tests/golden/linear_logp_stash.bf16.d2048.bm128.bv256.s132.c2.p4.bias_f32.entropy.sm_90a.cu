// fusedlogp linear_logp_stash.bf16.d2048.bm128.bv256.s132.c2.p4.bias_f32.entropy.sm_90a
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
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = false;
    static constexpr float correction = 1.0f + 2048 * 0x1p-30f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = true;
    static constexpr int consumer_groups = 2;
    static constexpr int steps_together = 1;
    static constexpr bool weight_is_read_once = false;
    static constexpr bool splits_operands = false;
    static constexpr int producer_registers = 56;
    static constexpr int splitter_registers = 0;
    static constexpr int consumer_registers = 224;
    static constexpr int weight_box_columns = 64;
    static constexpr int weight_box_rows = 128;
    static constexpr int fragment_columns = 256;
    using out_element = bf16;
    static constexpr bool adds = false;
    static constexpr int threads = 384;
    static constexpr int shared_bytes = 230400;
};
#line 1 "templates/common/linear_logp_params.cuh"
// What linear_logp's kernels take. The host half, with every field explained, is runtime/ops/linear_logp_params.h.
// KEEP IN STEP: linear_logp parameters.
// Config: none
struct Split {
    int tiles;
    int splits;
    int big, big_tiles;
};

struct LinearLogpParams {
    const void *hidden, *weight, *bias, *target;
    const float *row_temperature;
    float *partial;
    float *best;
    float *target_logit;
    i64 rows, hidden_stride, weight_stride;
    int vocab, hidden_size;
    int target_bytes;
    float scale;
    float softcap, inverse_softcap;
    Split split;
    int group;
    float *moment;
    float *logit_sums;
    const void *class_weights;
    const int *row, *row_count;
    float *offset;
    int *overflow, *block_overflow;
    int phase, stash_columns;
    void *stash;
};

struct LinearLogpCombineParams {
    const float *partial, *best, *target_logit;
    const void *target;
    float *logp, *lse;
    int *argmax;
    u64 *target_errors;
    i64 rows, ignore_index;
    int vocab, target_bytes, splits, ignores;
    const float *moment;
    float *entropy;
    const float *logit_sums;
    float *logit_sum;
    const int *place;
    float *offset;
    int *overflow, *block_overflow;
    int block_rows, blanks_others;
    int first_place, places;
};
static_assert(sizeof(LinearLogpParams) == 216 && sizeof(LinearLogpCombineParams) == 176,
              "runtime/ops/linear_logp_params.h disagrees");

// What a launch of linear_logp_stash does.
constexpr int stash_offsets = 0, stash_keep = 1, stash_again = 2;

// Where the rows lie close together (Config::is_compact), the device alone knows how many there are, and `row` says where each stands in what the
// caller gave.
template <class Config> __device__ __forceinline__ i64 row_count(const LinearLogpParams &params) {
    if constexpr (Config::is_compact) return *params.row_count;
    else return params.rows;
}

template <class Config> __device__ __forceinline__ int source_row(const LinearLogpParams &params, int row) {
    if constexpr (Config::is_compact) return params.row[row];
    else return row;
}

// Of any parameters that say so: without `ignores` none is.
template <class Params> __device__ __forceinline__ bool is_ignored(const Params &params, i64 target) {
    return params.ignores && target == params.ignore_index;
}

__device__ __forceinline__ i64 load_target(const void *target, int bytes, i64 row) {
    return bytes == 8 ? ((const i64 *)target)[row] : (i64)((const int *)target)[row];
}
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
#line 1 "templates/common/schedule.cuh"
// Which (row block, split) units a persistent block works through, in which order.
//
// A unit's bits do not depend on who computes it, so the order is free: within a group of row blocks, rows run fastest, so
// that blocks at work together share weight tiles in the L2 while the group's hidden rows stay there. The big splits are
// dealt round robin; blocks that got one fewer catch up on one-tile units before all go on round robin.
// Config: is_compact, block_rows, cluster
struct Unit {
    int row_block = 0; // of block_rows * cluster rows
    int split = 0;
    int first_tile = 0, tiles = 0;
};

template <class Config> struct Schedule {
    const LinearLogpParams &params;
    int step = 0;
    __device__ __forceinline__ Schedule(const LinearLogpParams &params) : params(params) {}

    // Few registers hold between units: the rest is cheap to take from the launch again.
    __device__ __forceinline__ static int worker() { return blockIdx.x / Config::cluster; }
    __device__ __forceinline__ static int workers() { return gridDim.x / Config::cluster; }
    __device__ __forceinline__ int row_blocks() const {
        return (int)((row_count<Config>(params) + Config::block_rows * Config::cluster - 1) / (Config::block_rows * Config::cluster));
    }

    // index: of a unit among row_blocks x splits units that start at split `base`.
    __device__ __forceinline__ void locate(int index, int base, int splits, Unit &unit) const {
        const Split &split = params.split;
        int group_units = params.group * splits;
        int g = index / group_units, within = index - g * group_units;
        int height = min(params.group, row_blocks() - g * params.group);
        int s = within / height;
        unit.row_block = g * params.group + within - s * height;
        unit.split = base + s;
        bool is_big = unit.split < split.big;
        unit.first_tile = is_big ? unit.split * split.big_tiles : split.big * split.big_tiles + unit.split - split.big;
        unit.tiles = is_big ? split.big_tiles : 1;
    }

    __device__ __forceinline__ bool next(Unit &unit) {
        const Split &split = params.split;
        int big_units = row_blocks() * split.big, small_units = row_blocks() * (split.splits - split.big);
        int i = step++;
        int rounds = big_units / workers(), late = big_units - rounds * workers();
        int mine = rounds + (worker() < late ? 1 : 0);
        if (i < mine) {
            locate(worker() + i * workers(), 0, split.big, unit);
            return true;
        }
        i -= mine;
        int idle = late > 0 ? workers() - late : 0; // blocks with one big unit fewer than the others
        int catch_up = idle > 0 && worker() >= late ? split.big_tiles : 0;
        int index = i < catch_up ? worker() - late + i * idle : idle * split.big_tiles + worker() + (i - catch_up) * workers();
        // The shared part lies behind the catch-up part: past the end in one is past the end in both.
        if (index >= small_units) return false;
        locate(index, split.big, split.splits - split.big, unit);
        return true;
    }
};
#line 1 "templates/common/moment.cuh"
// The entropy's moment sum x 2^x, x = z2 - k, when the offset k changes.
// Config: none

// Of terms whose offset rises by -change >= 0: sum (x + change) 2^(x + change). A change so large that the terms vanish must not overflow.
__device__ __forceinline__ float move_moment(float moment, float sum, float change) {
    return exp2_approximate(change) * fmaf(sum, fmaxf(change, -300.0f), moment);
}
#line 1 "templates/common/row_statistics.cuh"
// The forward's epilogue: from accumulator tiles to (offset, sum) of each row, the target's logit and the largest logit.
//
// A fragment is what wgmma and mma.sync m16n8 both leave in a thread: of 16 rows it holds rows lane / 4 and lane / 4 + 8, and of
// each 8 columns the two at 2 (lane % 4). fragment[4 j + 0, 1] are the first row's, [4 j + 2, 3] the second row's.
//
// The offset k of a row is an integer, so that rescaling by 2^(k - k') is exact. It is taken from the maximum of the unit's first columns and
// kept: terms far above it are noticed because the tile's sum then leaves the safe range, and only then are this tile's maximum and
// sum taken anew, from the accumulators that are still there. A row's decision looks at that row alone, so neighbours
// in the warp never change its bits. Terms far below k round to nothing beside the first columns', whose sum is at least 1/2.
//
// The tensor cores truncate what they accumulate, so a product comes out a little too small; Config::correction puts the mean back
// (gen/accumulation.lua). It costs no instruction: it rides on the factor that is applied anyway.
//
// For the entropy, the moment sum (z2 - k) 2^(z2 - k) goes along with the sum of 2^(z2 - k).
//
// For label smoothing, the logits themselves are summed up, each by the weight of its class.
//
// Config: is_compact, fragment_columns, has_bias, bias_element, has_softcap, wants_argmax, wants_entropy, wants_logit_sum, has_class_weights,
// class_element, correction
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such tiles stay finite

template <class Config> struct RowStatistics {
    static constexpr int count = Config::fragment_columns / 2; // accumulators of a thread
    static constexpr int first_look = count < 32 ? count : 32; // 64 columns give a good enough offset
    // What options do to the logits, and take from them, goes by pieces. The branches in each are where the compiler cannot interleave one
    // piece with the next: over all accumulators it takes long, and more registers than there are.
    static constexpr bool by_pieces = Config::has_bias || Config::has_softcap || Config::wants_argmax || Config::wants_logit_sum;
    static constexpr int piece = by_pieces ? 32 : count;
    static constexpr int merge_floats = 4 + Config::wants_entropy + Config::wants_logit_sum;
    float offset[2], sum[2], moment[2], logit_sum[2]; // but for offset of this thread's columns only
    int target[2];           // column in the vocabulary; -1: none here
    float best[2];
    int best_index[2];
    int first_row;           // of the warp's 16

    __device__ __forceinline__ int row(int h) const { return first_row + lane_index_reread() / 4 + 8 * h; }

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int first) {
        first_row = first;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            i64 t = row(h) < row_count<Config>(params) ? load_target(params.target, params.target_bytes, source_row<Config>(params, row(h))) : -1;
            target[h] = t >= 0 && t < params.vocab ? (int)t : -1;
            offset[h] = -infinity;
            sum[h] = 0;
            if constexpr (Config::wants_entropy) moment[h] = 0;
            if constexpr (Config::wants_logit_sum) logit_sum[h] = 0;
            best[h] = -infinity;
            best_index[h] = 0;
        }
    }

    // log2(e) / temperature, times the correction where no bias or softcap has applied it. Taken anew for each tile rather than held in
    // registers all the way through the products.
    __device__ __forceinline__ void load_scale(const LinearLogpParams &params, float (&scale)[2]) const {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            scale[h] = params.scale;
            if (params.row_temperature != nullptr && row(h) < row_count<Config>(params))
                scale[h] = params.scale / params.row_temperature[source_row<Config>(params, row(h))];
            if constexpr (!Config::has_bias && !Config::has_softcap) scale[h] *= Config::correction;
        }
    }

    // Accumulator i's column, from the thread's first one on. Comparisons are of this constant with a distance: the columns themselves would
    // take as many instructions and registers.
    __device__ __forceinline__ static constexpr int place(int i) { return (i / 4) * 8 + (i & 1); }
    __device__ __forceinline__ static int thread_column(int first_column) { return first_column + 2 * (lane_index() % 4); }

    // Of some accumulators, as what follows: first_column is the warp's first there.
    template <int some = count> __device__ __forceinline__ static void add_bias(const LinearLogpParams &params, float *z, int first_column) {
        auto bias = (const typename Config::bias_element *)params.bias + thread_column(first_column);
        int left = params.vocab - thread_column(first_column);
#pragma unroll
        for (int i = 0; i < some; i += 4) {
#pragma unroll
            for (int c = 0; c < 2; c++) {
                float b = place(i + c) < left ? to_float(bias[place(i + c)]) : 0;
                z[i + c] = fmaf(z[i + c], Config::correction, b);
                z[i + 2 + c] = fmaf(z[i + 2 + c], Config::correction, b);
            }
            keep_order();
        }
    }

    // Columns past the vocabulary can be neither the maximum nor a term of the sum.
    template <int some = count> __device__ __forceinline__ static void mask(const LinearLogpParams &params, float *z, int first_column) {
        if (first_column + 2 * some <= params.vocab) return;
        int left = params.vocab - thread_column(first_column);
#pragma unroll
        for (int i = 0; i < some; i++)
            if (place(i) >= left) z[i] = -infinity;
    }

    // A new best is rare after the first tiles, so look for its column only where there is one.
    template <int some> __device__ __forceinline__ void find_best(const float *z, int first_column) {
        float largest[2];
        thread_maximum<some>(z, largest);
        if (!warp_any(largest[0] > best[0] || largest[1] > best[1])) return;
#pragma unroll
        for (int i = 0; i < some; i++) {
            int h = (i >> 1) & 1;
            if (z[i] > best[h]) {
                best[h] = z[i];
                best_index[h] = thread_column(first_column) + place(i);
            }
        }
    }

    template <int some> __device__ __forceinline__ static void thread_maximum(const float *z, float (&largest)[2]) {
        largest[0] = largest[1] = -infinity;
#pragma unroll
        for (int i = 0; i < some; i++) largest[(i >> 1) & 1] = fmaxf(largest[(i >> 1) & 1], z[i]);
    }

    __device__ __forceinline__ void pick_target(const LinearLogpParams &params, const float (&z)[count], const float (&scale)[2], int first_column) {
        int local[2] = {target[0] - thread_column(first_column), target[1] - thread_column(first_column)};
        if (!warp_any((unsigned)local[0] < Config::fragment_columns || (unsigned)local[1] < Config::fragment_columns)) return;
        float logit[2] = {0, 0};
#pragma unroll
        for (int i = 0; i < count; i++)
            if (local[(i >> 1) & 1] == place(i)) logit[(i >> 1) & 1] = z[i];
#pragma unroll
        for (int h = 0; h < 2; h++) {
            bool mine = (unsigned)local[h] < Config::fragment_columns && local[h] % 8 < 2;
            if (mine) params.target_logit[row(h)] = logit[h] * scale[h];
        }
    }

    template <int some> __device__ __forceinline__ void take_maximum(const float (&z)[count], const float (&scale)[2], const bool (&wanted)[2]) {
        float largest[2];
        thread_maximum<some>(z, largest);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 1));
            largest[h] = fmaxf(largest[h], shuffle_xor(largest[h], 2));
            float k = fmaxf(rintf(largest[h] * scale[h]), offset[h]);
            if (wanted[h] && k > offset[h]) {
                if constexpr (Config::wants_entropy) {
                    if (offset[h] != -infinity) moment[h] = move_moment(moment[h], sum[h], offset[h] - k);
                }
                if (offset[h] != -infinity) sum[h] *= exp2_approximate(offset[h] - k);
                offset[h] = k;
            }
        }
    }

    __device__ __forceinline__ void add_exponentials(const float (&z)[count], const float (&scale)[2], float (&tile_sum)[2],
                                                     float (&tile_moment)[2]) const {
        float part[4] = {0, 0, 0, 0};
        float moment_part[4] = {0, 0, 0, 0};
        // Without an offset all terms so far are -inf or NaN: 2^z2 itself is then 0 or NaN, which is what the sum must become.
        float k[2] = {offset[0] == -infinity ? 0 : offset[0], offset[1] == -infinity ? 0 : offset[1]};
#pragma unroll
        for (int i = 0; i < count; i++) {
            int h = (i >> 1) & 1;
            float x = fmaf(z[i], scale[h], -k[h]), power = exp2_approximate(x);
            part[i & 3] += power;
            if constexpr (Config::wants_entropy) {
                // 2^x is 0 below -126, and x may be -inf there.
                moment_part[i & 3] = fmaf(power, fmaxf(x, -126.0f), moment_part[i & 3]);
                settle(moment_part[i & 3]);
            }
        }
#pragma unroll
        for (int h = 0; h < 2; h++) {
            tile_sum[h] = part[2 * h] + part[2 * h + 1];
            if constexpr (Config::wants_entropy) tile_moment[h] = moment_part[2 * h] + moment_part[2 * h + 1];
        }
    }

    template <int some>
    __device__ __forceinline__ void add_logits(const LinearLogpParams &params, const float *z, const float (&scale)[2], int first_column) {
        int v = thread_column(first_column), left = params.vocab - v;
#pragma unroll
        for (int i = 0; i < some; i++) {
            int h = (i >> 1) & 1;
            if (place(i) >= left) continue;
            float z2 = z[i] * scale[h];
            if constexpr (Config::has_class_weights) z2 *= to_float(((const typename Config::class_element *)params.class_weights)[v + place(i)]);
            logit_sum[h] += z2;
            settle(logit_sum[h]);
        }
    }

    // Changes some logits by bias, mask and softcap, and takes from them what is asked beside their exponentials.
    template <int some>
    __device__ __forceinline__ void transform(const LinearLogpParams &params, float *z, const float (&scale)[2], int first_column) {
        if constexpr (Config::has_bias) add_bias<some>(params, z, first_column);
        mask<some>(params, z, first_column);
        if constexpr (Config::wants_argmax) find_best<some>(z, first_column);
        if constexpr (Config::has_softcap) {
            float inverse = params.inverse_softcap * (Config::has_bias ? 1 : Config::correction);
#pragma unroll
            for (int i = 0; i < some; i++) z[i] = params.softcap * hyperbolic_tangent(z[i] * inverse);
            mask<some>(params, z, first_column); // softcap(-inf) is finite
        }
        if constexpr (Config::wants_logit_sum) add_logits<some>(params, z, scale, first_column);
    }

    // z: hidden . weight^T of this warp's rows and the columns from first_column on; changed by bias, mask and softcap.
    // first: this is the unit's first tile.
    __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&z)[count], int first_column, bool first) {
        float scale[2];
        load_scale(params, scale);
#pragma unroll
        for (int i = 0; i < count; i += piece) transform<piece>(params, &z[i], scale, first_column + place(i));
        pick_target(params, z, scale, first_column);

        float tile_sum[2], tile_moment[2];
        bool wanted[2] = {true, true};
        bool refresh = first && first_look == count;
        if constexpr (first_look < count) {
            if (first) take_maximum<first_look>(z, scale, wanted);
        }
        do {
            if (refresh) take_maximum<count>(z, scale, wanted);
            add_exponentials(z, scale, tile_sum, tile_moment);
            if (refresh) break;
#pragma unroll
            for (int h = 0; h < 2; h++) wanted[h] = quad_any(!(tile_sum[h] < safe_sum)) || offset[h] == -infinity;
            refresh = warp_any(wanted[0] || wanted[1]);
        } while (refresh);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += tile_sum[h];
            if constexpr (Config::wants_entropy) moment[h] += tile_moment[h];
        }
    }

    // Leaves the row's totals in all four lanes that share it.
    __device__ __forceinline__ void finish() {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += shuffle_xor(sum[h], 1);
            sum[h] += shuffle_xor(sum[h], 2);
            if constexpr (Config::wants_entropy) {
                moment[h] += shuffle_xor(moment[h], 1);
                moment[h] += shuffle_xor(moment[h], 2);
            }
            if constexpr (Config::wants_logit_sum) {
                logit_sum[h] += shuffle_xor(logit_sum[h], 1);
                logit_sum[h] += shuffle_xor(logit_sum[h], 2);
            }
            if constexpr (Config::wants_argmax) {
#pragma unroll
                for (int lane_mask = 1; lane_mask <= 2; lane_mask *= 2) {
                    float other = shuffle_xor(best[h], lane_mask);
                    int other_index = shuffle_xor(best_index[h], lane_mask);
                    merge_best(h, other, other_index);
                }
            }
        }
    }

    __device__ __forceinline__ void merge_best(int h, float other, int other_index) {
        if (other > best[h] || (other == best[h] && other_index < best_index[h])) {
            best[h] = other;
            best_index[h] = other_index;
        }
    }

    // Into to[0 .. 15] of the warp's rows: for a warp with the same rows and other columns.
    __device__ __forceinline__ void leave(float (*to)[merge_floats]) const {
        if (lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            float *entry = to[lane_index() / 4 + 8 * h];
            entry[0] = offset[h];
            entry[1] = sum[h];
            if constexpr (Config::wants_argmax) {
                entry[2] = best[h];
                entry[3] = __int_as_float(best_index[h]);
            }
            if constexpr (Config::wants_entropy) entry[4] = moment[h];
            if constexpr (Config::wants_logit_sum) entry[merge_floats - 1] = logit_sum[h];
        }
    }

    __device__ __forceinline__ void merge(const float (*from)[merge_floats]) {
#pragma unroll
        for (int h = 0; h < 2; h++) {
            const float *entry = from[lane_index() / 4 + 8 * h];
            float k = fmaxf(offset[h], entry[0]);
            float mine = offset[h] == -infinity ? sum[h] : sum[h] * exp2_approximate(offset[h] - k);
            float theirs = entry[0] == -infinity ? entry[1] : entry[1] * exp2_approximate(entry[0] - k);
            if constexpr (Config::wants_entropy) {
                float moved = offset[h] == -infinity ? moment[h] : move_moment(moment[h], sum[h], offset[h] - k);
                moment[h] = moved + (entry[0] == -infinity ? entry[4] : move_moment(entry[4], entry[1], entry[0] - k));
            }
            if constexpr (Config::wants_logit_sum) logit_sum[h] += entry[merge_floats - 1];
            offset[h] = k;
            sum[h] = mine + theirs;
            if constexpr (Config::wants_argmax) merge_best(h, entry[2], __float_as_int(entry[3]));
        }
    }

    __device__ __forceinline__ void store(const LinearLogpParams &params, int split) const {
        if (lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (row(h) >= row_count<Config>(params)) continue;
            i64 at = ((i64)row(h) * params.split.splits + split) * 2;
            *(float2 *)(params.partial + at) = make_float2(offset[h], sum[h]);
            if constexpr (Config::wants_entropy) params.moment[at / 2] = moment[h];
            if constexpr (Config::wants_logit_sum) params.logit_sums[at / 2] = logit_sum[h];
            if constexpr (Config::wants_argmax) *(float2 *)(params.best + at) = make_float2(best[h], __int_as_float(best_index[h]));
        }
    }
};
#line 1 "templates/common/stashed_statistics.cuh"
// The forward's epilogue where the terms 2^(z2 - k) are kept for the gradients: row_statistics with one offset k a row for the whole vocabulary.
//
// The offsets come from the vocabulary's first columns, in a launch of their own. A row with terms too large for its offset is noticed as
// in row_statistics, its sums go on with another, and its block is run again from the offset that the combine gives it. So what is kept of a
// row depends on that row alone.
// Config: those of row_statistics
template <class Config> struct StashedStatistics : RowStatistics<Config> {
    using Base = RowStatistics<Config>;
    using Base::count, Base::offset, Base::sum, Base::moment, Base::row;

    __device__ __forceinline__ static bool is_row(const LinearLogpParams &params, int row) { return row < row_count<Config>(params); }

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int first) {
        Base::begin(params, first);
#pragma unroll
        for (int h = 0; h < 2; h++) // behind the last row all terms become 0
            offset[h] = is_row(params, row(h)) ? params.offset[row(h)] : infinity;
    }

    __device__ __forceinline__ void transform_all(const LinearLogpParams &params, float (&z)[count], float (&scale)[2], int first_column) {
        Base::load_scale(params, scale);
#pragma unroll
        for (int i = 0; i < count; i += Base::piece)
            Base::template transform<Base::piece>(params, &z[i], scale, first_column + Base::place(i));
    }

    // z: hidden . weight^T of the vocabulary's first columns. Leaves the rows' offsets and clears their flags.
    __device__ __forceinline__ void find_offsets(const LinearLogpParams &params, float (&z)[count], int row_block) {
        float scale[2];
        transform_all(params, z, scale, 0);
        bool wanted[2] = {true, true};
        offset[0] = offset[1] = -infinity;
        Base::template take_maximum<Base::first_look>(z, scale, wanted);
        if (Base::first_row == row_block * Config::block_rows * Config::cluster && lane_index() == 0) {
            if (row_block == 0) params.block_overflow[0] = 0;
            params.block_overflow[row_block + 1] = 0;
        }
        if (lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++) {
            if (!is_row(params, row(h))) continue;
            params.offset[row(h)] = offset[h];
            params.overflow[row(h)] = 0;
        }
    }

    // The terms are kept: store(value) takes value(i) of each accumulator i, once and those of a row in their order; rows behind the last it may leave.
    template <class Store>
    __device__ __forceinline__ void store_exponentials(const float (&z)[count], const float (&scale)[2], float (&tile_sum)[2], float (&tile_moment)[2],
                                                       Store store) const {
        float part[4] = {0, 0, 0, 0}, moment_part[4] = {0, 0, 0, 0};
        float k[2] = {offset[0] == -infinity ? 0 : offset[0], offset[1] == -infinity ? 0 : offset[1]};
        store([&](int i) {
            float x = fmaf(z[i], scale[(i >> 1) & 1], -k[(i >> 1) & 1]), power = exp2_approximate(x);
            part[i & 3] += power;
            if constexpr (Config::wants_entropy) {
                moment_part[i & 3] = fmaf(power, fmaxf(x, -126.0f), moment_part[i & 3]);
                settle(moment_part[i & 3]);
            }
            return power;
        });
#pragma unroll
        for (int h = 0; h < 2; h++) {
            tile_sum[h] = part[2 * h] + part[2 * h + 1];
            if constexpr (Config::wants_entropy) tile_moment[h] = moment_part[2 * h] + moment_part[2 * h + 1];
        }
    }

    // z: as for row_statistics.
    template <class Store>
    __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&z)[count], int first_column, Store store) {
        float scale[2];
        transform_all(params, z, scale, first_column);
        Base::pick_target(params, z, scale, first_column);

        float tile_sum[2], tile_moment[2];
        bool wanted[2] = {false, false}, refresh = false, keeps = first_column < params.stash_columns;
        if (keeps) store_exponentials(z, scale, tile_sum, tile_moment, store);
        do {
            if (refresh) Base::template take_maximum<count>(z, scale, wanted);
            if (refresh || !keeps) Base::add_exponentials(z, scale, tile_sum, tile_moment);
            if (refresh) break;
#pragma unroll
            for (int h = 0; h < 2; h++) wanted[h] = quad_any(!(tile_sum[h] < safe_sum)) || offset[h] == -infinity;
            refresh = warp_any(wanted[0] || wanted[1]);
        } while (refresh);
#pragma unroll
        for (int h = 0; h < 2; h++) {
            sum[h] += tile_sum[h];
            if constexpr (Config::wants_entropy) moment[h] += tile_moment[h];
        }
    }

    __device__ __forceinline__ void store(const LinearLogpParams &params, int split) const {
        Base::store(params, split);
        if (params.phase != stash_keep || lane_index() % 4 != 0) return;
#pragma unroll
        for (int h = 0; h < 2; h++)
            if (is_row(params, row(h)) && offset[h] != params.offset[row(h)]) atomicExch(&params.overflow[row(h)], 1);
    }
};
#line 1 "templates/common/stash_units.cuh"
// The units of one launch of linear_logp_stash: of all row blocks, or of those with a row that overflowed.
// Config: those of schedule
template <class Config> struct StashUnits {
    const LinearLogpParams &params;
    Schedule<Config> schedule;
    bool has_any;
    __device__ __forceinline__ StashUnits(const LinearLogpParams &params)
        : params(params), schedule(params), has_any(params.phase != stash_again || (row_count<Config>(params) > 0 && params.block_overflow[0])) {}

    // Where only blocks that overflowed are run again, the others' units are passed over.
    __device__ __forceinline__ bool next(Unit &unit) {
        while (has_any && schedule.next(unit))
            if (params.phase != stash_again || params.block_overflow[unit.row_block + 1]) return true;
        return false;
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
#line 1 "templates/sm90a/linear_logp_stash.cuh"
// linear_logp forward on Hopper that keeps the terms of each row's sum, for the gradients: [rows, stash columns] of 2^(z2 - k).
// Config: threads, consumer_groups, producer_registers, consumer_registers, and those of tile_product, stash_units, stashed_statistics and
// tile_store
template <class Config>
__device__ __forceinline__ void linear_logp_stash_reduce(ProductShared<Config> &shared, const TensorMap &stash_map, const LinearLogpParams &params,
                                                         int rank, int group) {
    TileProduct<Config> product(shared.stages);
    StashUnits<Config> units(params);
    StashedStatistics<Config> statistics;
    float d[TileProduct<Config>::accumulators];
    Unit unit;
    while (units.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
        if (params.phase == stash_offsets) {
            statistics.first_row = row;
            product.multiply(d, group);
            statistics.find_offsets(params, d, unit.row_block);
            continue;
        }
        statistics.begin(params, row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            int column = tile * Config::block_vocab;
            product.multiply(d, group);
            statistics.absorb(params, d, column, [&](auto value) {
                TileStore<Config>::store_values(shared.out, stash_map, row, column, value);
            });
        }
        statistics.finish();
        statistics.store(params, unit.split);
    }
    TileStore<Config>::finish();
}

template <class Config>
__device__ __forceinline__ void linear_logp_stash_load(ProductShared<Config> &shared, const TensorMap &hidden_map, const TensorMap &weight_map,
                                                       const LinearLogpParams &params, int rank) {
    TileProduct<Config> product(shared.stages, TileProduct<Config>::box_rows(params.rows));
    StashUnits<Config> units(params);
    Unit unit;
    while (units.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows;
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++)
            product.load(hidden_map, weight_map, row, tile * Config::block_vocab, rank);
    }
}

template <class Config>
__device__ __forceinline__ void linear_logp_stash(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &stash_map,
                                                  const LinearLogpParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(ProductShared<Config> *)dynamic_shared;
    static_assert(sizeof(ProductShared<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared.stages);
    TileProduct<Config>::clear_hidden(shared.stages, params.rows);
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    wait_for_previous_kernel();
    allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch

    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0) linear_logp_stash_load<Config>(shared, hidden_map, weight_map, params, rank);
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        linear_logp_stash_reduce<Config>(shared, stash_map, params, rank, group);
    }
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(384, 1) __cluster_dims__(2, 1, 1)
flp_linear_logp_stash_bf16_d2048_bm128_bv256_s132_c2_p4_bias_f32_entropy_sm_90a(const __grid_constant__ TensorMap hidden_map, const __grid_constant__ TensorMap weight_map, const __grid_constant__ TensorMap stash_map, const __grid_constant__ LinearLogpParams params) {
    linear_logp_stash<Config>(hidden_map, weight_map, stash_map, params);
}
