// fusedlogp linear_logp.f32.d64.bm128.bv128.s108.c1.p4.bias_f32.softcap.argmax.entropy.sm_90@host
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
    using element = float;
    static constexpr int block_rows = 128;
    static constexpr int block_vocab = 128;
    static constexpr int block_hidden = 16;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = false;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int hidden_size = 64;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = true;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = true;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 70656;
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
#line 1 "templates/host/cp_async.cuh"
// Asynchronous copies from global to shared memory: the twin of sm80/cp_async.cuh.
// Config: none
extern "C" void flp_host_cp_async(u32 to, const void *from, int bytes, int valid);
extern "C" void flp_host_cp_async_commit();
extern "C" void flp_host_cp_async_wait(int pending);
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

template <int bytes> __device__ __forceinline__ void cp_async(u32 to, const void *from, int valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    flp_host_cp_async(to, from, bytes, valid);
}
__device__ __forceinline__ void cp_async_commit() { flp_host_cp_async_commit(); }
template <int pending> __device__ __forceinline__ void cp_async_wait() { flp_host_cp_async_wait(pending); }
#line 1 "templates/host/ldmatrix.cuh"
// Shared memory to matrix fragments: the twin of sm80/ldmatrix.cuh.
// Config: none
extern "C" void flp_host_ldmatrix(u32 *d, u32 row_address, bool transposed);
extern "C" void flp_host_load_shared(u32 address, void *to, int bytes);
extern "C" void flp_host_store_shared(u32 address, const void *from, int bytes);
__device__ __forceinline__ void ldmatrix(u32 (&d)[4], u32 row_address) { flp_host_ldmatrix(d, row_address, false); }
__device__ __forceinline__ void ldmatrix_transposed(u32 (&d)[4], u32 row_address) { flp_host_ldmatrix(d, row_address, true); }
__device__ __forceinline__ u32 load_shared_word(u32 address) {
    u32 word;
    flp_host_load_shared(address, &word, 4);
    return word;
}
__device__ __forceinline__ void store_shared_vector(u32 address, const u32 (&words)[4]) { flp_host_store_shared(address, words, 16); }
#line 1 "templates/host/mma.cuh"
// Warp matrix products: the twin of sm80/mma.cuh. Types as the machine counts them: 0 bf16, 1 f16, 2 tf32.
// Config: none
extern "C" void flp_host_mma(int type, float *d, const u32 *a, u32 b0, u32 b1);
__device__ __forceinline__ void mma(bf16, float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(0, d, a, b0, b1); }
__device__ __forceinline__ void mma(f16, float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(1, d, a, b0, b1); }
__device__ __forceinline__ void mma_tf32(float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(2, d, a, b0, b1); }
#line 1 "templates/host/tf32.cuh"
// fp32 as two tf32 numbers: the twin of sm80/tf32.cuh.
// Config: none

