/* linear_logp on the host: all cases against fp64, called directly and through the public calls. */
#include "cases.h"
#include "operators/linear/linear_logp_cpu.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <cmocka.h>

static flp_thread_pool *pool;

static int create_pool(void **state)
{
    (void)state;
    return flp_thread_pool_create(2, &pool) != FLP_OK;
}

static int destroy_pool(void **state)
{
    (void)state;
    flp_thread_pool_destroy(pool);
    return 0;
}

enum { NOT_COUNTED = -2 };

typedef flp_status executor(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t *bad_count, int64_t *bad_first);

/* Returns whether the case held; prints why not. */
static int run_case(int index, executor *execute)
{
    flp_case c;
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args args;
    char message[256];
    flp_case_get(index, &c);
    if (!flp_case_dtype_runs(c.problem.dtype))
        return 1;
    assert_true(flp_case_make_data(&c, &data));
    flp_case_args(&c, &data, NULL, &args);
    assert_true(flp_reference_compute(&c.problem, &args, &reference));
    int64_t bad_count = 0, bad_first = -1;
    flp_status status = execute(&c.problem, &args, &bad_count, &bad_first);
    int right = status == FLP_OK && flp_case_check(&c, &data, &reference, message, sizeof message);
    if (!right)
        print_error("case \"%s\": %s\n", c.name, status == FLP_OK ? message : flp_error_message());
    if (bad_count != NOT_COUNTED) {
        assert_int_equal(bad_count, reference.bad_count);
        assert_int_equal(bad_first, reference.bad_first);
    }
    flp_reference_free(&reference);
    flp_case_free_data(&data);
    return right;
}

static void expect_all_cases(executor *execute)
{
    int failures = 0;
    for (int i = 0; i < flp_case_count(); i++)
        failures += !run_case(i, execute);
    assert_int_equal(failures, 0);
}

static flp_status call_directly(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_logp_cpu(pool, problem, args, NULL, bad_count, bad_first);
}

static void every_case_agrees_with_fp64(void **state)
{
    (void)state;
    expect_all_cases(call_directly);
}

static flp_context *context;

static flp_status call_through_a_plan(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t *bad_count, int64_t *bad_first)
{
    flp_plan *plan;
    flp_status status = flp_linear_logp_plan_create(context, problem, &plan);
    if (status != FLP_OK)
        return status;
    status = flp_linear_logp_execute(plan, args);
    if (status == FLP_OK)
        status = flp_plan_target_errors(plan, bad_count, bad_first);
    flp_plan_destroy(plan);
    return status;
}

/* The context's own plans cannot be asked for their bad targets. */
static flp_status call_by_dispatch(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, int64_t *bad_count, int64_t *bad_first)
{
    *bad_count = *bad_first = NOT_COUNTED;
    return flp_linear_logp(context, problem, args);
}

static void every_case_agrees_with_fp64_through_the_public_calls(void **state)
{
    (void)state;
    flp_context_options options = { .cache_directory = "", .cpu_threads = 2, .flags = FLP_CONTEXT_NO_GPU };
    assert_int_equal(flp_context_create(&options, &context), FLP_OK);
    expect_all_cases(call_through_a_plan);
    expect_all_cases(call_by_dispatch);
    flp_context_destroy(context);
}

/* The figure that the project set out from: the loss, not only the rows, within 1e-5. */
static void the_seed_case_has_the_loss_of_fp64(void **state)
{
    (void)state;
    flp_case c = { .problem.rows = -1 };
    for (int i = 0; i < flp_case_count() && strcmp(c.name, "seed case") != 0; i++)
        flp_case_get(i, &c);
    assert_string_equal(c.name, "seed case");
    flp_case_data data;
    flp_reference reference;
    flp_linear_logp_args args;
    assert_true(flp_case_make_data(&c, &data));
    flp_case_args(&c, &data, NULL, &args);
    assert_true(flp_reference_compute(&c.problem, &args, &reference));
    assert_int_equal(flp_linear_logp_cpu(pool, &c.problem, &args, NULL, NULL, NULL), FLP_OK);
    double loss = 0, want = 0;
    for (int64_t i = 0; i < args.rows; i++) {
        loss -= args.logp[i];
        want -= reference.logp[i];
    }
    assert_true(fabs(loss - want) <= 1e-5 * want);
    flp_reference_free(&reference);
    flp_case_free_data(&data);
}

static void bad_targets_are_added_to_what_was_counted(void **state)
{
    (void)state;
    float hidden[3] = { 1, 2, 3 }, weight[2] = { 1, -1 }, logp[3];
    int64_t target[3] = { 0, 2, -5 }, count = 10, first = 5;
    flp_linear_logp_problem problem = { .dtype = FLP_F32, .rows = 3, .hidden = 1, .vocab = 2, .hidden_stride = 1, .weight_stride = 1, .target_dtype = FLP_I64 };
    flp_linear_logp_args args = {
        .rows = 3, .hidden = hidden, .weight = weight, .target = target, .ignore_index = -100, .flags = FLP_IGNORE_INDEX, .logp = logp
    };
    assert_int_equal(flp_linear_logp_cpu(pool, &problem, &args, NULL, &count, &first), FLP_OK);
    assert_int_equal(count, 12);
    assert_int_equal(first, 1);
    first = 0;
    assert_int_equal(flp_linear_logp_cpu(pool, &problem, &args, NULL, &count, &first), FLP_OK);
    assert_int_equal(first, 0);
    assert_true(isnan(logp[1]) && isnan(logp[2]) && logp[0] < 0);
}

static void numerics_names_the_arithmetic(void **state)
{
    flp_text text = { 0 };

    (void)state;
    flp_linear_logp_cpu_numerics(FLP_BF16, &text);
    assert_non_null(text.data);
    assert_int_equal(strncmp(text.data, "linear_logp:cpu", 15), 0);
    flp_text_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_agrees_with_fp64),        cmocka_unit_test(every_case_agrees_with_fp64_through_the_public_calls),
        cmocka_unit_test(the_seed_case_has_the_loss_of_fp64), cmocka_unit_test(bad_targets_are_added_to_what_was_counted),
        cmocka_unit_test(numerics_names_the_arithmetic),
    };
    return cmocka_run_group_tests(tests, create_pool, destroy_pool);
}
