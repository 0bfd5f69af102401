/* The rules of the backward's problem, its canonical string and its dispatch key. */
#include "operators/linear/linear_logp_backward_plan.h"

#include <math.h>

#include "assertions.h"
#include "problem_text.h"
#include "core/problem.h"

static flp_linear_logp_backward_problem plain(void)
{
    return (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 },
                                               .grad_hidden = FLP_BF16,
                                               .grad_weight = FLP_F32 };
}

static void assert_formats(flp_linear_logp_backward_problem problem, const char *wanted)
{
    expect_problem_text(&flp_linear_logp_backward_operator, &problem, wanted);
}

static void defaults_are_not_written(void **state)
{
    flp_linear_logp_backward_problem problem = plain(), normal;

    (void)state;
    assert_formats(problem, "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_f32");
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_backward_operator, &problem, &normal));
    assert_int_equal(2048, normal.grad_hidden_stride);
    assert_int_equal(2048, normal.grad_weight_stride);
    assert_formats(normal, "linear_logp_backward:bf16:n4096:d2048:v131072:gh_bf16:gw_f32");
    problem.forward.hidden_stride = problem.grad_hidden_stride = 4096; /* as the input's rows */
    assert_formats(problem, "linear_logp_backward:bf16:n4096:d2048:v131072:hs4096:gh_bf16:gw_f32");
}

static flp_linear_logp_backward_problem with_everything(void)
{
    return (flp_linear_logp_backward_problem){ .forward = { .dtype = FLP_F32,
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
                                                            .precision = FLP_PRECISION_EXACT,
                                                            .backend = FLP_BACKEND_PORTABLE },
                                               .grad_hidden = FLP_BF16,
                                               .grad_weight = FLP_F16,
                                               .grad_bias = FLP_F32,
                                               .grad_hidden_stride = 10,
                                               .grad_weight_stride = 50305,
                                               .accumulate = FLP_ACCUMULATE_HIDDEN | FLP_ACCUMULATE_WEIGHT | FLP_ACCUMULATE_BIAS,
                                               .g_lse = 1,
                                               .g_entropy = 1,
                                               .memory_budget = 1 << 20,
                                               .grad_filter_eps = 0.001,
                                               .with_forward = 1 };
}

static void all_options_stand_in_one_order(void **state)
{
    (void)state;
    assert_formats(with_everything(),
                   "linear_logp_backward:f32:n1:d8:v50257:dv:hs9:ws50304:align4:bias_f16:target_i32:softcap30.1:exact:"
                   "gh_bf16:gw_f16:gb_f32:ghs10:gws50305:acc_hidden:acc_weight:acc_bias:g_lse:g_entropy:budget1048576:filter0.001:forward:portable");
}

static void assert_round_trip(const flp_linear_logp_backward_problem *problem)
{
    char text[FLP_PROBLEM_TEXT_BYTES], again[FLP_PROBLEM_TEXT_BYTES];
    flp_linear_logp_backward_problem parsed, wanted, got;

    assert_succeeds(flp_linear_logp_backward_problem_format(problem, text, sizeof(text)));
    assert_succeeds(flp_linear_logp_backward_problem_parse(text, &parsed));
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_backward_operator, problem, &wanted));
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_backward_operator, &parsed, &got));
    assert_int_equal(wanted.grad_hidden, got.grad_hidden);
    assert_int_equal(wanted.grad_weight, got.grad_weight);
    assert_int_equal(wanted.grad_bias, got.grad_bias);
    assert_int_equal(wanted.grad_hidden_stride, got.grad_hidden_stride);
    assert_int_equal(wanted.grad_weight_stride, got.grad_weight_stride);
    assert_int_equal(wanted.accumulate, got.accumulate);
    assert_int_equal(wanted.g_lse, got.g_lse);
    assert_int_equal(wanted.g_entropy, got.g_entropy);
    assert_int_equal(wanted.memory_budget, got.memory_budget);
    assert_true(wanted.grad_filter_eps == got.grad_filter_eps);
    assert_int_equal(wanted.with_forward, got.with_forward);
    assert_succeeds(flp_linear_logp_backward_problem_format(&parsed, again, sizeof(again)));
    assert_string_equal(text, again);
}

