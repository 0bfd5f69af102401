// fusedlogp token_loss.loss_policy_gradient.sm_90a
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
    static constexpr int threads = 1024;
    static constexpr int shared_bytes = 8192;
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
#line 1 "templates/common/token_loss_params.cuh"
// What the kernel of token losses takes. The host half, with every field explained, is runtime/ops/linear_cross_entropy_params.h.
// KEEP IN STEP: token loss parameters.
// Config: none
struct TokenLossParams {
    const void *target;
    const float *logp, *lse, *entropy, *logit_sum;
    const void *class_weights;
    const float *token_weights;
    const float *g_loss;
    const float *input[8];
    float parameter[8];
    float *loss;
    float *g_logp, *g_lse, *g_entropy, *g_sum;
    i64 ignore_index;
    int rows, vocab, target_bytes;
    int class_weight_dtype;
    int reduces, divides;
    const int *place;
    int first_place, places;
    int adds, ignores;
};
static_assert(sizeof(TokenLossParams) == 256, "runtime/ops/linear_cross_entropy_params.h disagrees");

// What a token loss sees of its row, and what it makes of it.
struct TokenLossRow {
    float logp, lse, entropy, uniform, class_weight;
    float input[8];
};

struct TokenLossResult {
    float loss, by_logp, by_lse, by_entropy, by_uniform;
};

// Of two equal numbers the first; NaN if one is.
__device__ __forceinline__ float token_minimum(float a, float b) { return b < a || b != b ? b : a; }
__device__ __forceinline__ float token_maximum(float a, float b) { return b > a || b != b ? b : a; }
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
#line 1 "templates/sm90a/dependent_launch.cuh"
// Kernels of one stream that overlap: PTX ISA, "griddepcontrol".
// Config: none

