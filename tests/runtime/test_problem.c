/* The problem's rules and its canonical string. */
#include "operators/linear/linear_logp_plan.h"

#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "comma_locale.h"
#include "assertions.h"
#include "every_operator.h"
#include "problem_text.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/logits/logits_logp_plan.h"
#include "core/problem.h"
#include "operators/scale/scale_plan.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

static flp_linear_logp_problem plain(void)
{
    return (flp_linear_logp_problem){ .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 };
}

static void assert_formats(flp_linear_logp_problem problem, const char *wanted)
{
    expect_problem_text(&flp_linear_logp_operator, &problem, wanted);
}

static void defaults_are_not_written(void **state)
{
    flp_linear_logp_problem problem = plain();

    (void)state;
    assert_formats(problem, "linear_logp:bf16:n4096:d2048:v131072");
    problem.hidden_stride = problem.weight_stride = 2048;
    problem.pointer_alignment = 16;
    problem.target_dtype = FLP_I64;
    assert_formats(problem, "linear_logp:bf16:n4096:d2048:v131072");
    problem.pointer_alignment = 256; /* more than any path uses */
    assert_formats(problem, "linear_logp:bf16:n4096:d2048:v131072");
    problem.weight_layout = FLP_HIDDEN_VOCAB;
    problem.weight_stride = 131072;
    assert_formats(problem, "linear_logp:bf16:n4096:d2048:v131072:dv");
}

static const struct {
    const flp_operator *op;
    const char *text;
} of_backends[] = {
    { &flp_linear_logp_operator, "linear_logp:bf16:n4:d8:v100" },
    { &flp_linear_logp_backward_operator, "linear_logp_backward:bf16:n4:d8:v100:gh_bf16" },
    { &flp_linear_cross_entropy_operator, "linear_cross_entropy:bf16:n4:d8:v100:gh_bf16" },
    { &flp_logits_logp_operator, "logits_logp:bf16:n4:v100" },
    { &flp_logits_logp_backward_operator, "logits_logp_backward:bf16:n4:v100" },
    { &flp_weighted_sum_operator, "weighted_sum:bf16:n4:d100" },
    { &flp_weighted_sum_backward_operator, "weighted_sum_backward:bf16:n4:d100:gx_bf16" },
    { &flp_scale_operator, "scale:bf16:n4:d100" },
};
enum { OF_BACKENDS = sizeof(of_backends) / sizeof(*of_backends) };

static const char *problem_of_backends(int row)
{
    return of_backends[row].text;
}

static void each_operator_knows_each_backend(void **state)
{
    static const struct {
        flp_backend backend;
        const char *word;
    } backends[] = { { FLP_BACKEND_AUTO, "" }, { FLP_BACKEND_SM90A, ":sm_90a" }, { FLP_BACKEND_PORTABLE, ":portable" }, { FLP_BACKEND_CPU, ":cpu" } };
    _Alignas(16) char problem[FLP_PROBLEM_BYTES];
    char text[FLP_PROBLEM_TEXT_BYTES], again[FLP_PROBLEM_TEXT_BYTES];

    (void)state;
    assert_rows_for_every_operator(OF_BACKENDS, problem_of_backends);
    for (int i = 0; i < OF_BACKENDS; i++) {
        for (size_t j = 0; j < sizeof(backends) / sizeof(*backends); j++) {
            snprintf(text, sizeof(text), "%s%s", of_backends[i].text, backends[j].word);
            assert_succeeds(flp_problem_text_parse(of_backends[i].op, text, problem, flp_header_sizes()));
            assert_int_equal(backends[j].backend, flp_operator_backend(of_backends[i].op, problem));
            assert_succeeds(flp_problem_text_write(of_backends[i].op, problem, again, sizeof(again)));
            assert_string_equal(text, again);
        }
    }
}

static void all_options_stand_in_one_order(void **state)
{
    flp_linear_logp_problem problem = { .dtype = FLP_F32,
                                        .rows = 1,
                                        .hidden = 8,
                                        .vocab = 50257,
                                        .weight_layout = FLP_HIDDEN_VOCAB,
                                        .hidden_stride = 9,
                                        .weight_stride = 50304,
                                        .pointer_alignment = 4,
                                        .bias_dtype = FLP_F16,
                                        .target_dtype = FLP_I32,
                                        .softcap = 30.1,
                                        .argmax = 1,
                                        .entropy = 1,
                                        .precision = FLP_PRECISION_EXACT,
                                        .backend = FLP_BACKEND_PORTABLE };

    (void)state;
    assert_formats(problem, "linear_logp:f32:n1:d8:v50257:dv:hs9:ws50304:align4:bias_f16:target_i32:softcap30.1:argmax:entropy:exact:portable");
}