static void parse_is_the_inverse_of_format(void **state)
{
    (void)state;
    for (int bits = 0; bits < 1 << 10; bits++) {
        flp_linear_logp_backward_problem problem = { .forward = { .dtype = bits & 1 ? FLP_F32 : FLP_F16,
                                                                  .rows = bits,
                                                                  .hidden = 80,
                                                                  .vocab = 500,
                                                                  .bias_dtype = FLP_F32,
                                                                  .weight_layout = bits & 2 ? FLP_HIDDEN_VOCAB : FLP_VOCAB_HIDDEN,
                                                                  .weight_stride = bits & 4 ? 6000 : 0 },
                                                     .grad_hidden = (flp_dtype)(bits >> 3 & 3),
                                                     .grad_weight = (flp_dtype)(bits >> 5 & 3),
                                                     .grad_bias = FLP_BF16,
                                                     .g_lse = bits >> 7 & 1,
                                                     .g_entropy = bits >> 8 & 1,
                                                     .memory_budget = bits & 512 ? 1 << 24 : 0,
                                                     .grad_filter_eps = bits % 3 * 1e-5,
                                                     .with_forward = bits % 5 == 0 };
        if (problem.grad_hidden && bits & 4) {
            problem.grad_hidden_stride = 81;
            problem.accumulate |= FLP_ACCUMULATE_HIDDEN;
        }
        if (problem.grad_weight && bits & 8) {
            problem.grad_weight_stride = 501;
            problem.accumulate |= FLP_ACCUMULATE_WEIGHT;
        }
        problem.accumulate |= bits & 16 ? FLP_ACCUMULATE_BIAS : 0;
        assert_round_trip(&problem);
    }
}

static void other_strings_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = { { "linear_logp:bf16:n1:d2:v3:gh_bf16", "wanted linear_logp_backward" },
                  { "linear_logp_backward:bf16:n1:d2:v3:argmax", "part 6: got \"argmax\", wanted dv" },
                  { "linear_logp_backward:bf16:n1:d2:v3", "got FLP_NONE for all, wanted one of them" },
                  { "linear_logp_backward:bf16:n1:d2:v3:acc_hidden:gh_bf16", "wanted the canonical" },
                  { "linear_logp_backward:bf16:n1:d2:v3:gh_bf16:acc_hidden:acc_hidden", "wanted the canonical" },
                  { "linear_logp_backward:bf16:n1:d2:v3:gh_bf16:acc_", "part 7: got \"acc_\"" },
                  { "linear_logp_backward:bf16:n1:d2:v3:gh_i32", "grad_hidden: got 4" } };
    flp_linear_logp_backward_problem problem;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_backward_problem_parse(cases[i].text, &problem), cases[i].part);
}

#define REFUSED(change, part)                                                                                               \
    do {                                                                                                                    \
        flp_linear_logp_backward_problem problem = plain(), normal;                                                         \
        change;                                                                                                             \
        assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_logp_backward_operator, &problem, &normal), part); \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    (void)state;
    REFUSED(problem.forward.vocab = 0, "vocab: got 0");
    REFUSED(problem.forward.weight_layout = (flp_weight_layout)2, "weight_layout: got 2");
    REFUSED(problem.forward.argmax = 1, "forward.argmax: got 1, wanted 0");
    REFUSED(problem.forward.entropy = 1, "forward.entropy: got 1, wanted 0");
    REFUSED(problem.grad_hidden = FLP_I64, "grad_hidden: got 5, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32");
    REFUSED(problem.grad_weight = FLP_I32, "grad_weight: got 4");
    REFUSED(problem.grad_bias = (flp_dtype)9, "grad_bias: got 9");
    REFUSED(problem.grad_bias = FLP_F32, "grad_bias: got f32, wanted FLP_NONE: the forward's bias_dtype is FLP_NONE");
    REFUSED((problem.grad_hidden = FLP_NONE, problem.grad_weight = FLP_NONE), "got FLP_NONE for all, wanted one of them");
    REFUSED(problem.grad_hidden_stride = 2047, "grad_hidden_stride: got 2047, wanted 0 or at least the row's 2048 elements");
    REFUSED(problem.grad_weight_stride = -1, "grad_weight_stride: got -1");
    REFUSED((problem.forward.weight_layout = FLP_HIDDEN_VOCAB, problem.grad_weight_stride = 2048), "grad_weight_stride: got 2048, wanted 0 or "
                                                                                                   "at least the row's 131072 elements");
    REFUSED((problem.grad_hidden = FLP_NONE, problem.grad_hidden_stride = 2048), "grad_hidden_stride: got 2048, wanted 0: the gradient is "
                                                                                 "not asked for");
    REFUSED(problem.accumulate = 8, "accumulate: got 0x8, wanted no bits but 0x3");
    REFUSED(problem.accumulate = FLP_ACCUMULATE_BIAS, "accumulate: got 0x4, wanted no bits but 0x3, of the gradients asked for");
    REFUSED(problem.g_lse = 2, "g_lse: got 2, wanted 0 or 1");
    REFUSED(problem.g_entropy = -1, "g_entropy: got -1");
    REFUSED(problem.with_forward = 2, "with_forward: got 2, wanted 0 or 1");
    REFUSED(problem.grad_filter_eps = -1, "grad_filter_eps: got -1, wanted 0 or a finite number above");
    REFUSED(problem.grad_filter_eps = NAN, "grad_filter_eps: got nan");
    REFUSED(problem.grad_filter_eps = INFINITY, "grad_filter_eps: got inf");
    REFUSED(problem.memory_budget = -1, "memory_budget: got -1, wanted 0 or at least");
    assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_logp_backward_operator, NULL, NULL), "problem: got NULL");
}

