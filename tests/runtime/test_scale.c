/* scale: all cases on the CPU, through plans and by dispatch; its problems, arguments and launches on a driver that computes nothing. */
#include "params/scale.h"

#include "assertions.h"
#include "problem_text.h"
#include "cpu_context.h"
#include "fake_call.h"
#include "fake_driver.h"
#include "operators/scale/scale_plan.h"
#include "scale_cases.h"

/* ---- the CPU path */

static flp_status through_a_plan(const flp_scale_problem *problem, const flp_scale_args *args)
{
    flp_plan *plan = NULL;
    flp_status status = flp_scale_plan_create(cpu_context, problem, &plan);

    if (status == FLP_OK)
        status = flp_scale_execute(plan, args);
    flp_plan_destroy(plan);
    return status;
}

static flp_status by_dispatch(const flp_scale_problem *problem, const flp_scale_args *args)
{
    return flp_scale(cpu_context, problem, args);
}

static void expect_all_cases(flp_status (*execute)(const flp_scale_problem *, const flp_scale_args *))
{
    for (int i = 0; i < flp_scale_case_count(); i++) {
        flp_scale_case c;
        flp_scale_data data;
        char message[256];

        flp_scale_case_get(i, &c);
        c.problem.backend = FLP_BACKEND_CPU;
        assert_true(flp_scale_case_make(&c, &data));
        assert_succeeds(execute(&c.problem, &(flp_scale_args){ .rows = c.problem.rows, .x = data.base + data.offset, .factor = &data.factor }));
        if (!flp_scale_case_check(&c, &data, message, sizeof(message)))
            fail_msg("%s: %s", c.name, message);
        flp_scale_case_free(&data);
    }
}

static void every_case_is_exact_through_plans(void **state)
{
    (void)state;
    expect_all_cases(through_a_plan);
}

static void every_case_is_exact_by_dispatch(void **state)
{
    (void)state;
    expect_all_cases(by_dispatch);
}

/* The threads take pieces of 65536 columns. */
static void a_long_row_is_scaled_to_its_end(void **state)
{
    enum { COUNT = 5 * 65536 + 3 };
    static float x[COUNT + 1];
    const float factor = -2;

    (void)state;
    for (int i = 0; i <= COUNT; i++)
        x[i] = (float)i;
    assert_succeeds(flp_scale(cpu_context, &(flp_scale_problem){ .dtype = FLP_F32, .rows = 1, .columns = COUNT, .backend = FLP_BACKEND_CPU },
                              &(flp_scale_args){ .rows = 1, .x = x, .factor = &factor }));
    for (int i = 0; i < COUNT; i++)
        assert_true(x[i] == -2 * (float)i);
    assert_true(x[COUNT] == COUNT);
}

/* ---- problems, arguments and launches */

static flp_context *context;
static flp_plan *plan;
static flp_scale_problem problem;
static flp_scale_args args;
static _Alignas(256) char memory[256]; /* neither read nor written */
static flp_scale_params launched;

static void keep_parameters(const fake_launch *launch)
{
    memcpy(&launched, launch->parameters[0], sizeof(launched));
}

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    fake_driver.on_launch = keep_parameters;
    problem = (flp_scale_problem){ .dtype = FLP_BF16, .rows = 10000, .columns = 4096 };
    args = (flp_scale_args){ .rows = 10000, .x = memory, .factor = (const float *)(const void *)(memory + 4) };
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(context);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

static void make_plan(void)
{
    flp_plan_destroy(plan);
    assert_succeeds(flp_scale_plan_create(context, &problem, &plan));
    fake_driver.launches = 0;
}

static void expect_text(const char *wanted)
{
    expect_problem_text(&flp_scale_operator, &problem, wanted);
}

static void a_problem_has_one_string(void **state)
{
    (void)state;
    expect_text("scale:bf16:n10000:d4096");
    problem.x_stride = 4096; /* the default, spelled out */
    expect_text("scale:bf16:n10000:d4096");
    problem = (flp_scale_problem){ .dtype = FLP_F16, .rows = 0, .columns = 77, .x_stride = 80, .pointer_alignment = 2, .backend = FLP_BACKEND_PORTABLE };
    expect_text("scale:f16:n0:d77:xs80:align2:portable");
}

