// fusedlogp linear_logp.bf16.d64.bm128.bv256.s132.c1.p4.bias_f32.softcap.argmax.entropy.sm_90a@host
// Emitted by fusedlogp-gen; the templates below are the source.
#line 1 "templates/host/cuda.cuh"
// What CUDA C++ itself gives a kernel, in plain C++ for the host machine: qualifiers, built-in variables, vectors, intrinsics.
//
// The machine's functions are declared where their twins use them: here, and in the files beside this one. They are the program's that
// loads the kernel. KEEP IN STEP: the host machine's functions (tests/host/machine/).
// Config: none
#define __host__
#define __device__
#define __forceinline__ inline
#define __shared__
#define __align__(bytes)
// `extern __shared__ u8 dynamic_shared[]` becomes the declaration of a function that returns the block's array, and each use a call of it.
#define dynamic_shared (*flp_host_dynamic_shared())
extern "C" unsigned char (*flp_host_dynamic_shared())[];

struct dim3 { unsigned x, y, z; };
extern "C" dim3 flp_host_thread_index() __attribute__((const));
extern "C" dim3 flp_host_block_index() __attribute__((const));
extern "C" dim3 flp_host_block_dimensions() __attribute__((const));
extern "C" dim3 flp_host_grid_dimensions() __attribute__((const));
#define threadIdx flp_host_thread_index()
#define blockIdx flp_host_block_index()
#define blockDim flp_host_block_dimensions()
#define gridDim flp_host_grid_dimensions()

struct alignas(8) float2 { float x, y; };
struct alignas(16) float4 { float x, y, z, w; };
struct alignas(8) uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
// Inlined without optimisation too: a store of what a call returns is one that the compiler does not report to the machine.
__attribute__((always_inline)) inline float2 make_float2(float x, float y) { return {x, y}; }
__attribute__((always_inline)) inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
__attribute__((always_inline)) inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
__attribute__((always_inline)) inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

template <class T> constexpr T min(T a, T b) { return b < a ? b : a; }
template <class T> constexpr T max(T a, T b) { return a < b ? b : a; }
inline float fmaf(float x, float y, float z) { return __builtin_fmaf(x, y, z); }
inline float fmaxf(float x, float y) { return __builtin_fmaxf(x, y); }
inline float fminf(float x, float y) { return __builtin_fminf(x, y); }
inline float fabsf(float x) { return __builtin_fabsf(x); }
inline float rintf(float x) { return __builtin_rintf(x); }
inline float log2f(float x) { return __builtin_log2f(x); }
inline float expf(float x) { return __builtin_expf(x); }
inline float logf(float x) { return __builtin_logf(x); }
inline float exp2f(float x) { return __builtin_exp2f(x); }
inline float copysignf(float x, float y) { return __builtin_copysignf(x, y); }
inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline unsigned __float_as_uint(float x) { return __builtin_bit_cast(unsigned, x); }
inline int __float_as_int(float x) { return __builtin_bit_cast(int, x); }
inline float __uint_as_float(unsigned x) { return __builtin_bit_cast(float, x); }
inline float __int_as_float(int x) { return __builtin_bit_cast(float, x); }

extern "C" unsigned flp_host_shared_address(const void *pointer);
inline unsigned long long __cvta_generic_to_shared(const void *pointer) { return flp_host_shared_address(pointer); }
extern "C" void flp_host_barrier(int number, int threads);
inline void __syncthreads() { flp_host_barrier(0, 0); }
extern "C" void flp_host_warp_barrier(unsigned mask);
inline void __syncwarp(unsigned mask = 0xffffffffu) { flp_host_warp_barrier(mask); }

