// fusedlogp logits_logp_combine.f32.w8.argmax.entropy.sm_90a@host
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
    static constexpr int segment_vectors = 8;
    static constexpr int shared_segments = 512;
    static constexpr int cluster = 1;
    static constexpr int vector_bytes = 16;
    static constexpr bool has_softcap = false;
    static constexpr bool has_entropy = true;
    static constexpr bool wants_argmax = true;
    static constexpr bool rewrites = false;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 0;
};
#line 1 "templates/common/logits_logp_params.cuh"
// What logits_logp's kernels take. The host half, with every field explained, is runtime/ops/logits_logp_params.h.
// KEEP IN STEP: logits_logp parameters.
// Config: none
struct LogitsLogpParams {
    const void *logits, *target;
    const i64 *row_index;
    const float *row_temperature;
    i64 rows, logits_stride, logits_rows, ignore_index;
    int vocab, target_bytes, scatter, ignores;
    float scale, softcap, inverse_softcap;
    int segments, parts, team_log2;
    float *logp, *lse, *entropy;
    int *argmax;
    u64 *target_errors;
    float *partial, *moment, *best, *normaliser;
    const float *g_logp, *g_lse, *g_entropy, *given_lse, *given_entropy;
    void *grad_logits;
    i64 grad_stride;
};
static_assert(sizeof(LogitsLogpParams) == 232, "runtime/ops/logits_logp_params.h disagrees");
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
#line 1 "templates/host/dependent_launch.cuh"
// The twin of sm90a/dependent_launch.cuh: launches run one behind another here, and the machine knows which a GPU may run side by side.
// Inlined without optimisation too: the machine tells the places of these calls apart.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
extern "C" void flp_host_allow_next_kernel();
__attribute__((always_inline)) inline void allow_next_kernel() { flp_host_allow_next_kernel(); }
__attribute__((always_inline)) inline void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
#line 1 "templates/host/convert.cuh"
// Rounds fp32 to the 16-bit types, to nearest even: the twin of any/convert.cuh.
// Config: none
template <class T> __device__ __forceinline__ u32 round_one(float value);
template <> __device__ __forceinline__ u32 round_one<bf16>(float value) {
    u32 bits = __float_as_uint(value);
    return value != value ? 0x7fff : (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
}
// Adding a power of two that leaves f16's last bit as fp32's last one rounds to it.
template <> __device__ __forceinline__ u32 round_one<f16>(float value) {
    u32 sign = __float_as_uint(value) >> 16 & 0x8000;
    float size = fabsf(value);
    if (size != size) return 0x7fff;
    if (size >= 65520.0f) return sign | 0x7c00;
    if (size < 0x1p-14f) return sign | (__float_as_uint(size + 0.5f) - __float_as_uint(0.5f));
    u32 bits = __float_as_uint(size);
    return sign | ((bits + 0xfff + (bits >> 13 & 1)) >> 13) - (112 << 10);
}
template <class T> __device__ __forceinline__ u32 round_pair(float low, float high) { return round_one<T>(low) | round_one<T>(high) << 16; }

__device__ __forceinline__ void store_rounded(float value, float *to) { *to = value; }
__device__ __forceinline__ void store_rounded(float value, bf16 *to) { to->bits = (u16)round_one<bf16>(value); }
__device__ __forceinline__ void store_rounded(float value, f16 *to) { to->bits = (u16)round_one<f16>(value); }
#line 1 "templates/host/streaming.cuh"
// Loads of what is read once: the twin of any/streaming.cuh.
// Config: none
extern "C" void flp_host_load_constant(const void *from, void *to, int bytes);
struct alignas(16) Vector {
    u32 words[4];
};

__device__ __forceinline__ Vector load_once(const void *from) {
    Vector vector;
    flp_host_load_constant(from, &vector, 16);
    return vector;
}
#line 1 "templates/common/vector.cuh"
// Vectors: 16 bytes of a row, read and written by the widest access that the addresses allow.
// Config: none
struct alignas(8) HalfVector {
    u32 words[2];
};

template <class Element> constexpr int vector_elements = 16 / (int)sizeof(Element);

// Of memory that is read once. bytes: what every address is a multiple of, 16, 8, 4 or 2.
template <int bytes> __device__ __forceinline__ Vector load_words(const void *from) {
    static_assert(bytes == 16 || bytes == 8 || bytes == 4 || bytes == 2, "an access of the hardware");
    Vector vector;
    if constexpr (bytes == 16) {
        vector = load_once(from);
    } else {
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (bytes == 8)
                vector.words[i] = ((const HalfVector *)from)[i / 2].words[i % 2];
            else if constexpr (bytes == 4)
                vector.words[i] = ((const u32 *)from)[i];
            else
                vector.words[i] = ((const u16 *)from)[2 * i] | (u32)((const u16 *)from)[2 * i + 1] << 16;
        }
    }
    return vector;
}

