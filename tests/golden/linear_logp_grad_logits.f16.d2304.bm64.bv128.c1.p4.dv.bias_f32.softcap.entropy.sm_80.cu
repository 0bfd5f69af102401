// fusedlogp linear_logp_grad_logits.f16.d2304.bm64.bv128.c1.p4.dv.bias_f32.softcap.entropy.sm_80
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
    using element = f16;
    static constexpr int block_rows = 64;
    static constexpr int block_vocab = 128;
    static constexpr int block_hidden = 32;
    static constexpr int cluster = 1;
    static constexpr int stages = 4;
    static constexpr bool hidden_is_transposed = false;
    static constexpr bool weight_is_hidden_vocab = true;
    static constexpr int warp_rows = 32;
    static constexpr int warp_columns = 64;
    static constexpr int warps_across = 2;
    static constexpr int vector_bytes = 16;
    static constexpr int fragment_columns = 64;
    static constexpr int hidden_size = 2304;
    static constexpr bool has_bias = true;
    using bias_element = float;
    static constexpr bool has_softcap = true;
    static constexpr float correction = 1.0f;
    static constexpr bool wants_argmax = false;
    static constexpr bool wants_entropy = true;
    static constexpr bool wants_logit_sum = false;
    static constexpr bool has_class_weights = false;
    using class_element = float;
    static constexpr bool is_compact = false;
    using out_element = f16;
    static constexpr bool adds = false;
    static constexpr int threads = 128;
    static constexpr int shared_bytes = 49152;
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
#line 1 "templates/sm80/cp_async.cuh"
// Asynchronous copies from global to shared memory: PTX ISA, "cp.async".
// Config: none
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies the first `valid` of `bytes` bytes (4, 8 or 16; both addresses aligned to them) and fills the others with zeros.
template <int bytes> __device__ __forceinline__ void cp_async(u32 to, const void *from, int valid) {
    if constexpr (bytes == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes), "r"(valid) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` committed groups of this thread are unfinished.
template <int pending> __device__ __forceinline__ void cp_async_wait() {
    asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory");
}
#line 1 "templates/sm80/ldmatrix.cuh"
// Shared memory to matrix fragments: PTX ISA, "ldmatrix".
// Config: none

// Four 8 x 8 matrices of 16-bit elements (or 8 x 4 of 32-bit ones): lane l names row l % 8 of matrix l / 8, and receives of each
// matrix the 32 bits at row l / 4, position l % 4.
__device__ __forceinline__ void ldmatrix(u32 (&d)[4], u32 row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(row_address)
                 : "memory");
}
// Each matrix transposed: 16-bit elements only.
__device__ __forceinline__ void ldmatrix_transposed(u32 (&d)[4], u32 row_address) {
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
                 : "=r"(d[0]), "=r"(d[1]), "=r"(d[2]), "=r"(d[3])
                 : "r"(row_address)
                 : "memory");
}
__device__ __forceinline__ u32 load_shared_word(u32 address) {
    u32 word;
    asm volatile("ld.shared.u32 %0, [%1];" : "=r"(word) : "r"(address) : "memory");
    return word;
}
__device__ __forceinline__ void store_shared_vector(u32 address, const u32 (&words)[4]) {
    asm volatile("st.shared.v4.u32 [%0], {%1, %2, %3, %4};" ::"r"(address), "r"(words[0]), "r"(words[1]), "r"(words[2]), "r"(words[3]) : "memory");
}
#line 1 "templates/sm80/mma.cuh"
// Warp matrix products: PTX ISA, "mma.sync", shapes m16n8k16 (16-bit) and m16n8k8 (tf32), fp32 accumulators.
// Config: none
__device__ __forceinline__ void mma(bf16, float *d, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma(f16, float *d, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}
__device__ __forceinline__ void mma_tf32(float *d, const u32 (&a)[4], u32 b0, u32 b1) {
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
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
#line 1 "templates/sm80/product_walk.cuh"
// The tiles of a persistent block, for the mainloop's feed.
// Config: block_rows, block_vocab, and those of product_tiles
template <class Config> struct ProductWalk {
    ProductTiles<Config> tiles;
    int first_column; // of the right matrix
    int row_block, column_tile;
    bool more;

    __device__ __forceinline__ ProductWalk(const ProductTiles<Config> &tiles, int first_column) : tiles(tiles), first_column(first_column) { next(); }
    __device__ __forceinline__ bool at_end() const { return !more; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return first_column + column_tile * Config::block_vocab; }
    __device__ __forceinline__ void next() { more = tiles.next(row_block, column_tile); }
};
#line 1 "templates/sm80/tile_store.cuh"
// From accumulators to a matrix in memory, each thread its own elements. What is added to them is read by the thread that writes them.
// Config: out_element, adds
template <class Out> struct OutMatrix {
    Out *data;
    i64 stride;
    int rows, columns;

    // Two neighbours may be written at once: the accumulators' columns are even.
    __device__ __forceinline__ bool has_pairs() const { return ((u64)data | (u64)stride * sizeof(Out)) % (2 * sizeof(Out)) == 0; }
};

__device__ __forceinline__ float2 load_pair(const float *from) { return *(const float2 *)from; }
template <class T> __device__ __forceinline__ float2 load_pair(const T *from) {
    u32 pair = *(const u32 *)from;
    return make_float2(to_float(T{(u16)pair}), to_float(T{(u16)(pair >> 16)}));
}
__device__ __forceinline__ void store_pair(float2 values, float *to) { *(float2 *)to = values; }
template <class T> __device__ __forceinline__ void store_pair(float2 values, T *to) { *(u32 *)to = round_pair<T>(values.x, values.y); }

template <class Config> struct TileStore {
    using Out = typename Config::out_element;

    // row, column: the corner of the fragment's 16 rows (row_statistics.cuh) in the matrix.
    template <int count> __device__ __forceinline__ static void store(const OutMatrix<Out> &out, const float (&d)[count], int row, int column) {
        store_values<count>(out, row, column, [&](int i) { return d[i]; });
    }

    // value(i): what takes accumulator i's place, asked for once each and row by row, but for rows outside the matrix.
    template <int count, class Value>
    __device__ __forceinline__ static void store_values(const OutMatrix<Out> &out, int row, int column, Value value) {
        int lane = lane_index_reread(), c = column + 2 * (lane % 4);
        bool has_pairs = out.has_pairs();
#pragma unroll
        for (int h = 0; h < 2; h++) {
            int r = row + lane / 4 + 8 * h;
            if (r >= out.rows) continue;
            Out *to = out.data + r * out.stride + c;
#pragma unroll
            for (int i = 0; i < count; i += 4) {
                int left = out.columns - c - 2 * i;
                float first = value(i + 2 * h), second = value(i + 2 * h + 1);
                if (left >= 2 && has_pairs) {
                    update_pair(make_float2(first, second), to + 2 * i);
                } else {
                    if (left >= 1) update(first, to + 2 * i);
                    if (left >= 2) update(second, to + 2 * i + 1);
                }
            }
        }
    }

    __device__ __forceinline__ static void update_pair(float2 values, Out *to) {
        if constexpr (Config::adds) {
            float2 old = load_pair(to);
            values = make_float2(values.x + old.x, values.y + old.y);
        }
        store_pair(values, to);
    }

    __device__ __forceinline__ static void update(float value, Out *to) {
        if constexpr (Config::adds) value += to_float(*to);
        store_rounded(value, to);
    }
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
#line 1 "templates/sm80/linear_logp_grad_logits.cuh"
// The derivative of the loss by a chunk of the logits on any GPU from sm_80 on: the forward's mainloop, then logit_gradients, then a store.
// Config: hidden_size, block_hidden, and those of tile_product, product_walk, logit_gradients and tile_store
template <class Config> __device__ __forceinline__ void linear_logp_grad_logits(const LogitGradientsParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(Stages<Config> *)dynamic_shared;
    static_assert(sizeof(Stages<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    using Out = typename Config::out_element;
    int rows = counted(params.row_count, params.rows);
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, rows, params.vocab, Config::hidden_size};
    const OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    Feed<Config, ProductWalk<Config>> feed({tiles, params.first_column});
    TileProduct<Config> product(shared);
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    int row_block, column_tile;
    while (tiles.next(row_block, column_tile)) {
        product.multiply(d, feed, matrices, steps);
        int row = row_block * Config::block_rows + product.row, column = column_tile * Config::block_vocab + product.column;
#pragma unroll
        for (int i = 0; i < product.row_blocks; i++) {
            LogitGradients<Config> gradients; // read here rather than held through the products
            gradients.begin(params, row + 16 * i);
            gradients.transform(params, d[i], params.first_column + column);
            TileStore<Config>::store(out, d[i], row + 16 * i, column);
        }
    }
}
#line 1 "entry"
extern "C" __global__ void __launch_bounds__(128, 2)
flp_linear_logp_grad_logits_f16_d2304_bm64_bv128_c1_p4_dv_bias_f32_softcap_entropy_sm_80(const __grid_constant__ LogitGradientsParams params) {
    linear_logp_grad_logits<Config>(params);
}
