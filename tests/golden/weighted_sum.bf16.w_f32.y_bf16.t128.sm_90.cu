// fusedlogp weighted_sum.bf16.w_f32.y_bf16.t128.sm_90
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
    using weight_element = float;
    using output_element = bf16;
    static constexpr int team = 128;
    static constexpr int unroll = 5;
    static constexpr int vector_bytes = 16;
    static constexpr int threads = 256;
    static constexpr int shared_bytes = 64;
};
#line 1 "templates/common/weighted_sum_params.cuh"
// What weighted_sum's kernels take. The host half, with every field explained, is runtime/ops/weighted_sum_params.h.
// KEEP IN STEP: weighted_sum parameters.
// Config: none
struct WeightedSumParams {
    const void *x, *w;
    void *y;
    i64 rows, x_stride;
    int columns;
};

struct WeightedSumOuterParams {
    const void *g, *w;
    void *grad_x;
    i64 rows, grad_x_stride;
    int columns, slab, slabs, lanes;
};

struct WeightedSumTileParams {
    const void *x, *g;
    float *partial;
    void *grad_w;
    i64 rows, x_stride, tile_rows;
    int tiles, columns, slab, slabs, lanes, accumulate;
};

struct WeightedSumCombineParams {
    const float *partial;
    void *grad_w;
    int tiles, columns, partial_stride, accumulate;
};
static_assert(sizeof(WeightedSumParams) == 48 && sizeof(WeightedSumOuterParams) == 56 && sizeof(WeightedSumTileParams) == 80 &&
                  sizeof(WeightedSumCombineParams) == 32,
              "runtime/ops/weighted_sum_params.h disagrees");
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
#line 1 "templates/any/streaming.cuh"
// Loads of what is read once: they leave no copy in the L1 cache. PTX ISA, "ld.global.nc", "L1::no_allocate".
// Config: none
struct alignas(16) Vector {
    u32 words[4];
};