// The first `valid` elements, zeros behind them: nothing else is read.
template <class Element> __device__ __forceinline__ Vector load_some(const Element *from, int valid) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) {
            vector.words[i] = i < valid ? ((const u32 *)from)[i] : 0;
        } else {
            u32 low = 2 * i < valid ? ((const u16 *)from)[2 * i] : 0, high = 2 * i + 1 < valid ? ((const u16 *)from)[2 * i + 1] : 0;
            vector.words[i] = low | high << 16;
        }
    }
    return vector;
}

// Whatever the address: it is asked here, for all threads alike. valid: how many elements there are from here on.
template <class Element> __device__ __forceinline__ Vector load_anywhere(const Element *from, int valid) {
    if (valid >= vector_elements<Element> && (u64)from % 16 == 0) return *(const Vector *)from;
    if (valid <= 0) return Vector{{0, 0, 0, 0}};
    return load_some(from, valid);
}

template <class Element> __device__ __forceinline__ void widen(const Vector &vector, float (&values)[vector_elements<Element>]) {
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) {
            values[i] = __uint_as_float(vector.words[i]);
        } else {
            values[2 * i] = to_float(Element{(u16)vector.words[i]});
            values[2 * i + 1] = to_float(Element{(u16)(vector.words[i] >> 16)});
        }
    }
}

// Rounded to the nearest.
template <class Element> __device__ __forceinline__ Vector narrow(const float (&values)[vector_elements<Element>]) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) {
        if constexpr (sizeof(Element) == 4) vector.words[i] = __float_as_uint(values[i]);
        else vector.words[i] = round_pair<Element>(values[2 * i], values[2 * i + 1]);
    }
    return vector;
}

// The first `valid` elements of it, whatever the address.
template <class Element> __device__ __forceinline__ void store_anywhere(const Vector &vector, Element *to, int valid) {
    constexpr int elements = vector_elements<Element>;
    if (valid >= elements && (u64)to % 16 == 0) {
        *(Vector *)to = vector;
        return;
    }
#pragma unroll
    for (int i = 0; i < elements; i++) {
        if (i >= valid) return;
        if constexpr (sizeof(Element) == 4) ((u32 *)to)[i] = vector.words[i];
        else ((u16 *)to)[i] = (u16)(vector.words[i / 2] >> 16 * (i % 2));
    }
}

// `count` elements, those from `valid` on as zeros, whatever the address.
template <class Element, int count>
__device__ __forceinline__ void load_floats(const Element *from, int valid, float (&values)[count]) {
    constexpr int elements = vector_elements<Element>;
    if constexpr (count % elements == 0) {
#pragma unroll
        for (int i = 0; i < count; i += elements) {
            float part[elements];
            widen<Element>(load_anywhere(from + i, valid - i), part);
#pragma unroll
            for (int j = 0; j < elements; j++) values[i + j] = part[j];
        }
    } else {
#pragma unroll
        for (int i = 0; i < count; i++) values[i] = i < valid ? to_float(from[i]) : 0;
    }
}
#line 1 "templates/common/shifted_vectors.cuh"
// Vectors of a row that begins at any element: loads at multiples of 16 bytes, of which shuffles then make the vectors that lie across two.
// Config: none