static void assert_same(const flp_linear_logp_problem *left, const flp_linear_logp_problem *right)
{
    assert_int_equal(left->dtype, right->dtype);
    assert_int_equal(left->rows, right->rows);
    assert_int_equal(left->hidden, right->hidden);
    assert_int_equal(left->vocab, right->vocab);
    assert_int_equal(left->weight_layout, right->weight_layout);
    assert_int_equal(left->hidden_stride, right->hidden_stride);
    assert_int_equal(left->weight_stride, right->weight_stride);
    assert_int_equal(left->pointer_alignment, right->pointer_alignment);
    assert_int_equal(left->bias_dtype, right->bias_dtype);
    assert_int_equal(left->target_dtype, right->target_dtype);
    assert_true(left->softcap == right->softcap);
    assert_int_equal(left->argmax, right->argmax);
    assert_int_equal(left->entropy, right->entropy);
    assert_int_equal(left->precision, right->precision);
    assert_int_equal(left->backend, right->backend);
}

static void assert_round_trip(const flp_linear_logp_problem *problem)
{
    char text[FLP_PROBLEM_TEXT_BYTES];
    flp_linear_logp_problem parsed, wanted, got;

    assert_succeeds(flp_linear_logp_problem_format(problem, text, sizeof(text)));
    assert_succeeds(flp_linear_logp_problem_parse(text, &parsed));
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, problem, &wanted));
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, &parsed, &got));
    assert_same(&wanted, &got);
}

/* Each combination of the options, every number among them written out. */
static void parse_is_the_inverse_of_format(void **state)
{
    static const flp_dtype biases[] = { FLP_NONE, FLP_BF16, FLP_F16, FLP_F32 };

    (void)state;
    for (int bits = 0; bits < 1 << 11; bits++) {
        flp_linear_logp_problem problem = { .dtype = bits & 1 ? FLP_F32 : FLP_F16,
                                            .rows = bits,
                                            .hidden = 80 + bits,
                                            .vocab = 7 + bits,
                                            .weight_layout = bits & 2 ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN,
                                            .hidden_stride = bits & 4 ? 5000 : 0,
                                            .weight_stride = bits & 8 ? 6000 : 0,
                                            .pointer_alignment = bits & 16 ? 8 : 0,
                                            .bias_dtype = biases[bits >> 5 & 3],
                                            .target_dtype = bits & 128 ? FLP_I32 : FLP_NONE,
                                            .softcap = bits & 256 ? 1.0 / (bits + 3) : 0,
                                            .argmax = bits >> 9 & 1,
                                            .entropy = bits >> 10,
                                            .precision = bits & 1 && bits & 4 ? FLP_PRECISION_EXACT : FLP_PRECISION_TENSOR,
                                            .backend = (flp_backend)(bits % 4) };
        assert_round_trip(&problem);
    }
}

static void a_softcap_is_the_shortest_text_that_reads_back(void **state)
{
    static const struct {
        double value;
        const char *part;
    } cases[] = { { 30, ":softcap30" },
                  { 0.1, ":softcap0.1" },
                  { 1.0 / 3, ":softcap0.3333333333333333" },
                  { 0x1.0000000000001p0, ":softcap1.0000000000000002" },
                  { 1e30, ":softcap1e+30" } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        flp_linear_logp_problem problem = plain();
        char text[FLP_PROBLEM_TEXT_BYTES];
        problem.softcap = cases[i].value;
        assert_succeeds(flp_linear_logp_problem_format(&problem, text, sizeof(text)));
        assert_string_equal(cases[i].part, strrchr(text, ':'));
        assert_round_trip(&problem);
    }
}

static void the_string_does_not_follow_the_locale(void **state)
{
    flp_linear_logp_problem problem = plain();

    (void)state;
    if (!comma_locale_enter())
        skip();
    problem.softcap = 30.5;
    assert_formats(problem, "linear_logp:bf16:n4096:d2048:v131072:softcap30.5");
    assert_round_trip(&problem);
    comma_locale_leave();
}