// cvt.rna: to the nearest of 10 fraction bits, ties away from zero; infinities and NaN stay.
__device__ __forceinline__ u32 round_to_tf32(float x) {
    u32 bits = __float_as_uint(x);
    return (bits & 0x7f800000u) == 0x7f800000u ? bits : (bits + 0x1000u) & 0xffffe000u;
}
__device__ __forceinline__ void split_tf32(u32 x, u32 &high, u32 &low) {
    float value = __uint_as_float(x);
    high = round_to_tf32(value);
    low = round_to_tf32(value - __uint_as_float(high));
}
#line 1 "templates/sm80/shared_tile.cuh"
// A stage's two operand tiles in shared memory, and how global memory gets there.
//
// A line is one row of the operand as it lies in memory, cut into 16-byte chunks; the chunk's place is its index xor a
// function of the line, so that the eight lines an ldmatrix reads (or the four steps of K that fp32 fragments read) lie in different banks.
// Config: element, threads, block_rows, block_vocab, block_hidden, hidden_is_transposed, weight_is_hidden_vocab, vector_bytes
template <class Element, int line_elements, int line_count> struct SharedTile {
    static constexpr int element_bytes = sizeof(Element);
    static constexpr int line_bytes = line_elements * element_bytes, chunks = line_bytes / 16;
    static constexpr int bytes = line_bytes * line_count;
    static_assert(line_bytes >= 64 && (chunks & (chunks - 1)) == 0, "lines of 64, 128, ... bytes");

    __device__ __forceinline__ static int place(int line, int chunk) {
        int mix = chunks == 4 ? (line >> 1) & 3 : element_bytes == 4 ? (line & 3) * 2 : line & 7;
        return line * line_bytes + ((chunk ^ mix) << 4);
    }
    // As place(base + line, chunk) for a base that is a multiple of 8, over which the mix repeats: one address serves many bases.
    __device__ __forceinline__ static int place(int base, int line, int chunk) { return base * line_bytes + place(line, chunk); }

    // from: the tile's corner; lines, columns: how much of the operand lies from there on; the rest becomes zero.
    template <int threads, int vector_bytes>
    __device__ __forceinline__ static void load(u32 to, const Element *from, i64 stride, i64 lines, i64 columns) {
        constexpr int total = chunks * line_count;
        static_assert(total % threads == 0, "every thread copies as many chunks");
        int thread = thread_index_reread();
#pragma unroll
        for (int i = 0; i < total / threads; i++) {
            int index = i * threads + thread;
            int line = index / chunks, chunk = index % chunks;
            i64 left = line < lines ? (columns - chunk * (16 / element_bytes)) * element_bytes : 0;
            int valid = left <= 0 ? 0 : left < 16 ? (int)left : 16;
            // An address is formed, and read, only where something is valid.
            const u8 *source = (const u8 *)(valid > 0 ? from + line * stride + chunk * (16 / element_bytes) : from);
            load_chunk<vector_bytes>(to + place(line, chunk), source, valid);
        }
    }

    template <int vector_bytes> __device__ __forceinline__ static void load_chunk(u32 to, const u8 *source, int valid) {
        if constexpr (vector_bytes >= 4) {
#pragma unroll
            for (int b = 0; b < 16; b += vector_bytes) {
                int part = min(max(valid - b, 0), vector_bytes);
                cp_async<vector_bytes>(to + b, part > 0 ? source + b : source, part);
            }
        } else {
            // Rows at odd multiples of two bytes: no asynchronous copy is that narrow.
            u32 words[4];
#pragma unroll
            for (int w = 0; w < 4; w++) {
                u32 low = 4 * w < valid ? *(const u16 *)(source + 4 * w) : 0;
                u32 high = 4 * w + 2 < valid ? *(const u16 *)(source + 4 * w + 2) : 0;
                words[w] = low | high << 16;
            }
            store_shared_vector(to, words);
        }
    }
};

// The two matrices of a product: hidden is the left one, weight the right one, inner the size that is summed over. Nothing is read
// outside them: there the tiles are zero.
template <class Element> struct OperandMatrices {
    const Element *hidden, *weight;
    i64 hidden_stride, weight_stride;
    i64 rows;
    int columns, inner;
};