// Of the aligned word `word` at from, elements `low` .. `high` - 1, counted from `from`; zeros beside them, and nothing else is read.
template <class Element> __device__ __forceinline__ u32 load_word_between(const Element *from, int word, int low, int high) {
    if constexpr (sizeof(Element) == 4) return word >= low && word < high ? ((const u32 *)from)[word] : 0;
    u32 first = 2 * word >= low && 2 * word < high ? ((const u16 *)from)[2 * word] : 0;
    u32 second = 2 * word + 1 >= low && 2 * word + 1 < high ? ((const u16 *)from)[2 * word + 1] : 0;
    return first | second << 16;
}

template <class Element> __device__ __forceinline__ Vector load_between(const Element *from, int low, int high) {
    Vector vector;
#pragma unroll
    for (int i = 0; i < 4; i++) vector.words[i] = load_word_between(from, i, low, high);
    return vector;
}

// A lane's words `word` .. of its vector and the next lane's; behind the last lane's lies the first lane's next one.
template <int vectors, int word> __device__ __forceinline__ void shift_words(Vector (&data)[vectors], u32 behind, int bits) {
    bool is_first = lane_index() == 0, is_last = lane_index() == 31;
    int next_lane = (lane_index() + 1) % 32;
#pragma unroll
    for (int j = 0; j < vectors; j++) {
        u32 words[8];
#pragma unroll
        for (int i = 0; i < 4; i++) {
            words[i] = data[j].words[i];
            if (i > word) continue;
            u32 sent = is_first && j + 1 < vectors ? data[(j + 1) % vectors].words[i] : words[i];
            words[4 + i] = __shfl_sync(0xffffffffu, sent, next_lane);
            if (j + 1 == vectors) {
                u32 last = __shfl_sync(0xffffffffu, behind, i);
                if (is_last) words[4 + i] = last;
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) data[j].words[i] = (u32)(((u64)words[word + i + 1] << 32 | words[word + i]) >> bits);
    }
}

// Lane l holds the aligned vectors l, 32 + l, ..., and lanes 0 .. 3 in `behind` a word each of the one behind them all. They become what lies
// `bytes`, 0 .. 15, further on. bytes: of all lanes.
template <int vectors> __device__ __forceinline__ void shift_vectors(Vector (&data)[vectors], u32 behind, int bytes) {
    int bits = bytes % 4 * 8;
    if (bytes == 0) return;
    if (bytes < 4) shift_words<vectors, 0>(data, behind, bits);
    else if (bytes < 8) shift_words<vectors, 1>(data, behind, bits);
    else if (bytes < 12) shift_words<vectors, 2>(data, behind, bits);
    else shift_words<vectors, 3>(data, behind, bits);
}
#line 1 "templates/common/logits_row.cuh"
// One row of logits_logp: where it lies, what is wanted of it, and its results.
// Config: element, has_softcap, has_entropy, wants_argmax
struct LogitsScale {
    float scale; // log2(e) / temperature
    float softcap, inverse_softcap;
};

template <class Config> struct LogitsRow {
    using Element = typename Config::element;
    static constexpr int ignored = -1, bad = -2;
    int place;  // in the arrays of results: the row's number in this call, or where it is scattered to
    int source; // in the arrays of inputs; -1: the index names no row
    int target; // a column, or ignored, or bad

    __device__ __forceinline__ LogitsRow(const LogitsLogpParams &params, int number) : LogitsRow(find(params, number)) {
        take_target(params, load_target(params));
    }

    // In three steps, so that a kernel can go on while memory answers: where the row is, the target as it lies in memory, what it says.
    struct TargetWords {
        u32 low, high;
    };
    __device__ __forceinline__ static LogitsRow find(const LogitsLogpParams &params, int number) {
        LogitsRow row(number);
        if (params.row_index != nullptr) {
            i64 index = params.row_index[number];
            row.source = index >= 0 && index < params.logits_rows ? (int)index : -1;
            if (params.scatter) row.place = row.source;
        }
        return row;
    }
    __device__ __forceinline__ TargetWords load_target(const LogitsLogpParams &params) const {
        if (source < 0) return {0, 0};
        int words = params.target_bytes / 4;
        const u32 *at = (const u32 *)params.target + (i64)source * words;
        return {at[0], at[words - 1]};
    }
    __device__ __forceinline__ void take_target(const LogitsLogpParams &params, const TargetWords &words) {
        if (source < 0) return;
        i64 given = params.target_bytes == 8 ? (i64)((u64)words.high << 32 | words.low) : (i64)(int)words.low;
        if (params.ignores && given == params.ignore_index) target = ignored;
        else if (given >= 0 && given < params.vocab) target = (int)given;
    }

    // An ignored row of which nothing but logp is wanted need not be read.
    __device__ __forceinline__ bool is_read(const LogitsLogpParams &params) const {
        return source >= 0 && (target != ignored || params.lse != nullptr || params.entropy != nullptr || params.argmax != nullptr);
    }
    __device__ __forceinline__ const Element *logits(const LogitsLogpParams &params) const {
        return (const Element *)params.logits + source * params.logits_stride;
    }
    __device__ __forceinline__ Element *gradients(const LogitsLogpParams &params) const {
        return (Element *)params.grad_logits + place * params.grad_stride;
    }
    __device__ __forceinline__ LogitsScale scale(const LogitsLogpParams &params) const {
        float scale = params.scale;
        if (params.row_temperature != nullptr && source >= 0) scale /= params.row_temperature[source];
        return {scale, params.softcap, params.inverse_softcap};
    }

  private:
    __device__ __forceinline__ explicit LogitsRow(int number) : place(number), source(number), target(bad) {}
};

// slope: the softcap's derivative.
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale, float &slope) {
    slope = 1;
    if constexpr (Config::has_softcap) return scale.softcap * hyperbolic_tangent(logit * scale.inverse_softcap, slope);
    return logit;
}
template <class Config> __device__ __forceinline__ float soften(float logit, const LogitsScale &scale) {
    float slope;
    return soften<Config>(logit, scale, slope);
}