// from: a multiple of 16 bytes, in memory that nobody writes to during the kernel.
__device__ __forceinline__ Vector load_once(const void *from) {
    Vector vector;
    asm("ld.global.nc.L1::no_allocate.v4.u32 {%0, %1, %2, %3}, [%4];"
        : "=r"(vector.words[0]), "=r"(vector.words[1]), "=r"(vector.words[2]), "=r"(vector.words[3])
        : "l"(from));
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
#line 1 "templates/any/weighted_sum.cuh"
// y[row] = sum_d x[row, d] w[d]: a team of threads a row.
//
// The order of a row's sum: its vectors go round robin to the team's threads; a thread adds each vector's products, in the vectors' order, to
// one accumulator for each place in a vector; then places, lanes and warps are added pairwise. It depends on the team and the element alone, not
// on the alignment of the loads, on how many are under way, or on the rows beside it.
//
// x's loads run one step ahead of the products, across rows, so that memory is never waited for in between. w comes from the L1 cache, which x's
// loads leave to it: a copy in shared memory would be waited for at the start, and take the room in L1 that loads under way need.
// Config: element, weight_element, output_element, threads, team, unroll, vector_bytes
template <class Config> struct SharedStorage {
    float warp_sums[2][Config::threads / 32];
};

// What multiplies one vector of x.
template <class Config> struct WeightPart {
    using Weight = typename Config::weight_element;
    static constexpr int elements = vector_elements<typename Config::element>;
    static constexpr int bytes = elements * (int)sizeof(Weight), vectors = bytes < 16 ? 1 : bytes / 16;
    static constexpr int alignment = bytes < 16 ? bytes : 16; // of w, for whole loads
    u32 words[4 * vectors];

    __device__ __forceinline__ float value(int i) const {
        if constexpr (sizeof(Weight) == 4) return __uint_as_float(words[i]);
        else return to_float(Weight{(u16)(words[i / 2] >> (i % 2 * 16))});
    }
    __device__ __forceinline__ void set(int i, const Vector &vector) {
#pragma unroll
        for (int j = 0; j < 4; j++) words[4 * i + j] = vector.words[j];
    }

    // The first `valid` elements, whatever their address, zeros behind them.
    __device__ __forceinline__ void load_some(const Weight *from, int valid) {
#pragma unroll
        for (int i = 0; i < vectors; i++)
            set(i, ::load_some(from + i * vector_elements<Weight>, min(valid, elements) - i * vector_elements<Weight>));
    }
    // All of them.
    template <bool is_aligned> __device__ __forceinline__ void load(const Weight *from) {
        if constexpr (!is_aligned) {
            load_some(from, elements);
        } else if constexpr (bytes == 8) {
            HalfVector half = *(const HalfVector *)from;
            set(0, Vector{{half.words[0], half.words[1], 0, 0}});
        } else {
#pragma unroll
            for (int i = 0; i < vectors; i++) {
                Vector vector = ((const Vector *)from)[i]; // by value: one load
                set(i, vector);
            }
        }
    }
};

// One thread's share of its team's rows, a step of `unroll` loads at a time and one step ahead.
template <class Config> struct TeamRows {
    using Element = typename Config::element;
    using Weight = typename Config::weight_element;
    static constexpr int elements = vector_elements<Element>, step = Config::team * Config::unroll;
    static constexpr int teams = Config::threads / Config::team;
    const WeightedSumParams &params;
    const int thread; // in the team
    int row; // rows stay below 2^29
    int first; // vector of the step that is under way
    Vector loaded[Config::unroll];

    __device__ __forceinline__ TeamRows(const WeightedSumParams &params)
        : params(params), thread(threadIdx.x % Config::team), row(blockIdx.x * teams + threadIdx.x / Config::team), first(0) {
        const Element *from = address(row) + first_element();
#pragma unroll
        for (int i = 0; i < Config::unroll; i++) loaded[i] = load(from, i);
    }

    __device__ __forceinline__ const Element *address(int row) const { return (const Element *)params.x + row * params.x_stride; }
    __device__ __forceinline__ i64 first_element() const { return (i64)(first + thread) * elements; }
    // Behind the row's whole vectors: zeros.
    __device__ __forceinline__ Vector load(const Element *from, int i) const {
        int end = row < params.rows ? params.columns / elements : 0;
        if (first + thread + i * Config::team >= end) return Vector{{0, 0, 0, 0}};
        return load_words<Config::vector_bytes>(from + i * Config::team * elements);
    }

    // The thread's part of the row's sum; the next row's first loads are then under way.
    template <bool is_aligned> __device__ __forceinline__ float take() {
        float sum[elements];
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = 0;
        const int vectors = params.columns / elements, rest = params.columns % elements;
        const int taken = row;
        bool is_last;
#pragma unroll 1
        do {
            int place = first + thread;
            auto w = (const Weight *)params.w + first_element();
            first += step;
            is_last = first >= vectors;
            if (is_last) {
                first = 0;
                row += gridDim.x * teams;
            }
            const Element *next = address(row) + first_element();
#pragma unroll
            for (int i = 0; i < Config::unroll; i++) {
                WeightPart<Config> part{};
                if (place + i * Config::team < vectors) part.template load<is_aligned>(w + i * Config::team * elements);
                multiply_add(part, loaded[i], sum);
                loaded[i] = load(next, i);
            }
        } while (!is_last);
        if (rest != 0 && vectors % Config::team == thread && taken < params.rows) {
            const i64 end = (i64)vectors * elements;
            WeightPart<Config> part;
            part.load_some((const Weight *)params.w + end, rest);
            multiply_add(part, load_some(address(taken) + end, rest), sum);
        }
#pragma unroll
        for (int half = elements / 2; half > 0; half /= 2)
#pragma unroll
            for (int i = 0; i < half; i++) sum[i] += sum[i + half];
        return sum[0];
    }

    __device__ __forceinline__ static void multiply_add(const WeightPart<Config> &w, const Vector &vector, float (&sum)[elements]) {
        float x[elements];
        widen<Element>(vector, x);
#pragma unroll
        for (int i = 0; i < elements; i++) sum[i] = fmaf(x[i], w.value(i), sum[i]);
    }
};

// Of all the team's threads; its first thread has it. All threads of the block call it, which `round` counts.
template <class Config> __device__ __forceinline__ float team_sum(SharedStorage<Config> &shared, float sum, int round) {
    constexpr int lanes = Config::team < 32 ? Config::team : 32, warps = Config::team / lanes;
#pragma unroll
    for (int mask = lanes / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
    if constexpr (warps > 1) {
        // Written again two rounds on, when the barrier of the round between has let the readers finish.
        float *sums = shared.warp_sums[round % 2];
        if (lane_index() == 0) sums[threadIdx.x / 32] = sum;
        block_barrier();
        if (threadIdx.x % Config::team < 32) {
            sum = lane_index() < warps ? sums[threadIdx.x / 32 + lane_index()] : 0;
#pragma unroll
            for (int mask = warps / 2; mask > 0; mask /= 2) sum += shuffle_xor(sum, mask);
        }
    }
    return sum;
}

template <class Config, bool is_aligned> __device__ __forceinline__ void add_rows(const WeightedSumParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    constexpr int teams = TeamRows<Config>::teams;
    TeamRows<Config> rows(params);
    int round = 0;
#pragma unroll 1
    for (int base = blockIdx.x * teams; base < params.rows; base += gridDim.x * teams, round++) {
        float sum = team_sum(shared, rows.template take<is_aligned>(), round);
        int row = base + threadIdx.x / Config::team;
        if (threadIdx.x % Config::team == 0 && row < params.rows) store_rounded(sum, (typename Config::output_element *)params.y + row);
    }
}

// A w that begins elsewhere than at a multiple of 16 bytes is read element by element.
template <class Config> __device__ __forceinline__ void weighted_sum(const WeightedSumParams &params) {
    if ((u64)params.w % WeightPart<Config>::alignment == 0)
        add_rows<Config, true>(params);
    else
        add_rows<Config, false>(params);
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(256, 2)
flp_weighted_sum_bf16_w_f32_y_bf16_t128_sm_90(const __grid_constant__ WeightedSumParams params) {
    weighted_sum<Config>(params);
}