template <class Config> struct Operands {
    using element = typename Config::element;
    using Matrices = OperandMatrices<element>;
    static constexpr bool swaps_hidden = Config::hidden_is_transposed, swaps_weight = Config::weight_is_hidden_vocab;
    using Hidden = SharedTile<element, swaps_hidden ? Config::block_rows : Config::block_hidden,
                              swaps_hidden ? Config::block_hidden : Config::block_rows>;
    using Weight = SharedTile<element, swaps_weight ? Config::block_vocab : Config::block_hidden,
                              swaps_weight ? Config::block_hidden : Config::block_vocab>;
    static constexpr int stage_bytes = Hidden::bytes + Weight::bytes;
    static constexpr int chunks = Config::block_hidden * (int)sizeof(element) / 16; // of the inner size

    // Lines run along the inner size, or, swapped, across it. outer: the row or column of the tile's corner, of outer_size.
    template <class Tile, bool swaps>
    __device__ __forceinline__ static void load_tile(u32 to, const element *from, i64 stride, i64 outer, i64 outer_size, int k, int inner) {
        if constexpr (swaps)
            Tile::template load<Config::threads, Config::vector_bytes>(to, from + k * stride + outer, stride, inner - k, outer_size - outer);
        else
            Tile::template load<Config::threads, Config::vector_bytes>(to, from + outer * stride + k, stride, outer_size - outer, inner - k);
    }

    __device__ __forceinline__ static void load(u32 stage, const Matrices &of, int row, int column, int k) {
        load_tile<Hidden, swaps_hidden>(stage, of.hidden, of.hidden_stride, row, of.rows, k, of.inner);
        load_tile<Weight, swaps_weight>(stage + Hidden::bytes, of.weight, of.weight_stride, column, of.columns, k, of.inner);
    }
};
#line 1 "templates/sm80/tensor_product.cuh"
// One stage's product on the tensor cores, from shared tiles to the warp's accumulators.
// Config: element, warp_rows, warp_columns, and those of shared_tile
template <class Config> struct StageProduct {
    using element = typename Config::element;
    using Hidden = typename Operands<Config>::Hidden;
    using Weight = typename Operands<Config>::Weight;
    static constexpr int row_blocks = Config::warp_rows / 16, column_pairs = Config::warp_columns / 16;
    static constexpr int step_chunks = 2; // 32 bytes of K: 16 elements of 16 bits, 8 of 32
    static constexpr bool is_f32 = sizeof(element) == 4;

    // d: [row_blocks][4 x warp_columns / 8]; row, column: the warp's corner in the tile.
    template <int count>
    __device__ __forceinline__ static void multiply(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        if constexpr (is_f32) multiply_split(d, stage, row, column);
        else multiply_plain(d, stage, row, column);
    }

    template <int count>
    __device__ __forceinline__ static void multiply_plain(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        int lane = lane_index_reread();
#pragma unroll 1 // two steps' fragments at once would not fit beside the accumulators
        for (int chunk = 0; chunk < Operands<Config>::chunks; chunk += step_chunks) {
            u32 a[row_blocks][4];
#pragma unroll
            for (int i = 0; i < row_blocks; i++) load_hidden(a[i], stage, lane, row + 16 * i, chunk);
#pragma unroll
            for (int j = 0; j < column_pairs; j++) {
                u32 b[4]; // columns 0-7: first and second half of K, columns 8-15 likewise
                load_weight(b, stage + Hidden::bytes, lane, column + 16 * j, chunk);
#pragma unroll
                for (int i = 0; i < row_blocks; i++) {
                    mma(element(), &d[i][8 * j], a[i], b[0], b[1]);
                    mma(element(), &d[i][8 * j + 4], a[i], b[2], b[3]);
                }
            }
        }
    }

    // The tensor cores truncate what they accumulate. That would cost fp32 its accuracy over a long D, so only a stage's products are summed
    // there, small ones first (low x low is below fp32's last bit), and the stages by ordinary additions.
    template <int count>
    __device__ __forceinline__ static void multiply_split(float (&d)[row_blocks][count], u32 stage, int row, int column) {
        constexpr int steps = Operands<Config>::chunks / step_chunks;
        int lane = lane_index_reread();
        u32 a[steps][row_blocks][4], a_low[steps][row_blocks][4];
#pragma unroll
        for (int s = 0; s < steps; s++)
#pragma unroll
            for (int i = 0; i < row_blocks; i++) {
                load_hidden(a[s][i], stage, lane, row + 16 * i, s * step_chunks);
                split(a[s][i], a_low[s][i]);
            }
#pragma unroll
        for (int j = 0; j < column_pairs; j++) {
            float sum[row_blocks][8] = {};
            u32 b[steps][4], b_low[steps][4];
#pragma unroll
            for (int s = 0; s < steps; s++) {
                load_weight(b[s], stage + Hidden::bytes, lane, column + 16 * j, s * step_chunks);
                split(b[s], b_low[s]);
            }
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a_low[s], b[s]);
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a[s], b_low[s]);
#pragma unroll
            for (int s = 0; s < steps; s++) multiply_pair(sum, a[s], b[s]);
#pragma unroll
            for (int i = 0; i < row_blocks; i++)
#pragma unroll
                for (int e = 0; e < 8; e++) d[i][8 * j + e] += sum[i][e];
        }
    }

    __device__ __forceinline__ static void multiply_pair(float (&sum)[row_blocks][8], const u32 (&a)[row_blocks][4], const u32 (&b)[4]) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) {
            mma_tf32(&sum[i][0], a[i], b[0], b[1]);
            mma_tf32(&sum[i][4], a[i], b[2], b[3]);
        }
    }

    // chunk: of the inner size.
    __device__ __forceinline__ static void load_hidden(u32 (&a)[4], u32 tile, int lane, int row, int chunk) {
        if constexpr (!Config::hidden_is_transposed) {
            ldmatrix(a, tile + Hidden::place(row, lane % 16, chunk + lane / 16));
        } else if constexpr (!is_f32) {
            ldmatrix_transposed(a, tile + Hidden::place(chunk * 8, lane % 8 + (lane / 16) * 8, row / 8 + (lane / 8) % 2));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) a[i] = load_across<Hidden>(tile, lane, row + (i & 1) * 8, chunk, i >> 1);
        }
    }

    // fp32 in a tile whose lines are steps of the inner size: this lane's row (or column), and its step of those four in half `half`.
    template <class Tile> __device__ __forceinline__ static u32 load_across(u32 tile, int lane, int outer, int chunk, int half) {
        int n = outer + lane / 4;
        return load_shared_word(tile + Tile::place(chunk * 4, lane % 4 + half * 4, n / 4) + (n % 4) * 4);
    }

    __device__ __forceinline__ static void split(u32 (&x)[4], u32 (&low)[4]) {
#pragma unroll
        for (int i = 0; i < 4; i++) split_tf32(x[i], x[i], low[i]);
    }

    __device__ __forceinline__ static void load_weight(u32 (&b)[4], u32 tile, int lane, int column, int chunk) {
        if constexpr (!Config::weight_is_hidden_vocab) {
            ldmatrix(b, tile + Weight::place(column, lane % 8 + (lane / 16) * 8, chunk + (lane / 8) % 2));
        } else if constexpr (!is_f32) {
            ldmatrix_transposed(b, tile + Weight::place(chunk * 8, lane % 16, column / 8 + lane / 16));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) b[i] = load_across<Weight>(tile, lane, column + (i >> 1) * 8, chunk, i & 1);
        }
    }
};
#line 1 "templates/sm80/tile_product.cuh"
// The portable mainloop: cp.async streams hidden and weight tiles through a ring of shared-memory stages, warps of warp_rows x
// warp_columns multiply them.
//
// A feed runs ahead of the products over all tiles of the block, so that the pipeline never drains before the last one. It takes the tiles
// from a walk: at_end(), row() and column() of the tile's corner, and next().
// Config: threads, stages, block_hidden, warps_across, and those of shared_tile and the stage product
template <class Config> struct alignas(128) Stages {
    u8 stage[Config::stages][Operands<Config>::stage_bytes];
};