// A row's sums: 2^offset times sum of 2^(z2 - offset), and of that times (z2 - offset).
struct LogitsSums {
    float offset, sum, moment;
    float best;
    int best_index;
};

// log2 of the sum beside the offset, and the entropy: what logp and the gradients need.
struct LogitsNormaliser {
    float offset, log2_sum, entropy;
    __device__ __forceinline__ static LogitsNormaliser of(const LogitsSums &sums) {
        float log2_sum = log2f(sums.sum);
        return {sums.offset, log2_sum, (log2_sum - sums.moment / sums.sum) * ln_2};
    }
};

template <class Config>
__device__ __forceinline__ void count_bad_target(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number) {
    if (row.target == row.bad) tally_bad_target(params.target_errors, number);
}

// One thread writes the results. target_logit: of a known target.
template <class Config>
__device__ __forceinline__ void write_results(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number, const LogitsSums &sums,
                                              const LogitsNormaliser &normaliser, float target_logit) {
    count_bad_target(params, row, number);
    if (row.place < 0) return;
    bool is_row = row.source >= 0;
    if (params.lse != nullptr) params.lse[row.place] = is_row ? (normaliser.offset + normaliser.log2_sum) * ln_2 : not_a_number;
    if constexpr (Config::has_entropy)
        if (params.entropy != nullptr) params.entropy[row.place] = is_row ? normaliser.entropy : not_a_number;
    if constexpr (Config::wants_argmax)
        if (params.argmax != nullptr) params.argmax[row.place] = is_row ? sums.best_index : 0;
    if (params.logp == nullptr) return;
    float logp = not_a_number;
    if (row.target == row.ignored) {
        logp = 0;
    } else if (row.target >= 0) {
        LogitsScale scale = row.scale(params);
        // One rounding of the logit against the offset, an integer: a likely target keeps its small bits.
        logp = (fmaf(soften<Config>(target_logit, scale), scale.scale, -normaliser.offset) - normaliser.log2_sum) * ln_2;
        if (logp > 0) logp = 0; // rounding only; NaN stays
    }
    params.logp[row.place] = logp;
}
#line 1 "templates/common/logits_segment.cuh"
// A segment of a row of logits, held by one warp: `vectors` times 512 bytes, 16 bytes a lane.
//
// A row is the same segments whatever computes them; each leaves its sums, which are merged in the segments' order. Within a segment the
// order is fixed too, so a row's bits depend on V and the dtype, not on the load's width, the rows beside it or the size of the device.
//
// The offset of a segment is an integer, taken from its first 512 bytes; where the sum then leaves the safe range, from all of it.
// Config: element, segment_vectors, vector_bytes, rewrites, has_softcap, has_entropy, wants_argmax
constexpr float safe_sum = 1152921504606846976.0f; // 2^60: 2^67 such sums stay finite
constexpr float lowest_power = -200;               // 2^-200 is 0 in fp32: keeps 0 * infinity out of products with powers

