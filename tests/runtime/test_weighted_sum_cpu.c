/* weighted_sum on the host, both directions: all cases against fp64 through the public calls; and bits that follow neither the threads nor
 * the neighbours. */
#include "cpu_context.h"
#include "assertions.h"
#include "weighted_sum_cases.h"

#include <fenv.h>

enum { COLUMN_LANES = 16, TILES = 64, TILE_ROWS = 64, LEAST_DEPTH = 6 };

/* A product and an addition for each sixteenth column, four halvings, and the product's own rounding. */
static int64_t sum_depth(const flp_weighted_case *c)
{
    return (c->problem.forward.columns + COLUMN_LANES - 1) / COLUMN_LANES + LEAST_DEPTH;
}

/* The rows of a tile, the tiles, what stood there, and the product's own rounding. */
static int64_t gradient_depth(const flp_weighted_case *c)
{
    const int64_t rows = c->problem.forward.rows, tiles = (rows + TILE_ROWS - 1) / TILE_ROWS;

    return tiles <= TILES ? TILE_ROWS + tiles + 2 : (rows + TILES - 1) / TILES + TILES + 2;
}

typedef flp_status executor(const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args, const flp_weighted_sum_backward_problem *backward,
                            const flp_weighted_sum_backward_args *backward_args);

static flp_status through_plans(const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args, const flp_weighted_sum_backward_problem *backward,
                                const flp_weighted_sum_backward_args *backward_args)
{
    flp_plan *plan = NULL;
    flp_status status = args ? flp_weighted_sum_plan_create(cpu_context, problem, &plan) : flp_weighted_sum_backward_plan_create(cpu_context, backward, &plan);

    if (status == FLP_OK)
        status = args ? flp_weighted_sum_execute(plan, args) : flp_weighted_sum_backward_execute(plan, backward_args);
    flp_plan_destroy(plan);
    return status;
}

static flp_status by_dispatch(const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args, const flp_weighted_sum_backward_problem *backward,
                              const flp_weighted_sum_backward_args *backward_args)
{
    return args ? flp_weighted_sum(cpu_context, problem, args) : flp_weighted_sum_backward(cpu_context, backward, backward_args);
}

static int run_case(int index, executor *execute)
{
    flp_weighted_case c;
    flp_weighted_data data;
    flp_weighted_sum_args args;
    flp_weighted_sum_backward_args backward;
    char message[256] = "";
    int right;

    flp_weighted_case_get(index, &c);
    assert_true(flp_weighted_case_make(&c, &data));
    flp_weighted_case_forward(&c, &data, NULL, &args);
    flp_weighted_case_backward(&c, &data, NULL, &backward);
    right = execute(&c.problem.forward, &args, NULL, NULL) == FLP_OK && flp_weighted_case_check_sum(&c, &data, sum_depth(&c), message, sizeof(message));
    flp_weighted_case_restore(&data);
    right = right && execute(NULL, NULL, &c.problem, &backward) == FLP_OK &&
            flp_weighted_case_check_gradients(&c, &data, gradient_depth(&c), message, sizeof(message));
    if (!right)
        print_error("case \"%s\": %s\n", c.name, *message ? message : flp_error_message());
    flp_weighted_case_free(&data);
    return right;
}

static void expect_all_cases(executor *execute)
{
    int failures = 0;

    for (int i = 0; i < flp_weighted_case_count(); i++)
        failures += !run_case(i, execute);
    assert_int_equal(0, failures);
}

static void every_case_agrees_with_fp64_through_plans(void **state)
{
    (void)state;
    expect_all_cases(through_plans);
}

static void every_case_agrees_with_fp64_by_dispatch(void **state)
{
    (void)state;
    expect_all_cases(by_dispatch);
}

enum { ROWS = 150, COLUMNS = 2100 };
static float x[ROWS * COLUMNS], w[COLUMNS], y[ROWS], g[ROWS], grad_w[COLUMNS];