extern "C" unsigned flp_host_shuffle(unsigned mask, unsigned value, int source);
// Values of 4 or 8 bytes.
template <class T> inline T shuffle_from(unsigned mask, T value, int source) {
    static_assert(sizeof(T) % 4 == 0, "whole registers");
    struct Words { unsigned word[sizeof(T) / 4]; } words = __builtin_bit_cast(Words, value);
    for (unsigned &word : words.word) word = flp_host_shuffle(mask, word, source);
    return __builtin_bit_cast(T, words);
}
template <class T> inline T __shfl_sync(unsigned mask, T value, int lane) { return shuffle_from(mask, value, lane & 31); }
template <class T> inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask) {
    return shuffle_from(mask, value, (threadIdx.x ^ (unsigned)lane_mask) & 31);
}
// A lane whose source lies outside the warp keeps its own value.
template <class T> inline T __shfl_up_sync(unsigned mask, T value, unsigned delta) {
    unsigned lane = threadIdx.x & 31;
    return shuffle_from(mask, value, lane >= delta ? lane - delta : lane);
}
template <class T> inline T __shfl_down_sync(unsigned mask, T value, unsigned delta) {
    unsigned lane = threadIdx.x & 31;
    return shuffle_from(mask, value, lane + delta < 32 ? lane + delta : lane);
}
extern "C" unsigned flp_host_ballot(unsigned mask, bool condition);
inline unsigned __ballot_sync(unsigned mask, int condition) { return flp_host_ballot(mask, condition != 0); }
inline int __any_sync(unsigned mask, int condition) { return flp_host_ballot(mask, condition != 0) != 0; }
inline int __all_sync(unsigned mask, int condition) { return flp_host_ballot(mask, condition == 0) == 0; }

extern "C" void flp_host_atomic(const void *at, unsigned long bytes);
inline void __threadfence() {}
// A thread gives way only in the machine's functions, so that what stands behind the call is one step.
template <class T, class Change> __attribute__((no_sanitize("thread"))) inline T change_atomically(T *at, Change change) {
    flp_host_atomic(at, sizeof(T));
    T old = *at;
    *at = change(old);
    return old;
}
template <class T> inline T atomicAdd(T *at, T value) { return change_atomically(at, [=](T old) { return old + value; }); }
template <class T> inline T atomicMin(T *at, T value) { return change_atomically(at, [=](T old) { return min(old, value); }); }
template <class T> inline T atomicMax(T *at, T value) { return change_atomically(at, [=](T old) { return max(old, value); }); }
template <class T> inline T atomicOr(T *at, T value) { return change_atomically(at, [=](T old) { return old | value; }); }
template <class T> inline T atomicExch(T *at, T value) { return change_atomically(at, [=](T) { return value; }); }
template <class T> inline T atomicCAS(T *at, T expected, T value) {
    return change_atomically(at, [=](T old) { return old == expected ? value : old; });
}
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
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = false;
    static constexpr int hidden_size = 64;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = true;
    static constexpr float correction = 1.0f + 64 * 0x1p-30f;
    static constexpr bool wants_argmax = true;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    static constexpr int consumer_groups = 2;
    static constexpr int steps_together = 1;
    static constexpr bool weight_is_read_once = false;
    static constexpr bool splits_operands = false;
    static constexpr int producer_registers = 56;
    static constexpr int splitter_registers = 0;
    static constexpr int consumer_registers = 224;
    static constexpr int weight_box_columns = 64;
    static constexpr int weight_box_rows = 256;
    static constexpr int fragment_columns = 256;
    static constexpr int threads = 384;
    static constexpr int shared_bytes = 197632;
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
#line 1 "templates/host/simt.cuh"
// Threads, votes, shuffles and single-instruction arithmetic: the twin of any/simt.cuh.
// Config: none
__device__ __forceinline__ int lane_index() { return threadIdx.x % 32; }
__device__ __forceinline__ int warp_index() { return __shfl_sync(0xffffffffu, threadIdx.x / 32, 0); }
__device__ __forceinline__ int uniform(int x) { return __shfl_sync(0xffffffffu, x, 0); }
__device__ __forceinline__ int thread_index_reread() { return threadIdx.x; }
__device__ __forceinline__ int lane_index_reread() { return threadIdx.x % 32; }
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
    float y = exp2f(x);
    return y < 0x1p-126f ? 0 : y;
}

__device__ __forceinline__ float reciprocal_approximate(float x) {
    return 1 / x;
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
    u32 exponent = x.bits >> 10 & 31, fraction = x.bits & 1023;
    float size = exponent == 31  ? __uint_as_float(0x7f800000u | fraction << 13)
                 : exponent == 0 ? (float)fraction * 0x1p-24f
                                 : __uint_as_float((exponent + 112) << 23 | fraction << 13);
    return x.bits >> 15 ? -size : size;
}

