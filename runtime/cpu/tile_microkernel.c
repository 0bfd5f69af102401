/* Two tiles of vocabulary entries times two of rows: four products for four loaded tiles. These and the four sums are all eight tiles of the processor.
 *
 * A tile is sixteen rows of sixteen 32-bit words. Of the weight, a row is an entry and a word two neighbours in k; of hidden, a row is two neighbours in k and
 * a word a row of hidden, which is how a set lies in memory. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "cpu/tile_microkernel.h"
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include "cpu/row_statistics.h"

#if defined(__x86_64__) && defined(__linux__) && (defined(__clang__) || __GNUC__ >= 11)
#include <cpuid.h>
#include <immintrin.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TARGET __attribute__((target("avx512f,amx-tile,amx-bf16")))

enum {
    TILE = 16,          /* rows of a tile, and words of a row */
    TILE_BYTES = 64,    /* of a row */
    BLOCK_ENTRIES = 32, /* two tiles of entries */
    BLOCK_SETS = 2      /* and two of rows */
};

/* ---- whether the tiles may be used ---- */

/* From Intel's manual of the instruction set, chapter CPUID, leaf 7. */
static int processor_has_tiles(void)
{
    const unsigned amx_bf16 = 1u << 22, amx_tile = 1u << 24;
    unsigned eax, ebx, ecx, edx;
    return __get_cpuid_count(7, 0, &eax, &ebx, &ecx, &edx) && (edx & amx_bf16) && (edx & amx_tile) && __builtin_cpu_supports("avx512f");
}

/* From Linux's documentation of dynamically enabled features of x86: the request, and the number of the tiles' state. */
static int system_gives_tiles(void)
{
    enum { ARCH_REQ_XCOMP_PERM = 0x1023, XFEATURE_XTILEDATA = 18 };
    return syscall(SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) == 0;
}

static int has_tiles;

static void find_tiles(void)
{
    has_tiles = processor_has_tiles() && system_gives_tiles();
}

int flp_tile_microkernel_is_supported(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, find_tiles);
    return has_tiles;
}

/* ---- copies of operands that tiles cannot load where they lie ---- */

typedef struct {
    _Alignas(TILE_BYTES) float weight[BLOCK_ENTRIES * FLP_MICROKERNEL_DEPTH / 2]; /* [entries][words]: a block of entries, with zeros to whole tiles */
    float hidden[BLOCK_SETS][TILE * TILE];                                        /* the last words of the sets, with zeros to whole tiles */
    float products[BLOCK_SETS * BLOCK_ENTRIES * FLP_LANES];
} copies;

static __mmask16 first_lanes(int64_t count)
{
    return (__mmask16)(count >= TILE ? 0xffff : count <= 0 ? 0 : (1 << count) - 1);
}

/* Turns to[i][j] = from[j][i] of sixteen vectors of sixteen words: pairs of words, of twice as many, and so on. */
TARGET static void transpose(const __m512i from[TILE], float *to, int64_t stride)
{
    __m512i a[TILE], b[TILE];
#pragma GCC unroll 16
    for (int i = 0; i < TILE; i += 2) {
        a[i] = _mm512_unpacklo_epi32(from[i], from[i + 1]);
        a[i + 1] = _mm512_unpackhi_epi32(from[i], from[i + 1]);
    }
#pragma GCC unroll 4
    for (int i = 0; i < TILE; i += 4) {
        b[i] = _mm512_unpacklo_epi64(a[i], a[i + 2]);
        b[i + 1] = _mm512_unpackhi_epi64(a[i], a[i + 2]);
        b[i + 2] = _mm512_unpacklo_epi64(a[i + 1], a[i + 3]);
        b[i + 3] = _mm512_unpackhi_epi64(a[i + 1], a[i + 3]);
    }
    /* b[4 g + c] has, in its lane of 128 bits l, column 4 l + c of rows 4 g .. 4 g + 3. */
#pragma GCC unroll 4
    for (int c = 0; c < 4; c++) {
        __m512i even_low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0x88), odd_low = _mm512_shuffle_i32x4(b[c], b[4 + c], 0xdd);
        __m512i even_high = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0x88), odd_high = _mm512_shuffle_i32x4(b[8 + c], b[12 + c], 0xdd);
        _mm512_storeu_si512(to + c * stride, _mm512_shuffle_i32x4(even_low, even_high, 0x88));
        _mm512_storeu_si512(to + (4 + c) * stride, _mm512_shuffle_i32x4(odd_low, odd_high, 0x88));
        _mm512_storeu_si512(to + (8 + c) * stride, _mm512_shuffle_i32x4(even_low, even_high, 0xdd));
        _mm512_storeu_si512(to + (12 + c) * stride, _mm512_shuffle_i32x4(odd_low, odd_high, 0xdd));
    }
}