static void fill(void)
{
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = (float)((int64_t)i * 7919 % 1009 - 500) / 37;
    for (int d = 0; d < COLUMNS; d++)
        w[d] = (float)((d * 31 % 211) - 100) / 17;
    for (int i = 0; i < ROWS; i++)
        g[i] = (float)((i * 13 % 29) - 14) / 3;
}

static void compute(int threads)
{
    const flp_context_options options = { .cache_directory = "", .cpu_threads = threads, .flags = FLP_CONTEXT_NO_GPU };
    const flp_weighted_sum_backward_problem problem = { .forward = { .dtype = FLP_F32, .rows = ROWS, .columns = COLUMNS }, .grad_w = FLP_F32 };
    const flp_weighted_sum_args args = { .rows = ROWS, .x = x, .w = w, .y = y };
    const flp_weighted_sum_backward_args backward = { .rows = ROWS, .g = g, .x = x, .grad_w = grad_w };
    flp_context *own;

    assert_succeeds(flp_context_create(&options, &own));
    assert_succeeds(flp_weighted_sum(own, &problem.forward, &args));
    assert_succeeds(flp_weighted_sum_backward(own, &problem, &backward));
    flp_context_destroy(own);
}

static void the_number_of_threads_changes_no_bit(void **state)
{
    static float one_y[ROWS], one_grad_w[COLUMNS];

    (void)state;
    fill();
    compute(1);
    memcpy(one_y, y, sizeof(y));
    memcpy(one_grad_w, grad_w, sizeof(grad_w));
    for (int threads = 2; threads <= 5; threads++) {
        compute(threads);
        assert_memory_equal(one_y, y, sizeof(y));
        assert_memory_equal(one_grad_w, grad_w, sizeof(grad_w));
    }
}

static void a_row_keeps_its_bits_wherever_it_stands(void **state)
{
    const flp_weighted_sum_problem problem = { .dtype = FLP_F32, .rows = ROWS, .columns = COLUMNS };
    float alone;

    (void)state;
    fill();
    compute(2);
    for (int i = 0; i < ROWS; i += 37) {
        const flp_weighted_sum_args args = { .rows = 1, .x = x + i * COLUMNS, .w = w, .y = &alone };
        assert_succeeds(flp_weighted_sum(cpu_context, &problem, &args));
        assert_memory_equal(&y[i], &alone, sizeof(alone));
    }
}

/* The caller's mode neither enters the sums, on whichever thread these are computed, nor is lost. */
static void the_callers_rounding_mode_stays_its_own(void **state)
{
    enum { ROWS = 4096, COLUMNS = 33 };
    static float x[ROWS * COLUMNS], w[COLUMNS], y[2][ROWS];
    const flp_weighted_sum_problem problem = { .dtype = FLP_F32, .rows = ROWS, .columns = COLUMNS };
    int mode;

    (void)state;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = 1.0f / (float)(i % 1009 + 3);
    for (int i = 0; i < COLUMNS; i++)
        w[i] = 1.0f / (float)(i + 7);
    for (int i = 0; i < 2; i++) {
        const flp_weighted_sum_args args = { .rows = ROWS, .x = x, .w = w, .y = y[i] };

        assert_int_equal(0, fesetround(i ? FE_UPWARD : FE_TONEAREST));
        mode = fegetround();
        assert_succeeds(flp_weighted_sum(cpu_context, &problem, &args));
        assert_int_equal(mode, fegetround());
    }
    assert_int_equal(0, fesetround(FE_TONEAREST));
    assert_memory_equal(y[0], y[1], sizeof(y[0]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_case_agrees_with_fp64_through_plans), cmocka_unit_test(every_case_agrees_with_fp64_by_dispatch),
        cmocka_unit_test(the_number_of_threads_changes_no_bit),      cmocka_unit_test(a_row_keeps_its_bits_wherever_it_stands),
        cmocka_unit_test(the_callers_rounding_mode_stays_its_own),
    };

    return cmocka_run_group_tests(tests, cpu_context_start, cpu_context_stop);
}