#define REFUSED(change, part)                                                                  \
    do {                                                                                       \
        const flp_scale_problem saved = problem;                                               \
        flp_plan *made;                                                                        \
        change;                                                                                \
        assert_fails(FLP_BAD_ARGUMENT, flp_scale_plan_create(context, &problem, &made), part); \
        assert_null(made);                                                                     \
        problem = saved;                                                                       \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    (void)state;
    REFUSED(problem.dtype = FLP_I32, "dtype: got");
    REFUSED(problem.rows = -1, "rows: got -1");
    REFUSED(problem.columns = 0, "columns: got 0");
    REFUSED(problem.x_stride = 4095, "x_stride: got 4095, wanted 0 or at least the row's 4096");
    REFUSED(problem.pointer_alignment = 1, "pointer_alignment: got 1");
    REFUSED(problem.backend = (flp_backend)9, "backend: got 9");
}

static void every_argument_is_checked_and_named(void **state)
{
    (void)state;
    make_plan();
    args.rows = 10001;
    assert_fails(FLP_BAD_ARGUMENT, flp_scale_execute(plan, &args), "rows: got 10001");
    args.rows = 10000;
    args.x = memory + 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_scale_execute(plan, &args), "x: got");
    args.x = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_scale_execute(plan, &args), "x: got");
    args.x = memory;
    args.factor = (const float *)(const void *)(memory + 2);
    assert_fails(FLP_BAD_ARGUMENT, flp_scale_execute(plan, &args), "factor: got");
    args.factor = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_scale_execute(plan, &args), "factor: got");
    assert_int_equal(0, fake_driver.launches);
}

static void no_rows_launch_nothing(void **state)
{
    (void)state;
    make_plan();
    args = (flp_scale_args){ .rows = 0 };
    assert_succeeds(flp_scale_execute(plan, &args));
    assert_int_equal(0, fake_driver.launches);
}

/* Rows that touch each other are one row. Parts have 32 KiB. */
static void rows_without_gaps_are_one_row(void **state)
{
    (void)state;
    make_plan();
    assert_succeeds(flp_scale_execute(plan, &args));
    assert_int_equal(1, fake_driver.launches);
    assert_int_equal(1, launched.rows);
    assert_int_equal(10000 * 4096, launched.columns);
    assert_int_equal(2500, launched.parts);
    problem.x_stride = 4104;
    make_plan();
    assert_succeeds(flp_scale_execute(plan, &args));
    assert_int_equal(10000, launched.rows);
    assert_int_equal(4096, launched.columns);
    assert_int_equal(4104, launched.x_stride);
    assert_int_equal(1, launched.parts);
    assert_ptr_equal(args.x, launched.x);
    assert_ptr_equal(args.factor, launched.factor);
}

static void a_part_has_a_block(void **state)
{
    (void)state;
    make_plan();
    assert_int_equal(2500, flp_scale_plan_blocks(flp_scale_plan_of(plan), 10000));
    assert_int_equal(1, flp_scale_plan_blocks(flp_scale_plan_of(plan), 1));
    assert_int_equal(25, flp_scale_plan_blocks(flp_scale_plan_of(plan), 100));
    assert_int_equal(26, flp_scale_plan_blocks(flp_scale_plan_of(plan), 101));
    problem.columns = 20000, problem.x_stride = 20001;
    make_plan();
    assert_int_equal(200, flp_scale_plan_blocks(flp_scale_plan_of(plan), 100));
    problem.columns = INT32_MAX, problem.x_stride = INT64_C(1) << 31, problem.rows = INT64_C(1) << 15;
    make_plan();
    assert_int_equal(INT32_MAX, flp_scale_plan_blocks(flp_scale_plan_of(plan), INT64_C(1) << 15)); /* of 2^32 parts */
}

#define on_the_fake_driver(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest cpu[] = {
        cmocka_unit_test(every_case_is_exact_through_plans),
        cmocka_unit_test(every_case_is_exact_by_dispatch),
        cmocka_unit_test(a_long_row_is_scaled_to_its_end),
    };
    const struct CMUnitTest calls[] = {
        on_the_fake_driver(a_problem_has_one_string),
        on_the_fake_driver(every_field_is_checked_and_named),
        on_the_fake_driver(every_argument_is_checked_and_named),
        on_the_fake_driver(no_rows_launch_nothing),
        on_the_fake_driver(rows_without_gaps_are_one_row),
        on_the_fake_driver(a_part_has_a_block),
    };

    return cmocka_run_group_tests(cpu, cpu_context_start, cpu_context_stop) + cmocka_run_group_tests(calls, NULL, NULL);
}