__device__ __forceinline__ void keep_order() {}
__device__ __forceinline__ void settle(float &) {}
__device__ __forceinline__ void forget(u32 &) {}
#line 1 "templates/host/mbarrier.cuh"
// Shared-memory barriers that also count bytes: the twin of sm90a/mbarrier.cuh and sm80/mbarrier.cuh.
// Config: none
extern "C" void flp_host_mbarrier_init(u32 barrier, int arrivals);
extern "C" void flp_host_mbarrier_init_fence();
extern "C" void flp_host_mbarrier_arrive(u32 barrier, int announced_bytes);
extern "C" void flp_host_mbarrier_arrive_remote(u32 barrier, int block);
extern "C" void flp_host_mbarrier_wait(u32 barrier, int parity);
extern "C" void flp_host_proxy_fence();
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

__device__ __forceinline__ void mbarrier_init(u32 barrier, int arrivals) { flp_host_mbarrier_init(barrier, arrivals); }
__device__ __forceinline__ void mbarrier_init_fence() { flp_host_mbarrier_init_fence(); }
__device__ __forceinline__ void mbarrier_arrive_expect(u32 barrier, int bytes) { flp_host_mbarrier_arrive(barrier, bytes); }
__device__ __forceinline__ void mbarrier_arrive_remote(u32 barrier, int block) { flp_host_mbarrier_arrive_remote(barrier, block); }
__device__ __forceinline__ void mbarrier_arrive(u32 barrier) { flp_host_mbarrier_arrive(barrier, 0); }
__device__ __forceinline__ void mbarrier_wait(u32 barrier, int parity) { flp_host_mbarrier_wait(barrier, parity); }
__device__ __forceinline__ void async_proxy_fence() { flp_host_proxy_fence(); }
#line 1 "templates/host/tma.cuh"
// Tensor copies by the copy engine: the twin of sm90a/tma.cuh.
// Config: none
extern "C" void flp_host_tma_load(u32 to, const void *map, int column, int row, u32 barrier, u32 blocks);
__device__ __forceinline__ void tma_load(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    flp_host_tma_load(to, map, column, row, barrier, 0);
}
__device__ __forceinline__ void tma_load_once(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    flp_host_tma_load(to, map, column, row, barrier, 0);
}
__device__ __forceinline__ void tma_load_multicast(u32 to, const TensorMap *map, int column, int row, u32 barrier, u16 blocks) {
    flp_host_tma_load(to, map, column, row, barrier, blocks);
}
#line 1 "templates/host/cluster.cuh"
// Thread block clusters and warpgroup register budgets: the twin of sm90a/cluster.cuh.
// Config: none
extern "C" int flp_host_cluster_rank();
extern "C" void flp_host_cluster_barrier();
extern "C" void flp_host_set_registers(int count, bool claims);
__device__ __forceinline__ int cluster_rank() { return flp_host_cluster_rank(); }
__device__ __forceinline__ void cluster_barrier() { flp_host_cluster_barrier(); }
template <int count> __device__ __forceinline__ void registers_release() { flp_host_set_registers(count, false); }
template <int count> __device__ __forceinline__ void registers_claim() { flp_host_set_registers(count, true); }
#line 1 "templates/host/dependent_launch.cuh"
// The twin of sm90a/dependent_launch.cuh: launches run one behind another here, and the machine knows which a GPU may run side by side.
// Inlined without optimisation too: the machine tells the places of these calls apart.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
extern "C" void flp_host_allow_next_kernel();
__attribute__((always_inline)) inline void allow_next_kernel() { flp_host_allow_next_kernel(); }
__attribute__((always_inline)) inline void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
#line 1 "templates/host/wgmma.cuh"
// Warpgroup matrix products from shared memory: the twin of sm90a/wgmma.cuh. The product itself is emitted for the shape in use.
// Config: none
extern "C" void flp_host_wgmma(float *d, int n, int k, int type, u64 a, u64 b, bool accumulates, bool transposed_a, bool transposed_b);
extern "C" void flp_host_wgmma_fence();
extern "C" void flp_host_wgmma_commit();
extern "C" void flp_host_wgmma_wait(int pending);
__device__ __forceinline__ u64 wgmma_descriptor(u32 address, int leading_bytes, int stride_bytes) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading_bytes >> 4) << 16 | (u64)(stride_bytes >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void wgmma_fence() { flp_host_wgmma_fence(); }
__device__ __forceinline__ void wgmma_commit() { flp_host_wgmma_commit(); }
template <int pending> __device__ __forceinline__ void wgmma_wait() { flp_host_wgmma_wait(pending); }
__device__ __forceinline__ void wgmma_stage(float (&d)[128], u64 a, u64 b, int accumulate) {
    for (int i = 0; i < 4; i++)
        flp_host_wgmma(d, 256, 16, 0, a + i * 2, b + i * 2, accumulate || i > 0, false, false);
}
__device__ __forceinline__ void wgmma_finish(float (&)[128]) { flp_host_wgmma_wait(0); }
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
#line 1 "templates/sm90a/linear_logp.cuh"
// linear_logp forward on Hopper: persistent clusters, one producer warpgroup, consumer warpgroups of 64 rows each, and for
// fp32 a splitter warpgroup between them.
// Config: threads, consumer_groups, producer_registers, splitter_registers, consumer_registers, and those of tile_product, schedule and
// row_statistics
template <class Config>
__device__ __forceinline__ void linear_logp_load(Stages<Config> &shared, const TensorMap &hidden_map, const TensorMap &weight_map,
                                                 Schedule<Config> schedule, int rank) {
    TileProduct<Config> product(shared, TileProduct<Config>::box_rows(schedule.params.rows));
    Unit unit;
    while (schedule.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows;
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++)
            product.load(hidden_map, weight_map, row, tile * Config::block_vocab, rank);
    }
}