// Position in the stream of stages. It lives in registers through the products, so it holds as little as it can.
template <class Config, class Walk> struct Feed {
    Walk walk;
    int step = 0;
    __device__ __forceinline__ Feed(const Walk &walk) : walk(walk) {}

    __device__ __forceinline__ void load(u32 stage, const OperandMatrices<typename Config::element> &of, int steps) {
        if (!walk.at_end()) {
            Operands<Config>::load(stage, of, walk.row(), walk.column(), step * Config::block_hidden);
            if (++step == steps) {
                step = 0;
                walk.next();
            }
        }
        cp_async_commit(); // an empty group at the end keeps the count of groups in step
    }
};

template <class Config> struct TileProduct {
    using Matrices = OperandMatrices<typename Config::element>;
    static constexpr int row_blocks = Config::warp_rows / 16, accumulators = Config::warp_columns / 2;
    Stages<Config> &shared;
    int stage = 0;
    int row, column; // the warp's corner in the tile

    __device__ __forceinline__ TileProduct(Stages<Config> &shared)
        : shared(shared), row(warp_index() / Config::warps_across * Config::warp_rows),
          column(warp_index() % Config::warps_across * Config::warp_columns) {}

    template <class Walk> __device__ __forceinline__ void start(Feed<Config, Walk> &feed, const Matrices &of, int steps) {
        for (int s = 0; s < Config::stages - 1; s++) feed.load(shared_address(shared.stage[s]), of, steps);
    }

    // The warp's part of the next tile, 16 rows each.
    template <class Walk>
    __device__ __forceinline__ void multiply(float (&d)[row_blocks][accumulators], Feed<Config, Walk> &feed, const Matrices &of, int steps) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++)