#define REFUSED(change, part)                                                                                      \
    do {                                                                                                           \
        flp_linear_logp_problem problem = plain(), normal;                                                         \
        change;                                                                                                    \
        assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_logp_operator, &problem, &normal), part); \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    (void)state;
    REFUSED(problem.dtype = FLP_NONE, "dtype: got 0, wanted FLP_BF16");
    REFUSED(problem.dtype = FLP_I32, "dtype: got 4");
    REFUSED(problem.dtype = (flp_dtype)300, "dtype: got 300");
    REFUSED(problem.rows = -1, "rows: got -1, wanted 0 .. 268435456");
    REFUSED(problem.rows = FLP_PROBLEM_ROWS_MAX + 1, "rows: got 268435457");
    REFUSED(problem.hidden = 0, "hidden: got 0, wanted 1 .. 2147483647");
    REFUSED(problem.hidden = INT64_C(1) << 31, "hidden: got 2147483648");
    REFUSED(problem.vocab = 0, "vocab: got 0, wanted 1 .. 2147483647");
    REFUSED(problem.vocab = -1, "vocab: got -1, wanted 1 .. 2147483647");
    REFUSED(problem.vocab = INT64_C(1) << 31, "vocab: got 2147483648, wanted 1 .. 2147483647");
    REFUSED(problem.weight_layout = (flp_weight_layout)2, "weight_layout: got 2, wanted FLP_VOCAB_HIDDEN");
    REFUSED(problem.hidden_stride = 2047, "hidden_stride: got 2047, wanted 0 or at least the row's 2048 elements");
    REFUSED(problem.hidden_stride = -1, "hidden_stride: got -1");
    REFUSED(problem.hidden_stride = INT64_MAX / 4096, "hidden_stride: got 2251799813685247, wanted 4096 rows of that size");
    REFUSED(problem.weight_stride = 2047, "weight_stride: got 2047");
    REFUSED((problem.weight_stride = 2048, problem.weight_layout = FLP_HIDDEN_VOCAB), "weight_stride: got 2048, wanted 0 or at least "
                                                                                      "the row's 131072 elements");
    REFUSED(problem.weight_stride = INT64_MAX / 2, "weight_stride: got");
    REFUSED(problem.pointer_alignment = 1, "pointer_alignment: got 1, wanted 0 or a power of two from 2 bytes");
    REFUSED(problem.pointer_alignment = 12, "pointer_alignment: got 12");
    REFUSED(problem.pointer_alignment = -16, "pointer_alignment: got -16");
    REFUSED((problem.pointer_alignment = 2, problem.dtype = FLP_F32), "pointer_alignment: got 2");
    REFUSED(problem.bias_dtype = FLP_I64, "bias_dtype: got 5");
    REFUSED(problem.target_dtype = FLP_F32, "target_dtype: got 3, wanted FLP_I32 or FLP_I64");
    REFUSED(problem.softcap = -1, "softcap: got -1, wanted 0 or");
    REFUSED(problem.softcap = NAN, "softcap: got nan");
    REFUSED(problem.softcap = INFINITY, "softcap: got inf");
    REFUSED(problem.softcap = FLT_MIN / 2, "softcap: got");
    REFUSED(problem.argmax = 2, "argmax: got 2, wanted 0 or 1");
    REFUSED(problem.entropy = -1, "entropy: got -1, wanted 0 or 1");
    REFUSED(problem.precision = (flp_precision)2, "precision: got 2");
    REFUSED(problem.precision = FLP_PRECISION_EXACT, "precision: got FLP_PRECISION_EXACT with dtype bf16");
    REFUSED(problem.backend = (flp_backend)4, "backend: got 4");
    REFUSED(problem.backend = (flp_backend)-1, "backend: got -1");
    assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_logp_operator, NULL, NULL), "problem: got NULL");
}

static void the_largest_sizes_are_accepted(void **state)
{
    flp_linear_logp_problem problem = { .dtype = FLP_BF16, .rows = FLP_PROBLEM_ROWS_MAX, .hidden = INT32_MAX, .vocab = INT32_MAX }, normal;

    (void)state;
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, &problem, &normal));
    assert_int_equal(INT32_MAX, normal.weight_stride);
}

static void format_wants_room_and_says_how_much(void **state)
{
    flp_linear_logp_problem problem = plain();
    char text[37];

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_format(&problem, text, 36), "bytes: got 36, wanted at least 37");
    assert_succeeds(flp_linear_logp_problem_format(&problem, text, 37));
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_format(&problem, NULL, 0), "text: got NULL");
    problem.vocab = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_format(&problem, text, sizeof(text)), "vocab: got 0");
}

