/* The microkernels of this build, the choice of one for this processor, and its application to any number of rows and entries. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* secure_getenv */
#endif
#include "cpu/microkernel.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include "base/log.h"
#include "cpu/row_statistics.h"
#include "cpu/tile_microkernel.h"

enum { MOST_ENTRIES = 12 /* the most `entries` of a kernel */ };

/* A fused multiply-add rounds once, so its bits differ from those of a product that is rounded before the addition. Intrinsics request it explicitly, because
 * it depends on the compiler's options whether w * x + sum is fused. */
#ifdef __x86_64__
#include <immintrin.h>
#elif defined(__ARM_FEATURE_FMA)
#include <arm_neon.h>
#endif

/* ---- any processor: vectors of 16 bytes ---- */

#if defined(__x86_64__) && defined(__FMA__)
#define ANY_ARITHMETIC "fma"
#define ANY_MULTIPLY_ADD(w, row, sum) (flp_float4) _mm_fmadd_ps(_mm_set1_ps(w), (__m128)(row), (__m128)(sum))
#elif defined(__ARM_FEATURE_FMA)
#define ANY_ARITHMETIC "fma"
#define ANY_MULTIPLY_ADD(w, row, sum) (flp_float4) vfmaq_n_f32((float32x4_t)(sum), (float32x4_t)(row), w)
#else
#define ANY_ARITHMETIC "multiply-add"
#define ANY_MULTIPLY_ADD(w, row, sum) ((sum) + (w) * (row))
#endif

#define MICROKERNEL any_several
#define VECTOR flp_float4
#define SETS 1
#define ENTRIES 3
#define TARGET
#define MULTIPLY_ADD ANY_MULTIPLY_ADD
#include "cpu/microkernel_body.h"

#define MICROKERNEL any_single
#define VECTOR flp_float4
#define SETS 1
#define ENTRIES 1
#define TARGET
#define MULTIPLY_ADD ANY_MULTIPLY_ADD
#include "cpu/microkernel_body.h"

static int always(void)
{
    return 1;
}

#ifdef __x86_64__
typedef float float8 __attribute__((vector_size(32)));
typedef float float16 __attribute__((vector_size(64)));

/* ---- AVX2 and FMA: 12 accumulators hide the latency of the multiply-adds, of which 2 start in each cycle and take 4 cycles ---- */

#define MICROKERNEL avx2_several
#define VECTOR float8
#define SETS 1
#define ENTRIES 6
#define TARGET __attribute__((target("avx2,fma")))
#define MULTIPLY_ADD(w, row, sum) (float8) _mm256_fmadd_ps(_mm256_set1_ps(w), (__m256)(row), (__m256)(sum))
#include "cpu/microkernel_body.h"

#define MICROKERNEL avx2_single
#define VECTOR float8
#define SETS 1
#define ENTRIES 1
#define TARGET __attribute__((target("avx2,fma")))
#define MULTIPLY_ADD(w, row, sum) (float8) _mm256_fmadd_ps(_mm256_set1_ps(w), (__m256)(row), (__m256)(sum))
#include "cpu/microkernel_body.h"

static int has_avx2(void)
{
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
}

/* ---- AVX-512: with one set of rows a call waits for loads of the weight; with two the multiply-add units stay busy ---- */

#define MICROKERNEL avx512_two_sets
#define VECTOR float16
#define SETS 2
#define ENTRIES 12
#define TARGET __attribute__((target("avx512f")))
#define MULTIPLY_ADD(w, row, sum) (float16) _mm512_fmadd_ps(_mm512_set1_ps(w), (__m512)(row), (__m512)(sum))
#include "cpu/microkernel_body.h"

#define MICROKERNEL avx512_several
#define VECTOR float16
#define SETS 1
#define ENTRIES 12
#define TARGET __attribute__((target("avx512f")))
#define MULTIPLY_ADD(w, row, sum) (float16) _mm512_fmadd_ps(_mm512_set1_ps(w), (__m512)(row), (__m512)(sum))
#include "cpu/microkernel_body.h"

#define MICROKERNEL avx512_single
#define VECTOR float16
#define SETS 1
#define ENTRIES 1
#define TARGET __attribute__((target("avx512f")))
#define MULTIPLY_ADD(w, row, sum) (float16) _mm512_fmadd_ps(_mm512_set1_ps(w), (__m512)(row), (__m512)(sum))
#include "cpu/microkernel_body.h"

static int has_avx512(void)
{
    return __builtin_cpu_supports("avx512f") && has_avx2();
}

/* ---- AVX-512 with dot products of bf16 ---- */

#define MULTIPLY_ADD_PAIRS(w, row, sum) (float16) _mm512_dpbf16_ps((__m512)(sum), (__m512bh)_mm512_set1_ps(w), (__m512bh)(row))

#define MICROKERNEL avx512_bf16_two_sets
#define VECTOR float16
#define SETS 2
#define ENTRIES 12
#define TARGET __attribute__((target("avx512f,avx512bf16")))
#define MULTIPLY_ADD MULTIPLY_ADD_PAIRS
#include "cpu/microkernel_body.h"

#define MICROKERNEL avx512_bf16_several
#define VECTOR float16
#define SETS 1
#define ENTRIES 12
#define TARGET __attribute__((target("avx512f,avx512bf16")))
#define MULTIPLY_ADD MULTIPLY_ADD_PAIRS
#include "cpu/microkernel_body.h"

#define MICROKERNEL avx512_bf16_single
#define VECTOR float16
#define SETS 1
#define ENTRIES 1
#define TARGET __attribute__((target("avx512f,avx512bf16")))
#define MULTIPLY_ADD MULTIPLY_ADD_PAIRS
#include "cpu/microkernel_body.h"

