/* The rules of linear_cross_entropy's problem, its canonical string and its dispatch key. */
#include "operators/linear/linear_cross_entropy_plan.h"

#include "assertions.h"
#include "problem_text.h"

static flp_linear_cross_entropy_problem plain(void)
{
    return (flp_linear_cross_entropy_problem){
        .backward = { .forward = { .dtype = FLP_BF16, .rows = 4096, .hidden = 2048, .vocab = 131072 }, .grad_hidden = FLP_BF16, .grad_weight = FLP_F32 }
    };
}

static flp_linear_cross_entropy_problem with_everything(void)
{
    return (flp_linear_cross_entropy_problem){ .backward = { .forward = { .dtype = FLP_F32,
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
                                                             .accumulate = 7,
                                                             .memory_budget = 1 << 20,
                                                             .grad_filter_eps = 0.5 },
                                               .reduction = FLP_REDUCE_NONE,
                                               .class_weights = FLP_BF16,
                                               .token_weights = 1,
                                               .entropy = 1,
                                               .token_loss = "a_loss_of_31_characters_0000000" };
}

static void assert_formats(flp_linear_cross_entropy_problem problem, const char *wanted)
{
    expect_problem_text(&flp_linear_cross_entropy_operator, &problem, wanted);
}

static void problems_have_one_string_each(void **state)
{
    flp_linear_cross_entropy_problem problem = plain();

    (void)state;
    assert_formats(problem, "linear_cross_entropy:bf16:n4096:d2048:v131072:gh_bf16:gw_f32");
    problem.backward.grad_hidden = problem.backward.grad_weight = FLP_NONE;
    assert_formats(problem, "linear_cross_entropy:bf16:n4096:d2048:v131072");
    problem.reduction = FLP_REDUCE_SUM;
    problem.label_smoothing = 1;
    assert_formats(problem, "linear_cross_entropy:bf16:n4096:d2048:v131072:sum:smoothing");
    problem = with_everything();
    assert_formats(problem, "linear_cross_entropy:f32:n1:d8:v50257:dv:hs9:ws50304:align4:bias_f16:target_i32:softcap30.1:entropy:exact:"
                            "gh_bf16:gw_f16:gb_f32:ghs10:gws50305:acc_hidden:acc_weight:acc_bias:budget1048576:filter0.5:none:classes_bf16:tokens:"
                            "loss_a_loss_of_31_characters_0000000:portable");
}

static void other_strings_are_refused(void **state)
{
    static const struct {
        const char *text, *part;
    } cases[] = { { "linear_logp:bf16:n1:d2:v3", "wanted linear_cross_entropy" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:mean", "part 6: got \"mean\", wanted dv" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:none:sum", "wanted the canonical" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:loss_", "wanted the canonical" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:loss_A", "token_loss: got \"A\"" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:loss_a_loss_of_32_characters_00000000", "part 6: got" },
                  { "linear_cross_entropy:bf16:n1:d2:v3:acc_hidden", "accumulate: got 1, wanted 0: no gradient is asked for" } };
    flp_linear_cross_entropy_problem problem;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_linear_cross_entropy_problem_parse(cases[i].text, &problem), cases[i].part);
}

#define REFUSED(change, part)                                                                                               \
    do {                                                                                                                    \
        flp_linear_cross_entropy_problem problem = plain(), normal;                                                         \
        change;                                                                                                             \
        assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_cross_entropy_operator, &problem, &normal), part); \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    (void)state;
    REFUSED(problem.backward.forward.vocab = 0, "vocab: got 0");
    REFUSED(problem.backward.forward.argmax = 1, "argmax: got 1, wanted 0");
    REFUSED(problem.backward.grad_weight = FLP_I32, "grad_weight: got 4");
    REFUSED(problem.backward.g_lse = 1, "backward.g_lse, backward.g_entropy: got 1, 0, wanted 0, 0: the loss decides");
    REFUSED(problem.reduction = (flp_reduction)3, "reduction: got 3, wanted FLP_REDUCE_MEAN");
    REFUSED(problem.label_smoothing = 2, "label_smoothing: got 2, wanted 0 or 1");
    REFUSED(problem.class_weights = FLP_I32, "class_weights: got 4, wanted FLP_NONE");
    REFUSED(problem.token_weights = -1, "token_weights: got -1");
    REFUSED(problem.entropy = 2, "entropy: got 2");
    REFUSED(strcpy(problem.token_loss, "2_fast"), "token_loss: got \"2_fast\"");
    REFUSED(strcpy(problem.token_loss, "Name"), "token_loss: got \"Name\"");
    REFUSED(memset(problem.token_loss, 'a', sizeof(problem.token_loss)), "wanted at most 31 letters");
    REFUSED((strcpy(problem.token_loss, "policy_gradient"), problem.label_smoothing = 1), "label_smoothing: got 1, wanted 0: policy_gradient");
    REFUSED((problem.backward.grad_hidden = problem.backward.grad_weight = FLP_NONE, problem.backward.memory_budget = 5),
            "backward.memory_budget: got 5, wanted 0: no gradient is asked for");
    REFUSED((problem.backward.grad_hidden = problem.backward.grad_weight = FLP_NONE, problem.backward.grad_filter_eps = 0.5),
            "backward.grad_filter_eps: got 0.5, wanted 0: no gradient is asked for");
    REFUSED(problem.backward.with_forward = 1, "backward.with_forward: got 1, wanted 0: it is in the same call");
    assert_fails(FLP_BAD_ARGUMENT, flp_problem_normalize(&flp_linear_cross_entropy_operator, NULL, NULL), "problem: got NULL");
}