/* ---- the dispatch key ---- */

static flp_dispatch_key key_of(const flp_linear_logp_backward_problem *problem)
{
    flp_dispatch_key key = { 0 };

    assert_true(flp_problem_pack(&flp_linear_logp_backward_operator, problem, &key));
    return key;
}

#define DIFFERS(change)                                       \
    do {                                                      \
        flp_linear_logp_backward_problem problem = plain();   \
        flp_dispatch_key left = key_of(&problem), right;      \
        change;                                               \
        right = key_of(&problem);                             \
        assert_memory_not_equal(&left, &right, sizeof(left)); \
    } while (0)

static void problems_that_differ_have_other_keys(void **state)
{
    (void)state;
    DIFFERS(problem.forward.dtype = FLP_F16);
    DIFFERS(problem.forward.hidden = 2056);
    DIFFERS(problem.forward.vocab = 131000);
    DIFFERS(problem.forward.hidden_stride = 4096);
    DIFFERS(problem.forward.weight_stride = 4096);
    DIFFERS(problem.forward.weight_layout = FLP_HIDDEN_VOCAB);
    DIFFERS(problem.forward.precision = FLP_PRECISION_EXACT);
    DIFFERS(problem.forward.bias_dtype = FLP_F32);
    DIFFERS(problem.forward.target_dtype = FLP_I32);
    DIFFERS(problem.forward.softcap = 30);
    DIFFERS(problem.forward.backend = FLP_BACKEND_CPU);
    DIFFERS(problem.grad_hidden = FLP_NONE);
    DIFFERS(problem.grad_weight = FLP_BF16);
    DIFFERS(problem.grad_bias = FLP_BF16);
    DIFFERS(problem.grad_hidden_stride = 4096);
    DIFFERS(problem.grad_weight_stride = 4096);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_HIDDEN);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_WEIGHT);
    DIFFERS(problem.accumulate = FLP_ACCUMULATE_BIAS);
    DIFFERS(problem.g_lse = 1);
    DIFFERS(problem.g_entropy = 1);
    DIFFERS(problem.memory_budget = 1 << 30);
    DIFFERS(problem.grad_filter_eps = 1e-5);
}

static void a_default_spelled_out_keeps_the_key(void **state)
{
    flp_linear_logp_backward_problem problem = plain();
    flp_dispatch_key left = key_of(&problem), right;

    (void)state;
    problem.forward.hidden_stride = problem.forward.weight_stride = problem.grad_hidden_stride = problem.grad_weight_stride = 2048;
    problem.forward.target_dtype = FLP_I64;
    right = key_of(&problem);
    assert_memory_equal(&left, &right, sizeof(left));
}

/* Such a key could be that of an acceptable problem, whose plan would then run. */
static void values_that_no_problem_has_get_no_key(void **state)
{
    flp_linear_logp_backward_problem problems[] = { plain(), plain(), plain(), plain(), plain(), plain(), plain(), plain() };
    flp_dispatch_key key;

    (void)state;
    problems[0].forward.weight_layout = (flp_weight_layout)2;
    problems[1].forward.precision = (flp_precision)4;
    problems[2].g_lse = 2;
    problems[3].g_entropy = -1;
    problems[4].accumulate = 8;
    problems[5].forward.argmax = 1;
    problems[6].forward.entropy = 1;
    problems[7].grad_hidden = (flp_dtype)128;
    for (size_t i = 0; i < sizeof(problems) / sizeof(*problems); i++)
        assert_int_equal(0, flp_problem_pack(&flp_linear_logp_backward_operator, &problems[i], &key));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_not_written),
        cmocka_unit_test(all_options_stand_in_one_order),
        cmocka_unit_test(parse_is_the_inverse_of_format),
        cmocka_unit_test(other_strings_are_refused),
        cmocka_unit_test(every_field_is_checked_and_named),
        cmocka_unit_test(problems_that_differ_have_other_keys),
        cmocka_unit_test(a_default_spelled_out_keeps_the_key),
        cmocka_unit_test(values_that_no_problem_has_get_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