static int has_avx512_bf16(void)
{
    return __builtin_cpu_supports("avx512bf16") && has_avx512();
}
#endif

/* ---- any number of sets and entries by vectors ---- */

/* Multiplies the last entries, which are fewer than kernel->entries. One call of the kernel computes them together with entries before them, whose products
 * it computes a second time, into a buffer of its own. This costs less than a call for each entry. */
static void multiply_last(const flp_microkernel *kernel, flp_microkernel_function *function, int sets, int last, const flp_microkernel_operands *end)
{
    _Alignas(64) float products[2 * MOST_ENTRIES * FLP_LANES];
    const int again = kernel->entries - last;
    flp_microkernel_operands whole = *end;
    whole.weight -= again * whole.entry_stride;
    whole.products = products;
    whole.products_stride = kernel->entries * FLP_LANES;
    whole.accumulate = 0;
    function(&whole);
    for (int set = 0; set < sets; set++) {
        const float *from = products + set * whole.products_stride + again * FLP_LANES;
        float *to = end->products + set * end->products_stride;
        for (int i = 0; i < last * FLP_LANES; i++)
            to[i] = end->accumulate ? from[i] + to[i] : from[i];
    }
}

static void multiply_entries(const flp_microkernel *kernel, flp_microkernel_function *function, int sets, int entries, flp_microkernel_operands operands)
{
    int e = 0;
    for (; e + kernel->entries <= entries; e += kernel->entries) {
        function(&operands);
        operands.weight += kernel->entries * operands.entry_stride;
        operands.products += kernel->entries * FLP_LANES;
    }
    if (e < entries)
        multiply_last(kernel, function, sets, entries - e, &operands);
}

static void multiply_one_by_one(const flp_microkernel *kernel, int entries, flp_microkernel_operands operands)
{
    for (int e = 0; e < entries; e++) {
        kernel->single(&operands);
        operands.weight += operands.entry_stride;
        operands.products += FLP_LANES;
    }
}

static void multiply_by_vectors(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands)
{
    flp_microkernel_operands next = *operands;
    for (int set = 0, taken; set < sets; set += taken) {
        taken = kernel->two_sets != NULL && set + 2 <= sets && entries >= kernel->entries ? 2 : 1;
        if (entries < kernel->entries)
            multiply_one_by_one(kernel, entries, next);
        else
            multiply_entries(kernel, taken == 2 ? kernel->two_sets : kernel->several, taken, entries, next);
        next.hidden += taken * next.hidden_stride;
        next.products += taken * next.products_stride;
    }
}

/* ---- the choice ---- */

const flp_microkernel flp_microkernels[] = {
#ifdef __x86_64__
    { "avx512", "fma", 1, has_avx512, multiply_by_vectors, 12, avx512_two_sets, avx512_several, avx512_single },
    { "avx2", "fma", 1, has_avx2, multiply_by_vectors, 6, NULL, avx2_several, avx2_single },
#endif
    { "any", ANY_ARITHMETIC, 1, always, multiply_by_vectors, 3, NULL, any_several, any_single },
};
const int flp_microkernel_count = sizeof flp_microkernels / sizeof *flp_microkernels;

const flp_microkernel flp_bf16_microkernels[] = {
#ifdef __x86_64__
    { "amx_bf16", "tdpbf16ps", 2, flp_tile_microkernel_is_supported, flp_tile_microkernel_multiply, 0, NULL, NULL, NULL },
    { "avx512_bf16", "vdpbf16ps", 2, has_avx512_bf16, multiply_by_vectors, 12, avx512_bf16_two_sets, avx512_bf16_several, avx512_bf16_single },
#endif
    { 0 }, /* C has no empty arrays */
};
const int flp_bf16_microkernel_count = sizeof flp_bf16_microkernels / sizeof *flp_bf16_microkernels - 1;

const flp_microkernel *flp_microkernel_best(void)
{
    const flp_microkernel *kernel = flp_microkernels;
    while (!kernel->is_supported())
        kernel++;
    return kernel;
}

/* NULL: fp32 is used. Set once for the process, because forward and backward have to use the same kernel. */
static const flp_microkernel *bf16_kernel;

/* The first bf16 kernel that FUSEDLOGP_CPU_BF16 allows: a name allows that kernel and those after it, 0 allows none. */
static int first_allowed(void)
{
    static const char variable[] = "FUSEDLOGP_CPU_BF16";
    const char *wanted = secure_getenv(variable);
    if (wanted == NULL || *wanted == '\0' || flp_bf16_microkernel_count == 0)
        return 0;
    if (strcmp(wanted, "0") == 0)
        return flp_bf16_microkernel_count;
    for (int i = 0; i < flp_bf16_microkernel_count; i++)
        if (strcmp(wanted, flp_bf16_microkernels[i].name) == 0)
            return i;
    flp_log_warning("%s: got '%s', wanted 0, avx512_bf16 or amx_bf16", variable, wanted);
    return 0;
}

static void find_bf16_kernel(void)
{
    for (int i = first_allowed(); i < flp_bf16_microkernel_count && bf16_kernel == NULL; i++)
        if (flp_bf16_microkernels[i].is_supported())
            bf16_kernel = &flp_bf16_microkernels[i];
}

const flp_microkernel *flp_microkernel_of(flp_dtype dtype)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    if (dtype != FLP_BF16) /* a process asks for tiles only if it needs them */
        return flp_microkernel_best();
    flp_log_hold(); /* a callback may call the library */
    pthread_once(&once, find_bf16_kernel);
    flp_log_resume();
    return bf16_kernel != NULL ? bf16_kernel : flp_microkernel_best();
}

void flp_microkernel_multiply(const flp_microkernel *kernel, int sets, int entries, const flp_microkernel_operands *operands)
{
    kernel->multiply(kernel, sets, entries, operands);
}