template <class Element> constexpr u32 minus_infinity_word = 0xff800000u; // f32
template <> constexpr u32 minus_infinity_word<bf16> = 0xff80ff80u;
template <> constexpr u32 minus_infinity_word<f16> = 0xfc00fc00u;

// Rows at any address, which are read in vectors all the same. Where gradients may come to lie over the logits, they are not: a vector would reach
// into the next row's.
template <class Config> constexpr bool is_shifted = Config::vector_bytes < 16 && !Config::rewrites;

template <class Config> __device__ __forceinline__ Vector load_logits(const typename Config::element *from) {
    if constexpr (Config::rewrites && Config::vector_bytes == 16) return *(const Vector *)from; // gradients may come to lie there
    else return load_words<Config::vector_bytes>(from);
}

template <class Config> struct Segment {
    using Element = typename Config::element;
    static constexpr int elements = vector_elements<Element>, vectors = Config::segment_vectors;
    static constexpr int columns = 32 * elements * vectors;
    Vector data[vectors];
    int left;   // columns up to the vocabulary's end, at most all
    u32 behind; // is_shifted: as shift_vectors wants it
    int shift;  // is_shifted: bytes that the segment begins behind a multiple of 16

    __device__ __forceinline__ static int column(int j) { return (j * 32 + lane_index()) * elements; }

    // Of a row that begins at logits. Columns behind the vocabulary are -inf and are not read.
    __device__ __forceinline__ void load(const Element *logits, int index, int vocab) {
        const Element *from = logits + (i64)index * columns;
        int rest = vocab - index * columns;
        left = min(rest, columns);
        if constexpr (is_shifted<Config>) {
            load_aligned(from, index == 0, rest);
            return;
        }
        if (left >= columns) {
#pragma unroll
            for (int j = 0; j < vectors; j++) data[j] = load_logits<Config>(from + column(j));
            return;
        }
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            int valid = left - column(j);
            if (valid >= elements) {
                data[j] = load_logits<Config>(from + column(j));
            } else {
                data[j] = Vector{{0, 0, 0, 0}};
                if (valid > 0) data[j] = load_some(from + column(j), valid); // few rows end within a vector
                cut(data[j], valid);
            }
        }
    }

    // The vectors in which the segment lies; of those at a row's ends, the row's elements. rest: columns of the row from here on.
    __device__ __forceinline__ void load_aligned(const Element *from, bool is_first, int rest) {
        shift = (int)((u64)from % 16);
        int before = shift / (int)sizeof(Element), low = is_first ? before : 0, high = before + rest;
        const Element *aligned = from - before;
        if (low == 0 && high >= columns + elements) {
#pragma unroll
            for (int j = 0; j < vectors; j++) data[j] = load_once(aligned + column(j));
            behind = ((const u32 *)(aligned + columns))[lane_index() % 4];
            return;
        }
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            int at = column(j);
            data[j] = at >= low && at + elements <= high ? load_once(aligned + at) : load_between(aligned + at, low - at, high - at);
        }
        behind = load_word_between(aligned + columns, lane_index() % 4, 0, high - columns);
    }

    // Before the first look at the logits.
    __device__ __forceinline__ void put_together() {
        shift_vectors(data, behind, shift);
        if (left >= columns) return;
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            cut(data[j], left - column(j));
#pragma unroll
            for (int i = 0; i < 4; i++) forget(data[j].words[i]); // one vector after the other: conditions for all at once want registers
        }
    }

    // Elements from `valid` on become -inf.
    __device__ __forceinline__ static void cut(Vector &vector, int valid) {
        constexpr u32 cut_word = minus_infinity_word<Element>;
#pragma unroll
        for (int i = 0; i < 4; i++) {
            if constexpr (sizeof(Element) == 4) {
                if (i >= valid) vector.words[i] = cut_word;
            } else {
                if (2 * i >= valid) vector.words[i] = cut_word;
                else if (2 * i + 1 >= valid) vector.words[i] = (vector.words[i] & 0xffffu) | (cut_word & 0xffff0000u);
            }
        }
    }

    // visit(z, index): softened logit and column in the segment, of this lane's elements.
    template <int some = vectors, class Visit> __device__ __forceinline__ void each(const LogitsScale &scale, Visit visit) const {
#pragma unroll
        for (int j = 0; j < some; j++) {
            float z[elements];
            widen<Element>(data[j], z);
#pragma unroll
            for (int i = 0; i < elements; i++) {
                float logit = soften<Config>(z[i], scale);
                if constexpr (Config::has_softcap)
                    if (column(j) + i >= left) logit = -infinity; // softcap(-inf) is finite
                visit(logit, j * elements + i);
            }
        }
    }

    template <int some> __device__ __forceinline__ float find_offset(const LogitsScale &scale) const {
        float largest = -infinity;
        each<some>(scale, [&](float z, int) { largest = fmaxf(largest, z); });
#pragma unroll
        for (int m = 16; m > 0; m /= 2) largest = fmaxf(largest, shuffle_xor(largest, m));
        return rintf(largest * scale.scale);
    }

    __device__ __forceinline__ void add_powers(const LogitsScale &scale, LogitsSums &sums) const {
        float part[4] = {0, 0, 0, 0}, moment[2] = {0, 0};
        // Without an offset all terms are -inf or NaN: 2^z2 itself is then 0 or NaN, which is what the sum must become.
        float k = sums.offset == -infinity ? 0 : sums.offset;
        each(scale, [&](float z, int i) {
            float d = fmaf(z, scale.scale, -k), power = exp2_approximate(d);
            part[i & 3] += power;
            if constexpr (Config::has_entropy) moment[i & 1] = fmaf(power, fmaxf(d, lowest_power), moment[i & 1]);
        });
        sums.sum = (part[0] + part[1]) + (part[2] + part[3]);
        sums.moment = moment[0] + moment[1];
#pragma unroll
        for (int m = 16; m > 0; m /= 2) {
            sums.sum += shuffle_xor(sums.sum, m);
            if constexpr (Config::has_entropy) sums.moment += shuffle_xor(sums.moment, m);
        }
    }

    // visit(logit, index): as it was read, before the softcap.
    template <class Visit> __device__ __forceinline__ void each_raw(Visit visit) const {
#pragma unroll
        for (int j = 0; j < vectors; j++) {
            float z[elements];
            widen<Element>(data[j], z);
#pragma unroll
            for (int i = 0; i < elements; i++) visit(z[i], j * elements + i);
        }
    }

    // The first of the largest logits before the softcap; NaN never wins. first: the segment's first column in the row.
    __device__ __forceinline__ void find_best(int first, LogitsSums &sums) {
        sums.best = -infinity;
        each_raw([&](float z, int) { sums.best = fmaxf(sums.best, z); });
#pragma unroll
        for (int m = 16; m > 0; m /= 2) sums.best = fmaxf(sums.best, shuffle_xor(sums.best, m));
        forget_floats();
        int place = vectors * elements; // the first one of the lane's elements; none
        each_raw([&](float z, int i) { place = min(place, z == sums.best ? i : vectors * elements); });
        sums.best_index = place == vectors * elements ? 0x7fffffff : first + column(place / elements) + place % elements;
#pragma unroll
        for (int m = 16; m > 0; m /= 2) sums.best_index = min(sums.best_index, shuffle_xor(sums.best_index, m));
    }

    // Between two walks over the logits: otherwise the first one's floats, twice as many as the words, would stay for the second.
    __device__ __forceinline__ void forget_floats() {
#pragma unroll
        for (int j = 0; j < vectors; j++)
#pragma unroll
            for (int i = 0; i < 4; i++) forget(data[j].words[i]);
    }

    // In all lanes.
    __device__ __forceinline__ LogitsSums statistics(const LogitsScale &scale, int first) {
        LogitsSums sums;
        if constexpr (is_shifted<Config>) put_together();
        sums.offset = find_offset<1>(scale);
        bool is_exact = false;
        do {
            forget_floats();
            if (is_exact) sums.offset = find_offset<vectors>(scale);
            forget_floats();
            add_powers(scale, sums);
            if (is_exact) break;
            is_exact = !(sums.sum < safe_sum) || sums.offset == -infinity;
        } while (is_exact);
        forget_floats();
        if constexpr (Config::wants_argmax) find_best(first, sums);
        return sums;
    }
};
#line 1 "templates/common/logits_merge.cuh"
// Merges the segments of a row, by one warp: lane l takes segments l, l + 32, ... in turn, then the lanes merge pairwise. The order depends on
// the number of segments only.
// Config: has_entropy, wants_argmax
struct LogitsSlots {
    float2 *partial; // [segments]: offset (an integer; -inf: nothing but -inf), sum
    float2 *best;    // [segments]: largest logit, its column (int bits)
    float *moment;   // [segments]
};

