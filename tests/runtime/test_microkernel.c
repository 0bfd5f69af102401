/* Every microkernel that this processor runs: exact on whole numbers, and one chain of additions. */
#include "cases.h"
#include "cpu/convert.h"
#include "cpu/microkernel.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

enum { DEPTH = 37, LANES = 16, MOST_ENTRIES = 12, STRIDE = 40 };

typedef struct {
    _Alignas(64) float hidden[DEPTH * LANES];
    _Alignas(64) float products[(MOST_ENTRIES + 1) * LANES];
    float weight[MOST_ENTRIES * STRIDE], columns[DEPTH * MOST_ENTRIES]; /* [entry][STRIDE], and the same as [k][entry] */
} operands;

static void fill(operands *o, int whole)
{
    for (int i = 0; i < DEPTH * LANES; i++)
        o->hidden[i] = (float)(whole ? (double)(flp_case_random(1, (uint64_t)i) % 9) - 4 : flp_case_random_normal(1, (uint64_t)i));
    for (int e = 0; e < MOST_ENTRIES; e++) {
        for (int k = 0; k < DEPTH; k++) {
            uint64_t at = (uint64_t)(e * DEPTH + k);
            float w = (float)(whole ? (double)(flp_case_random(2, at) % 9) - 4 : flp_case_random_normal(2, at));
            o->weight[e * STRIDE + k] = o->columns[k * MOST_ENTRIES + e] = w;
        }
    }
}

static void whole_numbers_are_exact(void **state)
{
    (void)state;
    static operands o;
    fill(&o, 1);
    for (int i = 0; i < flp_microkernel_count; i++) {
        const flp_microkernel *kernel = &flp_microkernels[i];
        if (!kernel->is_supported())
            continue;
        for (int times = 0; times < 3; times++) {
            for (int j = 0; j < (MOST_ENTRIES + 1) * LANES; j++)
                o.products[j] = 1000;
            kernel->several(DEPTH, o.hidden, o.weight, STRIDE, 1, o.products, times);
            for (int e = 0; e <= kernel->entries; e++) {
                for (int lane = 0; lane < LANES; lane++) {
                    float want = times || e == kernel->entries ? 1000 : 0;
                    for (int k = 0; k < DEPTH && e < kernel->entries; k++)
                        want += o.hidden[k * LANES + lane] * o.weight[e * STRIDE + k];
                    assert_true(o.products[e * LANES + lane] == want);
                }
            }
        }
    }
}

static void layouts_and_entry_counts_give_the_same_bits(void **state)
{
    (void)state;
    static operands o;
    static _Alignas(64) float first[MOST_ENTRIES * LANES];
    fill(&o, 0);
    for (int i = 0; i < flp_microkernel_count; i++) {
        const flp_microkernel *kernel = &flp_microkernels[i];
        if (!kernel->is_supported())
            continue;
        size_t bytes = (size_t)kernel->entries * LANES * sizeof(float);
        kernel->several(DEPTH, o.hidden, o.weight, STRIDE, 1, o.products, 0);
        memcpy(first, o.products, bytes);
        kernel->several(DEPTH, o.hidden, o.columns, 1, MOST_ENTRIES, o.products, 0);
        assert_memory_equal(first, o.products, bytes);
        memset(o.products, 0, bytes);
        for (int e = 0; e < kernel->entries; e++)
            kernel->single(DEPTH, o.hidden, o.weight + e * STRIDE, STRIDE, 1, o.products + e * LANES, 0);
        assert_memory_equal(first, o.products, bytes);
    }
}

/* Several at a time, the rest one by one. */
static void any_number_of_entries_has_the_bits_of_single_ones(void **state)
{
    (void)state;
    static operands o;
    static _Alignas(64) float single[MOST_ENTRIES * LANES];
    const size_t bytes = sizeof single;
    fill(&o, 0);
    for (int i = 0; i < flp_microkernel_count; i++) {
        const flp_microkernel *kernel = &flp_microkernels[i];
        if (!kernel->is_supported())
            continue;
        for (int e = 0; e < MOST_ENTRIES; e++)
            kernel->single(DEPTH, o.hidden, o.weight + e * STRIDE, STRIDE, 1, single + e * LANES, 0);
        for (int entries = 0; entries <= MOST_ENTRIES; entries++) {
            for (int j = 0; j < (MOST_ENTRIES + 1) * LANES; j++)
                o.products[j] = 1000;
            flp_microkernel_multiply(kernel, entries, DEPTH, o.hidden, o.weight, STRIDE, 1, o.products, 0);
            assert_memory_equal(single, o.products, bytes / MOST_ENTRIES * (size_t)entries);
            assert_true(o.products[entries * LANES] == 1000);
            flp_microkernel_multiply(kernel, entries, DEPTH, o.hidden, o.columns, 1, MOST_ENTRIES, o.products, 0);
            assert_memory_equal(single, o.products, bytes / MOST_ENTRIES * (size_t)entries);
        }
    }
}