static void a_text_does_not_depend_on_the_rounding_mode(void **state)
{
    static const int modes[] = { FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO };
    flp_linear_logp_problem problem = plain(), read;
    char text[FLP_PROBLEM_TEXT_BYTES];

    (void)state;
    problem.softcap = 30.1;
    for (int i = 0; i < 3; i++) {
        flp_status formatted, parsed;

        assert_int_equal(0, fesetround(modes[i]));
        formatted = flp_linear_logp_problem_format(&problem, text, sizeof(text));
        parsed = flp_linear_logp_problem_parse("linear_logp:bf16:n4096:d2048:v131072:softcap30.1", &read);
        assert_int_equal(0, fesetround(FE_TONEAREST));
        assert_succeeds(formatted);
        assert_succeeds(parsed);
        assert_string_equal("linear_logp:bf16:n4096:d2048:v131072:softcap30.1", text);
        assert_true(read.softcap == 30.1);
    }
}

static void parse_says_which_part_is_wrong(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = {
        { "", "part 1: got \"\", wanted linear_logp" },
        { "logits_logp:bf16:n1:d8:v9", "part 1: got \"logits_logp\"" },
        { "linear_logp", "got 1 parts, wanted at least linear_logp:<dtype>" },
        { "linear_logp:bf16:n1:d8", "got 4 parts" },
        { "linear_logp:fp8:n1:d8:v9", "part 2: got \"fp8\", wanted bf16, f16 or f32" },
        { "linear_logp:i32:n1:d8:v9", "dtype: got 4" },
        { "linear_logp:bf16:1:d8:v9", "part 3: got \"1\", wanted n<rows>" },
        { "linear_logp:bf16:n-1:d8:v9", "part 3: got \"n-1\"" },
        { "linear_logp:bf16:n1:d:v9", "part 4: got \"d\", wanted d<hidden>" },
        { "linear_logp:bf16:n1:d8:v99999999999999999999", "part 5: got \"v99999999999999999999\"" },
        { "linear_logp:bf16:n1:d8:v9:", "part 6: got \"\"" },
        { "linear_logp:bf16:n1:d8:v9:fast", "part 6: got \"fast\", wanted dv, hs<stride>" },
        { "linear_logp:bf16:n1:d8:v9:softcapx", "part 6: got \"softcapx\"" },
        { "linear_logp:bf16:n1:d8:v9:softcapinf", "part 6: got \"softcapinf\"" },
        { "linear_logp:bf16:n1:d8:v9:bias_", "part 6: got \"bias_\"" },
        { "linear_logp:bf16:n1:d8:v9:align8000000000", "part 6: got \"align8000000000\"" },
        { "linear_logp:bf16:n1:d8:v9:hs7", "hidden_stride: got 7" },
        { "linear_logp:bf16:n1:d8:v9:argmax:dv", "wanted the canonical \"linear_logp:bf16:n1:d8:v9:dv:argmax\"" },
        { "linear_logp:bf16:n01:d8:v9", "wanted the canonical \"linear_logp:bf16:n1:d8:v9\"" },
        { "linear_logp:bf16:n1:d8:v9:align16", "wanted the canonical" },
        { "linear_logp:bf16:n1:d8:v9:argmax:argmax", "wanted the canonical" },
        { "linear_logp:bf16:n1:d8:v9:softcap3e1", "wanted the canonical \"linear_logp:bf16:n1:d8:v9:softcap30\"" },
    };
    char long_part[200];
    flp_linear_logp_problem problem = { .rows = 77 };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_parse(cases[i].text, &problem), cases[i].part);
    snprintf(long_part, sizeof(long_part), "linear_logp:%0150d", 0);
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_parse(long_part, &problem), "wanted fewer than 64 characters");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_parse(NULL, &problem), "text: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_problem_parse("", NULL), "problem: got NULL");
    assert_int_equal(77, problem.rows); /* a failure leaves the caller's struct alone */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_not_written),
        cmocka_unit_test(each_operator_knows_each_backend),
        cmocka_unit_test(all_options_stand_in_one_order),
        cmocka_unit_test(parse_is_the_inverse_of_format),
        cmocka_unit_test(a_softcap_is_the_shortest_text_that_reads_back),
        cmocka_unit_test(the_string_does_not_follow_the_locale),
        cmocka_unit_test(every_field_is_checked_and_named),
        cmocka_unit_test(the_largest_sizes_are_accepted),
        cmocka_unit_test(format_wants_room_and_says_how_much),
        cmocka_unit_test(a_text_does_not_depend_on_the_rounding_mode),
        cmocka_unit_test(parse_says_which_part_is_wrong),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