template <class Config> __device__ __forceinline__ LogitsSums merge_segments(const LogitsSlots &from, int segments) {
    constexpr int batch = 4; // loads under way at once
    LogitsSums row = {-infinity, 0, 0, -infinity, 0x7fffffff};
    if (segments == 1) { // what the general way would give
        row = {from.partial[0].x, from.partial[0].y, Config::has_entropy ? from.moment[0] : 0, 0, 0};
        if constexpr (Config::wants_argmax) row.best_index = from.best[0].x == -infinity ? 0 : __float_as_int(from.best[0].y);
        return row;
    }
    for (int first = 0; first < segments; first += 32 * batch) {
        float2 part[batch];
        float moment[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int at = first + 32 * i + lane_index();
            part[i] = at < segments ? from.partial[at] : make_float2(-infinity, 0);
            moment[i] = Config::has_entropy && at < segments ? from.moment[at] : 0;
        }
        float k = row.offset;
#pragma unroll
        for (int i = 0; i < batch; i++) k = fmaxf(k, part[i].x);
        for (int m = 16; m > 0; m /= 2) k = fmaxf(k, shuffle_xor(k, m));
        auto rescale = [&](float offset, float &sum, float &moment) {
            if (offset == -infinity) return; // the sum is 0 or NaN
            float power = exp2_approximate(offset - k);
            sum *= power;
            if constexpr (Config::has_entropy) moment = fmaf(sum, fmaxf(offset - k, lowest_power), moment * power);
        };
        rescale(row.offset, row.sum, row.moment);
        row.offset = k;
#pragma unroll
        for (int i = 0; i < batch; i++) {
            rescale(part[i].x, part[i].y, moment[i]);
            row.sum += part[i].y;
            row.moment += moment[i];
        }
    }
    for (int m = 16; m > 0; m /= 2) {
        row.sum += shuffle_xor(row.sum, m);
        if constexpr (Config::has_entropy) row.moment += shuffle_xor(row.moment, m);
    }
    if constexpr (Config::wants_argmax) {
        auto take = [&](float other, int other_index) {
            if (other > row.best || (other == row.best && other_index < row.best_index)) {
                row.best = other;
                row.best_index = other_index;
            }
        };
        for (int i = lane_index(); i < segments; i += 32) take(from.best[i].x, __float_as_int(from.best[i].y));
        for (int m = 16; m > 0; m /= 2) {
            float other = shuffle_xor(row.best, m);
            int other_index = shuffle_xor(row.best_index, m);
            take(other, other_index);
        }
        if (row.best == -infinity) row.best_index = 0; // nothing but -inf and NaN
    }
    return row;
}

