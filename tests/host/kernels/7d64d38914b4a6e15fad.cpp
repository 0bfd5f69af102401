// fusedlogp linear_logp_combine.bm8.argmax.entropy.sm_90@host
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
    static constexpr bool wants_argmax = true;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
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
#line 1 "templates/any/tally.cuh"
// Two pairs of words that kernels add to and the host takes: a first word says which of them it is now. The host half, with the reason, is
// runtime/plan/tally.h. KEEP IN STEP: tallies.
// Config: none
__device__ __forceinline__ u64 *tally_now(u64 *tally) { return tally + 1 + 2 * (*(volatile u64 *)tally & 1); }

// Of targets out of range: how many there are, and the first one's row.
__device__ __forceinline__ void tally_bad_target(u64 *tally, i64 row) {
    u64 *now = tally_now(tally);
    atomicAdd(&now[0], 1ull);
    atomicMin(&now[1], (u64)row);
}
#line 1 "templates/common/moment.cuh"
// The entropy's moment sum x 2^x, x = z2 - k, when the offset k changes.
// Config: none

// Of terms whose offset rises by -change >= 0: sum (x + change) 2^(x + change). A change so large that the terms vanish must not overflow.
__device__ __forceinline__ float move_moment(float moment, float sum, float change) {
    return exp2_approximate(change) * fmaf(sum, fmaxf(change, -300.0f), moment);
}
#line 1 "templates/host/dependent_launch.cuh"
// The twin of sm90a/dependent_launch.cuh: launches run one behind another here, and the machine knows which a GPU may run side by side.
// Inlined without optimisation too: the machine tells the places of these calls apart.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
extern "C" void flp_host_allow_next_kernel();
__attribute__((always_inline)) inline void allow_next_kernel() { flp_host_allow_next_kernel(); }
__attribute__((always_inline)) inline void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
#line 1 "templates/any/linear_logp_combine.cuh"
// Merges the splits' statistics of each row into its log-probability: one warp a row.
//
// The order is fixed: lane l adds splits l, l + 32, ... in turn, then the lanes merge pairwise. It depends on the number of splits only.
// Config: threads, wants_argmax, wants_entropy, wants_logit_sum
struct MergedRow {
    float k, sum, moment;
};

