/* Every microkernel that this processor runs: exact on whole numbers, and the chain of additions that its header promises. */
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

enum { DEPTH = 37, LANES = 16, MOST_SETS = 3, MOST_ENTRIES = 14, STRIDE = 40, PRODUCTS = (MOST_ENTRIES + 1) * LANES /* of a set */ };

typedef struct {
    _Alignas(64) float hidden[MOST_SETS * DEPTH * LANES];
    _Alignas(64) float products[MOST_SETS * PRODUCTS];
    float weight[MOST_ENTRIES * STRIDE], columns[DEPTH * MOST_ENTRIES]; /* [entry][STRIDE], and the same as [k][entry] */
} operands;

static void fill(operands *o, int whole)
{
    for (int i = 0; i < MOST_SETS * DEPTH * LANES; i++)
        o->hidden[i] = (float)(whole ? (double)(flp_case_random(1, (uint64_t)i) % 9) - 4 : flp_case_random_normal(1, (uint64_t)i));
    for (int e = 0; e < MOST_ENTRIES; e++) {
        for (int k = 0; k < DEPTH; k++) {
            uint64_t at = (uint64_t)(e * DEPTH + k);
            float w = (float)(whole ? (double)(flp_case_random(2, at) % 9) - 4 : flp_case_random_normal(2, at));
            o->weight[e * STRIDE + k] = o->columns[k * MOST_ENTRIES + e] = w;
        }
    }
}

static flp_microkernel_operands operands_of(operands *o, int columns)
{
    return (flp_microkernel_operands){ .depth = DEPTH,
                                       .hidden = o->hidden,
                                       .hidden_stride = DEPTH * LANES,
                                       .weight = columns ? o->columns : o->weight,
                                       .entry_stride = columns ? 1 : STRIDE,
                                       .depth_stride = columns ? MOST_ENTRIES : 1,
                                       .products = o->products,
                                       .products_stride = PRODUCTS };
}

static void set_products(operands *o, float value)
{
    for (int i = 0; i < MOST_SETS * PRODUCTS; i++)
        o->products[i] = value;
}

static void expect_exact(const flp_microkernel *kernel, operands *o, int sets, int entries, int columns, int accumulate)
{
    flp_microkernel_operands call = operands_of(o, columns);
    call.accumulate = accumulate;
    set_products(o, 1000);
    flp_microkernel_multiply(kernel, sets, entries, &call);
    for (int j = 0; j < MOST_SETS * PRODUCTS; j++) {
        int set = j / PRODUCTS, e = j / LANES % (MOST_ENTRIES + 1), is_written = set < sets && e < entries;
        float want = accumulate || !is_written ? 1000 : 0;
        for (int k = 0; k < DEPTH && is_written; k++)
            want += o->hidden[(set * DEPTH + k) * LANES + j % LANES] * o->weight[e * STRIDE + k];
        assert_true(o->products[j] == want);
    }
}

/* Two sets at a time and one, several entries and the last ones; what stands beside them is left alone. */
static void whole_numbers_are_exact(void **state)
{
    (void)state;
    static operands o;
    fill(&o, 1);
    for (int i = 0; i < flp_microkernel_count; i++)
        for (int sets = 0; sets <= MOST_SETS && flp_microkernels[i].is_supported(); sets++)
            for (int entries = 0; entries <= MOST_ENTRIES; entries++)
                for (int way = 0; way < 4; way++)
                    expect_exact(&flp_microkernels[i], &o, sets, entries, way % 2, way / 2);
}