template <class Config> __device__ __forceinline__ void leave(const LogitsSums &sums, const LogitsSlots &to, int segment) {
    if (lane_index() != 0) return;
    to.partial[segment] = make_float2(sums.offset, sums.sum);
    if constexpr (Config::has_entropy) to.moment[segment] = sums.moment;
    if constexpr (Config::wants_argmax) to.best[segment] = make_float2(sums.best, __int_as_float(sums.best_index));
}

// The scratch of a row; `number` is its place in the call.
template <class Config> __device__ __forceinline__ LogitsSlots scratch_slots(const LogitsLogpParams &params, int number) {
    i64 at = (i64)number * params.segments;
    return {(float2 *)params.partial + at, Config::wants_argmax ? (float2 *)params.best + at : nullptr,
            Config::has_entropy ? params.moment + at : nullptr};
}

// By one warp: merges a row's segments and writes what is wanted of it.
template <class Config>
__device__ __forceinline__ LogitsNormaliser finish_row(const LogitsLogpParams &params, const LogitsRow<Config> &row, int number,
                                                       const LogitsSlots &slots, float target_logit, bool writes) {
    LogitsSums sums = {0, 0, 0, 0, 0};
    if (row.is_read(params)) sums = merge_segments<Config>(slots, params.segments);
    LogitsNormaliser normaliser = LogitsNormaliser::of(sums);
    if (!writes || lane_index() != 0) return normaliser;
    write_results(params, row, number, sums, normaliser, target_logit);
    if (params.normaliser != nullptr)
        *(float4 *)(params.normaliser + 4 * (i64)number) = make_float4(normaliser.offset, normaliser.log2_sum, normaliser.entropy, 0);
    return normaliser;
}