#pragma unroll
            for (int j = 0; j < accumulators; j++) d[i][j] = 0;
        for (int step = 0; step < steps; step++) {
            cp_async_wait<Config::stages - 2>();
            block_barrier(); // the stage has arrived for all, and all have left the one that is filled next
            feed.load(shared_address(shared.stage[stage == 0 ? Config::stages - 1 : stage - 1]), of, steps);
            StageProduct<Config>::multiply(d, shared_address(shared.stage[stage]), row, column);
            stage = stage + 1 == Config::stages ? 0 : stage + 1;
        }
    }
};
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
#line 1 "templates/sm80/warp_statistics.cuh"
// What the portable forwards share around row_statistics: the tiles of a block's units, and the rows that several warps have between them.
// Config: block_rows, block_vocab, warp_rows, warps_across, and those of tile_product and row_statistics
template <class Config> struct SharedStorage {
    Stages<Config> stages;
    float merge[Config::warps_across][Config::block_rows][RowStatistics<Config>::merge_floats]; // offset, sum, best, its index, moment
};

// The tiles of the block's units, one after the other. Units: a Schedule, or what passes some of its units over.
template <class Config, class Units> struct UnitTiles {
    Units units;
    int row_block, tile, end; // end: behind the unit's last tile; 0 behind the last unit

    __device__ __forceinline__ UnitTiles(const Units &from) : units(from) { next_unit(); }
    __device__ __forceinline__ bool at_end() const { return end == 0; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return tile * Config::block_vocab; }
    __device__ __forceinline__ void next() {
        if (++tile == end) next_unit();
    }

    __device__ __forceinline__ void next_unit() {
        Unit unit;
        bool more = units.next(unit);
        row_block = unit.row_block;
        tile = unit.first_tile;
        end = more ? unit.first_tile + unit.tiles : 0;
    }
};

// The statistics of a warp's rows. Statistics: RowStatistics, or what extends it.
template <class Config, class Statistics> struct WarpStatistics {
    static constexpr int row_blocks = Config::warp_rows / 16;
    Statistics statistics[row_blocks];

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int row) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].begin(params, row + 16 * i);
    }

    // The warps that share rows leave their statistics in shared memory; the first of them merges in column order. row: in the tile.
    __device__ __forceinline__ void finish(SharedStorage<Config> &shared, const LinearLogpParams &params, int row, int split) {
        int across = warp_index() % Config::warps_across;
#pragma unroll
        for (int i = 0; i < row_blocks; i++) {
            statistics[i].finish();
            if (across > 0) statistics[i].leave(shared.merge[across] + row + 16 * i);
        }
        block_barrier();
        if (across == 0) {
#pragma unroll
            for (int i = 0; i < row_blocks; i++) {
                for (int other = 1; other < Config::warps_across; other++) statistics[i].merge(shared.merge[other] + row + 16 * i);
                statistics[i].store(params, split);
            }
        }
        block_barrier();
    }
};
#line 1 "templates/sm80/linear_logp.cuh"
// linear_logp forward on any GPU from sm_80 on: persistent blocks, the portable mainloop, statistics of each row.
// Config: hidden_size, block_hidden, and those of tile_product, schedule and warp_statistics
template <class Config> __device__ __forceinline__ void linear_logp(const LinearLogpParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, row_count<Config>(params), params.vocab, Config::hidden_size};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    Schedule<Config> schedule(params);
    Feed<Config, UnitTiles<Config, Schedule<Config>>> feed(schedule);
    TileProduct<Config> product(shared.stages);
    WarpStatistics<Config, RowStatistics<Config>> warp;
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    Unit unit;
    while (schedule.next(unit)) {
        warp.begin(params, unit.row_block * Config::block_rows + product.row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, feed, matrices, steps);
            int column = tile * Config::block_vocab + product.column;
#pragma unroll
            for (int i = 0; i < product.row_blocks; i++) warp.statistics[i].absorb(params, d[i], column, tile == unit.first_tile);
        }
        warp.finish(shared, params, product.row, unit.split);
    }
}
#line 1 "entry"
extern "C" __attribute__((no_sanitize("thread"))) void flp_linear_logp_f32_d64_bm128_bv128_s108_c1_p4_bias_f32_softcap_argmax_entropy_sm_90_host(void **parameters) {
    linear_logp<Config>(*(const LinearLogpParams *)parameters[0]);
}
extern "C" const unsigned flp_linear_logp_f32_d64_bm128_bv128_s108_c1_p4_bias_f32_softcap_argmax_entropy_sm_90_host_parameter_bytes[] = {sizeof(LinearLogpParams), 0};
