// fusedlogp weighted_sum_combine.gw_f32.sm_90a
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
    using weight_gradient_element = float;
    static constexpr int threads = 512;
    static constexpr int shared_bytes = 2048;
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
#line 1 "templates/sm90a/dependent_launch.cuh"
// Kernels of one stream that overlap: PTX ISA, "griddepcontrol".
// Config: none

// The next kernel's blocks may start, where there is room, before this kernel has ended.
__device__ __forceinline__ void allow_next_kernel() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#line 1 "templates/any/weighted_sum_combine.cuh"
// Adds the tiles' parts of grad_w: 32 columns a block, its warps beside one another over the tiles.
//
// The order is fixed: warp i adds tiles i, i + warps, ... in turn, then the warps are added in index order, then what grad_w held where it
// accumulates. It depends on the number of tiles only.
// Config: weight_gradient_element, threads
template <class Config> struct SharedStorage {
    float sums[Config::threads / 32][32];
};

// Loads come eight at a time, for their latency.
template <class Config> __device__ __forceinline__ float add_tiles(const WeightedSumCombineParams &params, int column) {
    constexpr int batch = 8, warps = Config::threads / 32;
    float sum = 0;
    if (column >= params.columns) return sum;
    for (int first = threadIdx.x / 32; first < params.tiles; first += batch * warps) {
        float part[batch];
#pragma unroll
        for (int i = 0; i < batch; i++) {
            int tile = first + i * warps;
            part[i] = tile < params.tiles ? params.partial[(i64)tile * params.partial_stride + column] : 0;
        }
#pragma unroll
        for (int i = 0; i < batch; i++) sum += part[i];
    }
    return sum;
}

template <class Config> __device__ __forceinline__ void weighted_sum_combine(const WeightedSumCombineParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int column = blockIdx.x * 32 + lane_index();
    wait_for_previous_kernel();
    shared.sums[threadIdx.x / 32][lane_index()] = add_tiles<Config>(params, column);
    block_barrier();
    if (threadIdx.x >= 32 || column >= params.columns) return;
    float sum = 0;
#pragma unroll
    for (int i = 0; i < Config::threads / 32; i++) sum += shared.sums[i][lane_index()];
    auto to = (typename Config::weight_gradient_element *)params.grad_w + column;
    if (params.accumulate) sum = to_float(*to) + sum;
    store_rounded(sum, to);
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(512, 2)
flp_weighted_sum_combine_gw_f32_sm_90a(const __grid_constant__ WeightedSumCombineParams params) {
    weighted_sum_combine<Config>(params);
}