/* What is computed two sets and several entries at a time has the bits of one set's single entries, in either layout. */
static void any_number_of_sets_and_entries_has_the_bits_of_single_ones(void **state)
{
    (void)state;
    static operands o;
    static _Alignas(64) float single[MOST_SETS][MOST_ENTRIES * LANES];
    fill(&o, 0);
    for (int i = 0; i < flp_microkernel_count; i++) {
        const flp_microkernel *kernel = &flp_microkernels[i];
        if (!kernel->is_supported())
            continue;
        for (int j = 0; j < MOST_SETS * MOST_ENTRIES; j++) {
            flp_microkernel_operands call = operands_of(&o, 0);
            call.hidden = o.hidden + j / MOST_ENTRIES * DEPTH * LANES;
            call.weight += j % MOST_ENTRIES * STRIDE;
            call.products = single[j / MOST_ENTRIES] + j % MOST_ENTRIES * LANES;
            kernel->single(&call);
        }
        for (int j = 0; j < (MOST_SETS + 1) * (MOST_ENTRIES + 1) * 2; j++) {
            int sets = j / 2 % (MOST_SETS + 1), entries = j / 2 / (MOST_SETS + 1);
            flp_microkernel_operands call = operands_of(&o, j % 2);
            flp_microkernel_multiply(kernel, sets, entries, &call);
            for (int set = 0; set < sets; set++)
                assert_memory_equal(single[set], o.products + set * PRODUCTS, (size_t)entries * LANES * sizeof(float));
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
                flp_microkernel_operands call = operands_of(&o, 0);
                call.weight += e * STRIDE;
                other->single(&call);
                call.products = first;
                one->single(&call);
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

enum { MOST_PAIRS = 32, MOST_PAIR_ENTRIES = 70, PAIR_PRODUCTS = (MOST_PAIR_ENTRIES + 1) * LANES };

typedef struct {
    int pairs; /* words of a row */
    _Alignas(64) uint32_t hidden[MOST_SETS * MOST_PAIRS * LANES];
    _Alignas(64) float products[MOST_SETS * PAIR_PRODUCTS];
    uint32_t weight[MOST_PAIR_ENTRIES * MOST_PAIRS], columns[MOST_PAIRS * MOST_PAIR_ENTRIES];
} pair_operands;

static uint32_t random_pair(int stream, uint64_t at)
{
    float low = (float)flp_case_random_normal(stream, 2 * at), high = (float)flp_case_random_normal(stream, 2 * at + 1);
    return flp_convert_f32_to_bf16(low) | (uint32_t)flp_convert_f32_to_bf16(high) << 16;
}

static void fill_pairs(pair_operands *o, int pairs)
{
    o->pairs = pairs;
    for (int i = 0; i < MOST_SETS * MOST_PAIRS * LANES; i++)
        o->hidden[i] = random_pair(3, (uint64_t)i);
    for (int e = 0; e < MOST_PAIR_ENTRIES; e++)
        for (int k = 0; k < pairs; k++)
            o->weight[e * MOST_PAIRS + k] = o->columns[k * MOST_PAIR_ENTRIES + e] = random_pair(4, (uint64_t)(e * MOST_PAIRS + k));
}

static float low_half(uint32_t pair)
{
    return flp_convert_bf16_to_f32((uint16_t)pair);
}

static float high_half(uint32_t pair)
{
    return flp_convert_bf16_to_f32((uint16_t)(pair >> 16));
}

/* What the header promises of vdpbf16ps, in C. */
static float chain_of_halves(const uint32_t *hidden, const uint32_t *weight, int pairs)
{
    float sum = 0;
    for (int k = 0; k < pairs; k++) {
        sum = fmaf(high_half(hidden[k * LANES]), high_half(weight[k]), sum);
        sum = fmaf(low_half(hidden[k * LANES]), low_half(weight[k]), sum);
    }
    return sum;
}

/* What it promises of tdpbf16ps. */
static float chain_of_steps(const uint32_t *hidden, const uint32_t *weight, int pairs)
{
    float sum = 0;
    for (int begin = 0; begin < pairs; begin += 16) {
        float low = 0, high = 0;
        for (int k = begin; k < begin + 16 && k < pairs; k++) {
            low = fmaf(low_half(hidden[k * LANES]), low_half(weight[k]), low);
            high = fmaf(high_half(hidden[k * LANES]), high_half(weight[k]), high);
        }
        sum += low + high;
    }
    return sum;
}

static float chain(const flp_microkernel *kernel, const uint32_t *hidden, const uint32_t *weight, int pairs)
{
    if (strcmp(kernel->arithmetic, "tdpbf16ps") == 0)
        return chain_of_steps(hidden, weight, pairs);
    assert_string_equal(kernel->arithmetic, "vdpbf16ps");
    return chain_of_halves(hidden, weight, pairs);
}

static void expect_chains(const flp_microkernel *kernel, pair_operands *o, int sets, int entries, int turned, int accumulate)
{
    const flp_microkernel_operands call = { .depth = o->pairs,
                                            .hidden = (const float *)o->hidden,
                                            .hidden_stride = MOST_PAIRS * LANES,
                                            .weight = (const float *)(turned ? o->columns : o->weight),
                                            .entry_stride = turned ? 1 : MOST_PAIRS,
                                            .depth_stride = turned ? MOST_PAIR_ENTRIES : 1,
                                            .products = o->products,
                                            .products_stride = PAIR_PRODUCTS,
                                            .accumulate = accumulate };
    for (int k = 0; k < MOST_SETS * PAIR_PRODUCTS; k++)
        o->products[k] = 1000;
    flp_microkernel_multiply(kernel, sets, entries, &call);
    for (int k = 0; k < MOST_SETS * PAIR_PRODUCTS; k++) {
        int set = k / PAIR_PRODUCTS, e = k / LANES % (MOST_PAIR_ENTRIES + 1), is_written = set < sets && e < entries;
        float want = accumulate || !is_written ? 1000 : 0;
        if (is_written)
            want += chain(kernel, o->hidden + set * MOST_PAIRS * LANES + k % LANES, o->weight + e * MOST_PAIRS, o->pairs);
        assert_true(o->products[k] == want);
    }
}

/* Whole tiles and parts of them, of words and of entries; what stands beside the products is left alone. */
static void pairs_are_the_promised_chains_in_any_layout_and_number(void **state)
{
    (void)state;
    static const int depths[] = { 1, 16, 19, MOST_PAIRS }, counts[] = { 0, 1, 11, 12, 14, 16, 31, 32, 33, 64, MOST_PAIR_ENTRIES };
    static pair_operands o;
    for (int d = 0; d < (int)(sizeof depths / sizeof *depths); d++) {
        fill_pairs(&o, depths[d]);
        for (int i = 0; i < flp_bf16_microkernel_count; i++) {
            const flp_microkernel *kernel = &flp_bf16_microkernels[i];
            assert_int_equal(kernel->packed, 2);
            for (int sets = 0; sets <= MOST_SETS && kernel->is_supported(); sets++)
                for (int c = 0; c < (int)(sizeof counts / sizeof *counts); c++)
                    for (int way = 0; way < 4; way++)
                        expect_chains(kernel, &o, sets, counts[c], way % 2, way / 2);
        }
    }
}

/* A subnormal operand, and a sum that becomes subnormal, count as 0: 2^-130 x 2^10, and 2^-70 x 2^-60. */
static void subnormals_of_pairs_count_as_0(void **state)
{
    (void)state;
    static const struct {
        float hidden, weight;
    } factors[] = { { 0x1p-130f, 0x1p10f }, { 0x1p10f, 0x1p-130f }, { 0x1p-70f, 0x1p-60f } };
    static pair_operands o;
    for (int i = 0; i < flp_bf16_microkernel_count; i++) {
        for (int j = 0; j < 3 && flp_bf16_microkernels[i].is_supported(); j++) {
            fill_pairs(&o, 1);
            o.hidden[0] = flp_convert_f32_to_bf16(factors[j].hidden);
            o.weight[0] = flp_convert_f32_to_bf16(factors[j].weight);
            const flp_microkernel_operands call = { .depth = 1,
                                                    .hidden = (const float *)o.hidden,
                                                    .weight = (const float *)o.weight,
                                                    .entry_stride = MOST_PAIRS,
                                                    .depth_stride = 1,
                                                    .products = o.products };
            flp_microkernel_multiply(&flp_bf16_microkernels[i], 1, 1, &call);
            assert_true(o.products[0] == 0);
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
        cmocka_unit_test(any_number_of_sets_and_entries_has_the_bits_of_single_ones),
        cmocka_unit_test(equal_arithmetic_means_equal_bits),
        cmocka_unit_test(the_best_is_the_first_supported),
        cmocka_unit_test(pairs_are_the_promised_chains_in_any_layout_and_number),
        cmocka_unit_test(subnormals_of_pairs_count_as_0),
        cmocka_unit_test(other_types_are_multiplied_in_fp32),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