/* Copies `entries` entries, at most BLOCK_ENTRIES, to [BLOCK_ENTRIES][depth], depth the operands' in whole tiles. */
TARGET static void copy_weight(const flp_microkernel_operands *operands, const float *weight, int entries, int64_t depth, float *to)
{
    for (int64_t k = 0; k < depth; k += TILE) {
        const int64_t words = operands->depth - k;
        for (int first = 0; first < BLOCK_ENTRIES; first += TILE) {
            float *tile = to + first * depth + k;
            if (operands->depth_stride == 1) {
                for (int e = 0; e < TILE; e++)
                    _mm512_storeu_ps(tile + e * depth,
                                     _mm512_maskz_loadu_ps(first + e < entries ? first_lanes(words) : 0, weight + (first + e) * operands->entry_stride + k));
                continue;
            }
            __m512i line[TILE];
            for (int i = 0; i < TILE; i++)
                line[i] = _mm512_maskz_loadu_epi32(i < words ? first_lanes(entries - first) : 0, weight + (k + i) * operands->depth_stride + first);
            transpose(line, tile, depth);
        }
    }
}

TARGET static void copy_last_hidden(const flp_microkernel_operands *operands, int sets, copies *to)
{
    const int64_t begin = operands->depth / TILE * TILE;
    for (int set = 0; set < sets; set++)
        for (int i = 0; i < TILE; i++)
            _mm512_store_ps(to->hidden[set] + i * TILE, _mm512_maskz_loadu_ps(begin + i < operands->depth ? 0xffff : 0,
                                                                              operands->hidden + set * operands->hidden_stride + (begin + i) * FLP_LANES));
}

/* ---- products ---- */

/* A block's entries, each `stride` words after the one before, and in whole tiles of words. */
typedef struct {
    const float *data;
    int64_t stride;
} block_entries;

TARGET static inline __attribute__((always_inline)) void multiply_tiles(const block_entries *entries, const float *first_set, const float *second_set,
                                                                        int64_t k, int sets)
{
    _tile_loadd(4, entries->data + k, (size_t)entries->stride * sizeof(float));
    _tile_loadd(6, first_set, TILE_BYTES);
    _tile_dpbf16ps(0, 4, 6);
    _tile_loadd(5, entries->data + TILE * entries->stride + k, (size_t)entries->stride * sizeof(float));
    _tile_dpbf16ps(1, 5, 6);
    if (sets == 2) {
        _tile_loadd(7, second_set, TILE_BYTES);
        _tile_dpbf16ps(2, 4, 7);
        _tile_dpbf16ps(3, 5, 7);
    }
}