static void what_stands_behind_a_name_does_not_count(void **state)
{
    flp_linear_cross_entropy_problem problem = plain(), normal;
    flp_dispatch_key left = { 0 }, right = { 0 };

    (void)state;
    strcpy(problem.token_loss, "policy_gradient");
    assert_true(flp_problem_pack(&flp_linear_cross_entropy_operator, &problem, &left));
    problem.token_loss[20] = 'x';
    assert_true(flp_problem_pack(&flp_linear_cross_entropy_operator, &problem, &right));
    assert_memory_equal(&left, &right, sizeof(left));
    assert_succeeds(flp_problem_normalize(&flp_linear_cross_entropy_operator, &problem, &normal));
    assert_int_equal(0, normal.token_loss[20]);
}

#define DIFFERS(change)                                                                      \
    do {                                                                                     \
        flp_linear_cross_entropy_problem problem = plain();                                  \
        flp_dispatch_key left = { 0 }, right = { 0 };                                        \
        assert_true(flp_problem_pack(&flp_linear_cross_entropy_operator, &problem, &left));  \
        change;                                                                              \
        assert_true(flp_problem_pack(&flp_linear_cross_entropy_operator, &problem, &right)); \
        assert_memory_not_equal(&left, &right, sizeof(left));                                \
    } while (0)

static void problems_that_differ_have_other_keys(void **state)
{
    (void)state;
    DIFFERS(problem.backward.forward.hidden = 2049);
    DIFFERS(problem.backward.grad_weight = FLP_BF16);
    DIFFERS(problem.backward.memory_budget = 1 << 30);
    DIFFERS(problem.backward.grad_filter_eps = 1e-5);
    DIFFERS(problem.reduction = FLP_REDUCE_SUM);
    DIFFERS(problem.reduction = FLP_REDUCE_NONE);
    DIFFERS(problem.label_smoothing = 1);
    DIFFERS(problem.class_weights = FLP_F32);
    DIFFERS(problem.token_weights = 1);
    DIFFERS(problem.entropy = 1);
    DIFFERS(strcpy(problem.token_loss, "a"));
    DIFFERS(strcpy(problem.token_loss, "a_loss_of_31_characters_0000000"));
}

#define HAS_NO_KEY(change)                                                                  \
    do {                                                                                    \
        flp_linear_cross_entropy_problem problem = plain();                                 \
        flp_dispatch_key key = { 0 };                                                       \
        change;                                                                             \
        assert_false(flp_problem_pack(&flp_linear_cross_entropy_operator, &problem, &key)); \
    } while (0)

static void values_that_no_problem_has_have_no_key(void **state)
{
    (void)state;
    HAS_NO_KEY(problem.reduction = (flp_reduction)3);
    HAS_NO_KEY(problem.label_smoothing = 2);
    HAS_NO_KEY(problem.class_weights = FLP_I32);
    HAS_NO_KEY(problem.token_weights = 2);
    HAS_NO_KEY(problem.entropy = -1);
    HAS_NO_KEY(memset(problem.token_loss, 'a', sizeof(problem.token_loss)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(problems_have_one_string_each),        cmocka_unit_test(other_strings_are_refused),
        cmocka_unit_test(every_field_is_checked_and_named),     cmocka_unit_test(what_stands_behind_a_name_does_not_count),
        cmocka_unit_test(problems_that_differ_have_other_keys), cmocka_unit_test(values_that_no_problem_has_have_no_key),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