template <class Config> __device__ __forceinline__ float load_target_logit(const LogitsLogpParams &params, const LogitsRow<Config> &row) {
    return row.target >= 0 ? to_float(row.logits(params)[row.target]) : 0;
}
#line 1 "templates/any/logits_logp_combine.cuh"
// Merges the segments of rows that several blocks have read: one warp a row.
// Config: threads, has_entropy, wants_argmax
template <class Config> __device__ __forceinline__ void logits_logp_combine(const LogitsLogpParams &params) {
    int number = blockIdx.x * (Config::threads / 32) + warp_index();
    if (number >= params.rows) return;
    LogitsRow<Config> row(params, number); // inputs: they were there before the kernel that left the sums
    float target_logit = load_target_logit(params, row);
    wait_for_previous_kernel();
    finish_row(params, row, number, scratch_slots<Config>(params, number), target_logit, true);
}
#line 1 "entry"
extern "C" __attribute__((no_sanitize("thread"))) void flp_logits_logp_combine_f32_w8_argmax_entropy_sm_90a_host(void **parameters) {
    logits_logp_combine<Config>(*(const LogitsLogpParams *)parameters[0]);
}
extern "C" const unsigned flp_logits_logp_combine_f32_w8_argmax_entropy_sm_90a_host_parameter_bytes[] = {sizeof(LogitsLogpParams), 0};