// Loads come eight at a time: with few rows, the latency of one after the other would be most of the kernel.
template <class Config> __device__ __forceinline__ MergedRow merge_splits(const float2 *partial, const float *moment, int splits) {
    constexpr int batch = 8;
    MergedRow row = {-infinity, 0, 0};
    for (int first = 0; first < splits; first += 32 * batch) {
        float2 part[batch];
        float part_moment[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int at = first + 32 * i + lane_index();
            part[i] = at < splits ? partial[at] : make_float2(-infinity, 0);
            if constexpr (Config::wants_entropy) part_moment[i] = at < splits ? moment[at] : 0;
        }
        float k = row.k;
#pragma unroll
        for (int i = 0; i < batch; i++) k = fmaxf(k, part[i].x);
        for (int m = 16; m > 0; m /= 2) k = fmaxf(k, shuffle_xor(k, m));
        if constexpr (Config::wants_entropy) {
            if (row.k != -infinity) row.moment = move_moment(row.moment, row.sum, row.k - k);
#pragma unroll
            for (int i = 0; i < batch; i++)
                row.moment += part[i].x == -infinity ? part_moment[i] : move_moment(part_moment[i], part[i].y, part[i].x - k);
        }
        if (row.k != -infinity) row.sum *= exp2_approximate(row.k - k);
        row.k = k;
#pragma unroll
        for (int i = 0; i < batch; i++) // y without an offset is 0 or NaN
            row.sum += part[i].x == -infinity ? part[i].y : part[i].y * exp2_approximate(part[i].x - k);
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::wants_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    return row;
}

// Of a row whose target is ignored or bad.
__device__ __forceinline__ float logp_without_part(const LinearLogpCombineParams &params, i64 row, i64 target) {
    if (is_ignored(params, target)) return 0;
    tally_bad_target(params.target_errors, row);
    return not_a_number;
}

template <class Config> __device__ __forceinline__ void blank_row(const LinearLogpCombineParams &params, i64 row, i64 target) {
    params.logp[row] = logp_without_part(params, row, target);
    if (params.lse != nullptr) params.lse[row] = 0;
    if constexpr (Config::wants_entropy)
        if (params.entropy != nullptr) params.entropy[row] = 0;
    if constexpr (Config::wants_logit_sum) params.logit_sum[row] = 0;
}

// linear_logp_stash is run again where a row has terms too large for its offset. From its log-sum-exp, none is.
__device__ __forceinline__ void correct_offset(const LinearLogpCombineParams &params, i64 place, float lse2) {
    if (params.overflow == nullptr || !params.overflow[place]) return;
    params.offset[place] = rintf(lse2);
    atomicExch(&params.block_overflow[0], 1);
    atomicExch(&params.block_overflow[1 + place / params.block_rows], 1);
}

template <class Config> __device__ __forceinline__ void linear_logp_combine(const LinearLogpCombineParams &params) {
    i64 row = (i64)blockIdx.x * (Config::threads / 32) + warp_index();
    if (row >= params.rows) return;
    i64 target = load_target(params.target, params.target_bytes, row); // an input: it was there before the tile kernel
    bool is_known = target >= 0 && target < params.vocab, has_part = is_known && !is_ignored(params, target);
    wait_for_previous_kernel();
    allow_next_kernel();
    if (!has_part && params.blanks_others) {
        if (lane_index() == 0) blank_row<Config>(params, row, target);
        return;
    }
    i64 place = row;
    if (params.place) {
        place = params.place[row] - params.first_place;
        if (place < 0 || place >= params.places) return;
    }
    float target_logit = is_known ? params.target_logit[place] : 0;
    const float *moment = Config::wants_entropy ? params.moment + place * params.splits : nullptr;
    MergedRow merged = merge_splits<Config>((const float2 *)params.partial + place * params.splits, moment, params.splits);
    float log2_sum = log2f(merged.sum);

    if constexpr (Config::wants_argmax) {
        auto best = (const float2 *)params.best + place * params.splits;
        float largest = -infinity;
        int index = 0x7fffffff;
        auto merge = [&](float other, int other_index) {
            if (other > largest || (other == largest && other_index < index)) {
                largest = other;
                index = other_index;
            }
        };
        for (int i = lane_index(); i < params.splits; i += 32) merge(best[i].x, __float_as_int(best[i].y));
        for (int m = 16; m > 0; m /= 2) {
            float other = shuffle_xor(largest, m);
            int other_index = shuffle_xor(index, m);
            merge(other, other_index);
        }
        if (lane_index() == 0 && params.argmax != nullptr) params.argmax[row] = index;
    }

    float logit_sum = 0;
    if constexpr (Config::wants_logit_sum) {
        for (int i = lane_index(); i < params.splits; i += 32) logit_sum += params.logit_sums[place * params.splits + i];
        for (int m = 16; m > 0; m /= 2) logit_sum += shuffle_xor(logit_sum, m);
    }

    if (lane_index() != 0) return;
    correct_offset(params, place, merged.k + log2_sum);
    if constexpr (Config::wants_logit_sum) params.logit_sum[row] = logit_sum * ln_2;
    if (params.lse != nullptr) params.lse[row] = (merged.k + log2_sum) * ln_2;
    if constexpr (Config::wants_entropy) {
        float entropy = (log2_sum - merged.moment / merged.sum) * ln_2;
        if (entropy < 0) entropy = 0; // rounding only; NaN stays
        if (params.entropy != nullptr) params.entropy[row] = entropy;
    }
    float logp;
    if (has_part) {
        // The integer goes first: a likely target's logit is close to it, and the difference keeps its small bits.
        logp = ((target_logit - merged.k) - log2_sum) * ln_2;
        if (logp > 0) logp = 0; // rounding only; NaN stays
    } else {
        logp = logp_without_part(params, row, target);
    }
    params.logp[row] = logp;
}
#line 1 "entry"
extern "C" __attribute__((no_sanitize("thread"))) void flp_linear_logp_combine_bm8_argmax_entropy_sm_90_host(void **parameters) {
    linear_logp_combine<Config>(*(const LinearLogpCombineParams *)parameters[0]);
}
extern "C" const unsigned flp_linear_logp_combine_bm8_argmax_entropy_sm_90_host_parameter_bytes[] = {sizeof(LinearLogpCombineParams), 0};