static void equal_arithmetic_means_equal_bits(void **state)
{
    (void)state;
    static operands o;
    static _Alignas(64) float first[MOST_ENTRIES * LANES];
    fill(&o, 0);
    for (int a = 0; a < flp_microkernel_count; a++) {
        for (int b = 0; b < a; b++) {
            const flp_microkernel *one = &flp_microkernels[a], *other = &flp_microkernels[b];
            if (!one->is_supported() || !other->is_supported() || strcmp(one->arithmetic, other->arithmetic) != 0)
                continue;
            for (int e = 0; e < MOST_ENTRIES; e++) {
                one->single(DEPTH, o.hidden, o.weight + e * STRIDE, STRIDE, 1, first, 0);
                other->single(DEPTH, o.hidden, o.weight + e * STRIDE, STRIDE, 1, o.products, 0);
                assert_memory_equal(first, o.products, LANES * sizeof(float));
            }
        }
    }
}

static void the_best_is_the_first_supported(void **state)
{
    (void)state;
    const flp_microkernel *best = flp_microkernel_best();
    assert_true(best->is_supported());
    for (const flp_microkernel *k = flp_microkernels; k < best; k++)
        assert_false(k->is_supported());
    assert_true(flp_microkernels[flp_microkernel_count - 1].is_supported());
}

/* ---- bf16, two a word ---- */

enum { PAIRS = 19, PAIR_STRIDE = 20 };

typedef struct {
    _Alignas(64) uint32_t hidden[PAIRS * LANES];
    _Alignas(64) float products[(MOST_ENTRIES + 1) * LANES];
    uint32_t weight[MOST_ENTRIES * PAIR_STRIDE], columns[PAIRS * MOST_ENTRIES];
} pair_operands;

static uint32_t random_pair(int stream, uint64_t at)
{
    float low = (float)flp_case_random_normal(stream, 2 * at), high = (float)flp_case_random_normal(stream, 2 * at + 1);
    return flp_convert_f32_to_bf16(low) | (uint32_t)flp_convert_f32_to_bf16(high) << 16;
}

static void fill_pairs(pair_operands *o)
{
    for (int i = 0; i < PAIRS * LANES; i++)
        o->hidden[i] = random_pair(3, (uint64_t)i);
    for (int e = 0; e < MOST_ENTRIES; e++)
        for (int k = 0; k < PAIRS; k++)
            o->weight[e * PAIR_STRIDE + k] = o->columns[k * MOST_ENTRIES + e] = random_pair(4, (uint64_t)(e * PAIRS + k));
}

/* What the header promises, in C. */
static float chain(const uint32_t *hidden, const uint32_t *weight)
{
    float sum = 0;
    for (int k = 0; k < PAIRS; k++) {
        sum = fmaf(flp_convert_bf16_to_f32((uint16_t)(hidden[k * LANES] >> 16)), flp_convert_bf16_to_f32((uint16_t)(weight[k] >> 16)), sum);
        sum = fmaf(flp_convert_bf16_to_f32((uint16_t)hidden[k * LANES]), flp_convert_bf16_to_f32((uint16_t)weight[k]), sum);
    }
    return sum;
}

static void pairs_are_one_chain_in_any_layout_and_number(void **state)
{
    (void)state;
    static pair_operands o;
    fill_pairs(&o);
    for (int i = 0; i < flp_bf16_microkernel_count; i++) {
        const flp_microkernel *kernel = &flp_bf16_microkernels[i];
        assert_int_equal(kernel->packed, 2);
        if (!kernel->is_supported())
            continue;
        for (int entries = 0; entries <= MOST_ENTRIES; entries++) {
            for (int turned = 0; turned < 2; turned++) {
                const float *hidden = (const float *)o.hidden, *weight = (const float *)(turned ? o.columns : o.weight);
                for (int j = 0; j < (MOST_ENTRIES + 1) * LANES; j++)
                    o.products[j] = 1000;
                flp_microkernel_multiply(kernel, entries, PAIRS, hidden, weight, turned ? 1 : PAIR_STRIDE, turned ? MOST_ENTRIES : 1, o.products, 0);
                assert_true(o.products[entries * LANES] == 1000);
                for (int j = 0; j < entries * LANES; j++)
                    assert_true(o.products[j] == chain(o.hidden + j % LANES, o.weight + j / LANES * PAIR_STRIDE));
            }
        }
    }
}

static void other_types_are_multiplied_in_fp32(void **state)
{
    (void)state;
    assert_ptr_equal(flp_microkernel_of(FLP_F32), flp_microkernel_best());
    assert_ptr_equal(flp_microkernel_of(FLP_F16), flp_microkernel_best());
    const flp_microkernel *kernel = flp_microkernel_of(FLP_BF16);
    assert_true(kernel->is_supported());
    assert_true(kernel->packed == 2 || kernel == flp_microkernel_best());
    assert_int_equal(flp_microkernel_words(kernel, 7), kernel->packed == 2 ? 4 : 7);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(whole_numbers_are_exact),
        cmocka_unit_test(layouts_and_entry_counts_give_the_same_bits),
        cmocka_unit_test(any_number_of_entries_has_the_bits_of_single_ones),
        cmocka_unit_test(equal_arithmetic_means_equal_bits),
        cmocka_unit_test(the_best_is_the_first_supported),
        cmocka_unit_test(pairs_are_one_chain_in_any_layout_and_number),
        cmocka_unit_test(other_types_are_multiplied_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
