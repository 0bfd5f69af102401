/* The benchmark of the backward: which problems it takes, and what its results say of a gradient filter. */
#include "backward.h"

#include "filter_outcome.h"
#include "runtime/fake_call.h"
#include "runtime/assertions.h"

#define SIZES "linear_logp_backward:bf16:n8192:d4096:v128256"
#define CASE SIZES ":gh_bf16:gw_bf16"

static void every_case_of_the_list_is_taken(void **state)
{
    flp_linear_logp_backward_problem problem;
    flp_temperature temperature;
    int filtered = 0;

    (void)state;
    for (const char *const *name = flp_backward_cases; *name; name++) {
        assert_true(flp_backward_is_case(*name));
        assert_succeeds(flp_backward_parse(*name, &problem, &temperature));
        filtered += problem.grad_filter_eps > 0;
    }
    assert_int_equal(2, filtered);
}

static void a_filter_is_read_as_the_problem_spells_it(void **state)
{
    flp_linear_logp_backward_problem problem;
    flp_temperature temperature;
    char text[256];

    (void)state;
    assert_succeeds(flp_backward_parse(CASE ":budget272629760:filter3e-08:forward", &problem, &temperature));
    assert_true(problem.grad_filter_eps == 3e-08);
    assert_int_equal(1, problem.with_forward);
    assert_int_equal(272629760, problem.memory_budget);
    assert_succeeds(flp_linear_logp_backward_problem_format(&problem, text, sizeof(text)));
    assert_string_equal(CASE ":budget272629760:filter3e-08:forward", text);
}

static void what_the_baselines_do_not_have_is_refused(void **state)
{
    static const char *const cases[] = {
        SIZES ":gh_f16",
        SIZES ":gw_bf16",
        SIZES ":gh_f16:gw_bf16",
        SIZES ":gh_f32:gw_f32",
        CASE ":acc_weight",
        SIZES ":bias_f32:gh_bf16:gw_bf16",
        CASE ":g_lse",
        CASE ":g_entropy",
        SIZES ":dv:gh_bf16:gw_bf16:filter1e-08",
        SIZES ":dv:ws128264:gh_bf16:gw_bf16",
        SIZES ":ws4104:gh_bf16:gw_bf16",
        "linear_logp_backward:bf16:n8192:d4096:v128257:dv:gh_bf16:gw_bf16",
        SIZES ":softcap30:gh_bf16:gw_bf16:filter1e-08",
        SIZES ":target_i32:gh_bf16:gw_bf16",
        SIZES ":hs4104:gh_bf16:gw_bf16",
        "linear_logp_backward:f16:n8192:d4096:v128256:gh_bf16:gw_bf16",
        "linear_logp_backward:bf16:n0:d4096:v128256:gh_bf16:gw_bf16",
    };
    flp_linear_logp_backward_problem problem;
    flp_temperature temperature;

    (void)state;
    assert_succeeds(flp_backward_parse(SIZES ":gh_bf16:forward", &problem, &temperature));
    assert_succeeds(flp_backward_parse(SIZES ":gh_f32:gw_bf16", &problem, &temperature));
    assert_succeeds(flp_backward_parse(SIZES ":softcap30:gh_bf16:gw_bf16", &problem, &temperature));
    assert_succeeds(flp_backward_parse(SIZES ":dv:gh_bf16:gw_bf16:forward", &problem, &temperature));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        assert_fails(FLP_BAD_ARGUMENT, flp_backward_parse(cases[i], &problem, &temperature), cases[i]);
    assert_fails(FLP_BAD_ARGUMENT, flp_backward_parse(CASE ":filter-1", &problem, &temperature), "filter");
    assert_fails(FLP_BAD_ARGUMENT, flp_backward_parse(CASE ":filterx", &problem, &temperature), "filter");
}

static const flp_backward_errors errors = { .hidden = { .relative = 0.1, .rounding = 0.002, .bound = 50 },
                                            .weight = { .relative = 0.001, .rounding = 0.0017, .bound = 0.0625 } };

static void results_say_what_a_filter_kept(void **state)
{
    const flp_filter_outcome outcome = { .eps = 3e-08, .blocks = 256512, .passed_over = 200000 };
    json_t *result = json_pack("{s:s}", "problem", CASE ":filter3e-08");

    (void)state;
    assert_true(flp_filter_outcome_add(&outcome, &errors, result));
    assert_string_equal(CASE ":filter3e-08", json_string_value(json_object_get(result, "problem")));
    assert_true(json_real_value(json_object_get(result, "grad_filter_eps")) == 3e-08);
    assert_int_equal(256512, json_integer_value(json_object_get(result, "blocks")));
    assert_int_equal(56512, json_integer_value(json_object_get(result, "blocks_kept")));
    assert_true(json_real_value(json_object_get(result, "grad_hidden_bound")) == 50);
    assert_true(json_real_value(json_object_get(result, "grad_weight_bound")) == 0.0625);
    assert_contains(json_string_value(json_object_get(result, "data")), "peaked");
    json_decref(result);
}

static void results_without_a_filter_say_nothing_of_one(void **state)
{
    const flp_filter_outcome none = { .eps = 0 };
    json_t *result = json_object();

    (void)state;
    assert_true(flp_filter_outcome_add(&none, &errors, result));
    assert_int_equal(0, json_object_size(result));
    json_decref(result);
}

/* On the CPU path, which has no filter. */
static void an_outcome_is_taken_from_the_plan(void **state)
{
    const flp_linear_logp_backward_problem problem = { .forward = { .dtype = FLP_BF16, .rows = 2, .hidden = 8, .vocab = 16, .backend = FLP_BACKEND_CPU },
                                                       .grad_hidden = FLP_BF16,
                                                       .grad_filter_eps = 0.5 };
    flp_context *context = fake_call_start(0);
    flp_filter_outcome outcome = { .blocks = 1, .passed_over = 1 };
    flp_plan *plan;

    (void)state;
    assert_succeeds(flp_linear_logp_backward_plan_create(context, &problem, &plan));
    assert_succeeds(flp_filter_outcome_take(plan, problem.grad_filter_eps, &outcome));
    assert_true(outcome.eps == 0.5);
    assert_int_equal(0, outcome.blocks);
    assert_int_equal(0, outcome.passed_over);
    flp_plan_destroy(plan);
    assert_fails(FLP_BAD_ARGUMENT, flp_filter_outcome_take(NULL, 0.5, &outcome), "plan");
    flp_context_destroy(context);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_of_the_list_is_taken),
        cmocka_unit_test(a_filter_is_read_as_the_problem_spells_it),
        cmocka_unit_test(what_the_baselines_do_not_have_is_refused),
        cmocka_unit_test(results_say_what_a_filter_kept),
        cmocka_unit_test(results_without_a_filter_say_nothing_of_one),
        cmocka_unit_test(an_outcome_is_taken_from_the_plan),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