/* products [set][BLOCK_ENTRIES][16], products_stride apart, = the sums of a block of entries and of one set or two. */
TARGET static inline __attribute__((always_inline)) void multiply_block(const flp_microkernel_operands *operands, const block_entries *entries, int sets,
                                                                        const copies *last, float *products, int64_t products_stride)
{
    const float *second = operands->hidden + operands->hidden_stride;
    int64_t k = 0;
    atomic_signal_fence(memory_order_seq_cst); /* completes the copies: the compiler does not know that tile instructions read memory */
    _tile_zero(0);
    _tile_zero(1);
    if (sets == 2) {
        _tile_zero(2);
        _tile_zero(3);
    }
    for (; k + TILE <= operands->depth; k += TILE)
        multiply_tiles(entries, operands->hidden + k * FLP_LANES, second + k * FLP_LANES, k, sets);
    if (k < operands->depth)
        multiply_tiles(entries, last->hidden[0], last->hidden[1], k, sets);
    _tile_stored(0, products, TILE_BYTES);
    _tile_stored(1, products + TILE * FLP_LANES, TILE_BYTES);
    if (sets == 2) {
        _tile_stored(2, products + products_stride, TILE_BYTES);
        _tile_stored(3, products + products_stride + TILE * FLP_LANES, TILE_BYTES);
    }
}

TARGET static void add_products(const flp_microkernel_operands *operands, int sets, int entries, const float *products)
{
    for (int set = 0; set < sets; set++) {
        const float *from = products + set * BLOCK_ENTRIES * FLP_LANES;
        float *to = operands->products + set * operands->products_stride;
        for (int i = 0; i < entries * FLP_LANES; i += FLP_LANES) {
            __m512 sum = _mm512_load_ps(from + i);
            if (operands->accumulate)
                sum = _mm512_add_ps(sum, _mm512_load_ps(to + i));
            _mm512_store_ps(to + i, sum);
        }
    }
}

/* One block of entries times all sets. */
TARGET static void multiply_sets(const flp_microkernel_operands *operands, const block_entries *block, int entries, int sets, copies *copy)
{
    const int in_place = entries == BLOCK_ENTRIES && !operands->accumulate;
    flp_microkernel_operands next = *operands;
    for (int set = 0, taken; set < sets; set += taken) {
        float *products = in_place ? next.products : copy->products;
        const int64_t stride = in_place ? next.products_stride : BLOCK_ENTRIES * FLP_LANES;
        taken = sets - set < BLOCK_SETS ? 1 : BLOCK_SETS;
        if (next.depth % TILE != 0)
            copy_last_hidden(&next, taken, copy);
        if (taken == BLOCK_SETS)
            multiply_block(&next, block, BLOCK_SETS, copy, products, stride);
        else
            multiply_block(&next, block, 1, copy, products, stride);
        if (!in_place)
            add_products(&next, taken, entries, products);
        next.hidden += taken * next.hidden_stride;
        next.products += taken * next.products_stride;
    }
}

/* All tiles have sixteen whole rows. From Intel's manual: what LDTILECFG reads. */
TARGET static void configure_tiles(void)
{
    static const struct {
        uint8_t palette, start_row, reserved[14];
        uint16_t row_bytes[16];
        uint8_t rows[16];
    } shapes = { .palette = 1,
                 .row_bytes = { TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES, TILE_BYTES },
                 .rows = { TILE, TILE, TILE, TILE, TILE, TILE, TILE, TILE } };
    _tile_loadconfig(&shapes);
}

TARGET void flp_tile_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands)
{
    (void)kernel;
    const int64_t whole_depth = (operands->depth + TILE - 1) / TILE * TILE;
    flp_microkernel_operands next = *operands;
    copies copy;
    configure_tiles();
    for (int e = 0; e < entries; e += BLOCK_ENTRIES) {
        const int taken = entries - e < BLOCK_ENTRIES ? entries - e : BLOCK_ENTRIES;
        block_entries block = { next.weight, next.entry_stride };
        if (next.depth_stride != 1 || taken < BLOCK_ENTRIES || whole_depth != next.depth) {
            copy_weight(&next, next.weight, taken, whole_depth, copy.weight);
            block = (block_entries){ copy.weight, whole_depth };
        }
        multiply_sets(&next, &block, taken, sets, &copy);
        next.weight += BLOCK_ENTRIES * next.entry_stride;
        next.products += BLOCK_ENTRIES * FLP_LANES;
    }
    _tile_release();
}

#else

int flp_tile_microkernel_is_supported(void)
{
    return 0;
}

void flp_tile_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands)
{
    (void)kernel, (void)sets, (void)entries, (void)operands;
}
#endif