// The next kernel's blocks may start, where there is room, before this kernel has ended.
__device__ __forceinline__ void allow_next_kernel() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
#line 1 "loss"
// The token loss policy_gradient and its derivatives.
struct TokenLoss {
    static constexpr int inputs = 2;
    __device__ __forceinline__ static TokenLossResult evaluate(const TokenLossRow &row, const float *parameter) {
        float v0 = row.logp;
        float v1 = row.input[0];
        float v2 = row.input[1];
        float v3 = parameter[0];
        float v4 = parameter[1];
        float v5 = v0 - v2;
        float v6 = expf(v5);
        float v7 = 1.0f;
        float v8 = v7 - v3;
        float v9 = v7 + v4;
        float v10 = token_maximum(v6, v8);
        float v11 = token_minimum(v10, v9);
        float v12 = v6 * v1;
        float v13 = v11 * v1;
        float v14 = token_minimum(v12, v13);
        float v15 = -v14;
        float v16 = -1.0f;
        float v17 = 0.0f;
        float v18 = v13 < v12 ? v17 : v16;
        float v19 = v13 < v12 ? v16 : v17;
        float v20 = v19 * v1;
        float v21 = v18 * v1;
        float v22 = v9 < v10 ? v17 : v20;
        float v23 = v6 < v8 ? v17 : v22;
        float v24 = v21 + v23;
        float v25 = v24 * v6;
        return {v15, v25, 0, 0, 0};
    }
};
#line 1 "templates/any/token_loss.cuh"
// The loss of each row by TokenLoss, which stands before this, its derivatives for the backward, and the reduced loss. One block.
//
// What is summed up over rows or classes is in fp64 and in a fixed order: each thread its own rows in turn, then the threads pairwise. Of rows in
// chunks, a launch has those of one chunk, and chunks are added in their order.
// Config: threads
template <class Config> struct TokenLosses {
    const TokenLossParams &params;
    double *shared; // [threads]

    __device__ __forceinline__ i64 target(int i) const { return load_target(params.target, params.target_bytes, i); }
    __device__ __forceinline__ bool in_vocabulary(i64 t) const { return t >= 0 && t < params.vocab; }
    __device__ __forceinline__ float token_weight(int i) const { return params.token_weights ? params.token_weights[i] : 1; }
    __device__ __forceinline__ float class_weight(i64 v) const {
        if (!params.class_weights) return 1;
        if (params.class_weight_dtype == 1) return to_float(((const bf16 *)params.class_weights)[v]);
        if (params.class_weight_dtype == 2) return to_float(((const f16 *)params.class_weights)[v]);
        return ((const float *)params.class_weights)[v];
    }

    // Rows go by in chunks of those that count; the others go with the first.
    __device__ __forceinline__ bool is_here(int i) const {
        int place = params.place[i];
        return place < 0 ? params.first_place == 0 : place >= params.first_place && place - params.first_place < params.places;
    }

    // The sum of all threads' values, in every thread.
    __device__ __forceinline__ double add_threads(double value) const {
        shared[threadIdx.x] = value;
        for (int half = Config::threads / 2; half > 0; half /= 2) {
            block_barrier();
            if (threadIdx.x < half) shared[threadIdx.x] += shared[threadIdx.x + half];
        }
        block_barrier();
        double sum = shared[0];
        block_barrier();
        return sum;
    }

    __device__ __forceinline__ double mean_class_weight() const {
        if (!params.class_weights) return 1;
        double sum = 0;
        for (int v = threadIdx.x; v < params.vocab; v += Config::threads) sum += class_weight(v);
        return add_threads(sum) / params.vocab;
    }

    // What the sum of losses is multiplied by.
    __device__ __forceinline__ double reduction_factor() const {
        if (!params.divides) return 1;
        double sum = 0;
        for (int i = threadIdx.x; i < params.rows; i += Config::threads) {
            i64 t = target(i);
            if (!is_ignored(params, t) && in_vocabulary(t)) sum += (double)token_weight(i) * class_weight(t);
        }
        sum = add_threads(sum);
        return sum == 0 ? 0 : 1 / sum;
    }

    __device__ __forceinline__ TokenLossRow row(int i, i64 t, float class_mean) const {
        TokenLossRow row = {};
        row.logp = params.logp[i];
        row.lse = params.lse[i];
        row.class_weight = class_weight(t);
        if (params.entropy) row.entropy = params.entropy[i];
        if (params.logit_sum) row.uniform = class_mean * row.lse - params.logit_sum[i] / (float)params.vocab;
#pragma unroll
        for (int k = 0; k < TokenLoss::inputs; k++) row.input[k] = params.input[k][i];
        return row;
    }

    __device__ __forceinline__ void store(int i, float factor, float class_mean, const TokenLossResult &result) const {
        if (!params.g_logp) return;
        params.g_logp[i] = factor * result.by_logp;
        params.g_lse[i] = factor * (result.by_lse + result.by_uniform * class_mean);
        if (params.g_entropy) params.g_entropy[i] = factor * result.by_entropy;
        if (params.g_sum) params.g_sum[i] = -factor * result.by_uniform / (float)params.vocab;
    }

    // Row i's weighted loss. factor: what the losses' sum is multiplied by.
    __device__ __forceinline__ float loss(int i, double factor, float class_mean) const {
        i64 t = target(i);
        if (is_ignored(params, t)) return 0;
        if (!in_vocabulary(t)) return not_a_number;
        TokenLossResult result = TokenLoss::evaluate(row(i, t, class_mean), params.parameter);
        float weight = token_weight(i), g_loss = params.g_loss ? params.g_loss[params.reduces ? 0 : i] : 1;
        store(i, (float)(factor * weight * g_loss), class_mean, result);
        return weight * result.loss;
    }

    __device__ __forceinline__ void run() const {
        double factor = reduction_factor(), sum = 0;
        float class_mean = params.logit_sum ? (float)mean_class_weight() : 1;
        for (int i = threadIdx.x; i < params.rows; i += Config::threads) {
            if (!is_here(i)) continue;
            float value = loss(i, factor, class_mean);
            if (params.reduces) sum += value;
            else params.loss[i] = value;
        }
        if (!params.reduces) return;
        sum = add_threads(sum);
        if (threadIdx.x == 0) *params.loss = (params.adds ? *params.loss : 0) + (float)(factor * sum);
    }
};

template <class Config> __device__ __forceinline__ void token_loss(const TokenLossParams &params) {
    extern __shared__ __align__(16) u8 dynamic_shared[];
    auto &shared = *(double (*)[Config::threads])dynamic_shared;
    static_assert(sizeof(shared) == Config::shared_bytes, "gen/kernels/token_loss.lua disagrees");
    wait_for_previous_kernel();
    allow_next_kernel();
    TokenLosses<Config>{params, shared}.run();
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(1024, 1)
flp_token_loss_loss_policy_gradient_sm_90a(const __grid_constant__ TokenLossParams params) {
    token_loss<Config>(params);
}