template <class Config>
__device__ __forceinline__ void linear_logp_reduce(Stages<Config> &shared, const LinearLogpParams &params, Schedule<Config> schedule,
                                                   int rank, int group) {
    TileProduct<Config> product(shared);
    RowStatistics<Config> statistics;
    float d[TileProduct<Config>::accumulators];
    Unit unit;
    while (schedule.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
        bool has_rows = Config::consumer_groups > 1 || row < row_count<Config>(params); // else the warp only takes its part in the products
        statistics.begin(params, row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, group);
            if (has_rows) statistics.absorb(params, d, tile * Config::block_vocab, tile == unit.first_tile);
        }
        statistics.finish();
        statistics.store(params, unit.split);
    }
}

// The splitter's role: split_operands.cuh, emitted where Config::splits_operands.
template <class Config> __device__ __forceinline__ void linear_logp_split(Stages<Config> &shared, Schedule<Config> schedule);

template <class Config>
__device__ __forceinline__ void linear_logp(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(Stages<Config> *)dynamic_shared;
    static_assert(sizeof(Stages<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared);
    TileProduct<Config>::clear_hidden(shared, params.rows);
    allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();

    Schedule<Config> schedule(params);
    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0) linear_logp_load<Config>(shared, hidden_map, weight_map, schedule, rank);
    } else if (group > Config::consumer_groups) {
        if constexpr (Config::splits_operands) {
            if constexpr (Config::splitter_registers > 0) registers_release<Config::splitter_registers>();
            linear_logp_split<Config>(shared, schedule);
        }
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        linear_logp_reduce<Config>(shared, params, schedule, rank, group);
    }
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
#line 1 "entry"
extern "C" __attribute__((no_sanitize("thread"))) void flp_linear_logp_bf16_d64_bm128_bv256_s132_c1_p4_bias_f32_softcap_argmax_entropy_sm_90a_host(void **parameters) {
    linear_logp<Config>(*(const TensorMap *)parameters[0], *(const TensorMap *)parameters[1], *(const LinearLogpParams *)parameters[2]);
}
extern "C" const unsigned flp_linear_logp_bf16_d64_bm128_bv256_s132_c1_p4_bias_f32_softcap_argmax_entropy_sm_90a_host_parameter_bytes[] = {sizeof(TensorMap), sizeof(TensorMap), sizeof(LinearLogpParams), 0};
