/* weighted_sum's plans and calls, both directions, on a driver that computes nothing: problems, arguments, memory, launches. */
#include "params/weighted_sum.h"

#include <stdio.h>

#include "cuda/driver.h"
#include "fake_call.h"
#include "assertions.h"
#include "problem_text.h"
#include "fake_driver.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

enum { ROWS = 10000, COLUMNS = 4096 };

static flp_context *context;
static flp_plan *plan;
static flp_weighted_sum_problem problem;
static flp_weighted_sum_args args;
static flp_weighted_sum_backward_problem backward;
static flp_weighted_sum_backward_args backward_args;
static _Alignas(256) char memory[256]; /* neither read nor written */

/* What the last launch of each kernel was given. */
static flp_weighted_sum_params sum;
static flp_weighted_sum_outer_params outer;
static flp_weighted_sum_tile_params tile;
static flp_weighted_sum_combine_params combine;

static void keep_parameters(const fake_launch *launch)
{
    if (strstr(launch->kernel, "outer"))
        memcpy(&outer, launch->parameters[0], sizeof(outer));
    else if (strstr(launch->kernel, "tile"))
        memcpy(&tile, launch->parameters[0], sizeof(tile));
    else if (strstr(launch->kernel, "combine"))
        memcpy(&combine, launch->parameters[0], sizeof(combine));
    else
        memcpy(&sum, launch->parameters[0], sizeof(sum));
}

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    fake_driver.on_launch = keep_parameters;
    problem = (flp_weighted_sum_problem){ .dtype = FLP_BF16, .rows = ROWS, .columns = COLUMNS };
    args = (flp_weighted_sum_args){ .rows = ROWS, .x = memory, .w = memory + 2, .y = memory + 2 };
    backward = (flp_weighted_sum_backward_problem){ .forward = problem, .grad_x = FLP_BF16, .grad_w = FLP_F32 };
    backward_args = (flp_weighted_sum_backward_args){ .rows = ROWS, .g = memory + 2, .x = memory, .w = memory + 2, .grad_x = memory, .grad_w = memory + 4 };
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
    assert_succeeds(flp_weighted_sum_plan_create(context, &problem, &plan));
    fake_driver.launches = 0;
}

static void make_backward_plan(void)
{
    flp_plan_destroy(plan);
    assert_succeeds(flp_weighted_sum_backward_plan_create(context, &backward, &plan));
    fake_driver.launches = 0;
}

/* ---- problems */

static void expect_text(const char *wanted)
{
    expect_problem_text(&flp_weighted_sum_operator, &problem, wanted);
}

static void expect_backward_text(const char *wanted)
{
    expect_problem_text(&flp_weighted_sum_backward_operator, &backward, wanted);
}

static void a_problem_has_one_string(void **state)
{
    (void)state;
    expect_text("weighted_sum:bf16:n10000:d4096");
    problem.w_dtype = FLP_BF16; /* the default, spelled out */
    problem.x_stride = 4096;
    expect_text("weighted_sum:bf16:n10000:d4096");
    problem = (flp_weighted_sum_problem){ .dtype = FLP_F16,
                                          .rows = 0,
                                          .columns = 77,
                                          .x_stride = 80,
                                          .pointer_alignment = 2,
                                          .w_dtype = FLP_F32,
                                          .y_dtype = FLP_BF16,
                                          .backend = FLP_BACKEND_PORTABLE };
    expect_text("weighted_sum:f16:n0:d77:xs80:align2:w_f32:y_bf16:portable");
    expect_backward_text("weighted_sum_backward:bf16:n10000:d4096:gx_bf16:gw_f32");
    backward.grad_x = FLP_NONE;
    backward.accumulate = 1;
    expect_backward_text("weighted_sum_backward:bf16:n10000:d4096:gw_f32:accumulate");
    backward = (flp_weighted_sum_backward_problem){ .forward = { .dtype = FLP_F32, .rows = 5, .columns = 6, .x_stride = 8 }, .grad_x = FLP_F32 };
    expect_backward_text("weighted_sum_backward:f32:n5:d6:xs8:gx_f32");
    backward.grad_x_stride = 6;
    expect_backward_text("weighted_sum_backward:f32:n5:d6:xs8:gx_f32:gxs6");
}

#define REFUSED(change, part)                                                                                   \
    do {                                                                                                        \
        const flp_weighted_sum_backward_problem saved = backward;                                               \
        flp_plan *made;                                                                                         \
        change;                                                                                                 \
        assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward_plan_create(context, &backward, &made), part); \
        assert_null(made);                                                                                      \
        backward = saved;                                                                                       \
    } while (0)

static void every_field_is_checked_and_named(void **state)
{
    flp_plan *made;

    (void)state;
    REFUSED(backward.forward.dtype = FLP_NONE, "dtype: got 0");
    REFUSED(backward.forward.w_dtype = FLP_I32, "w_dtype: got");
    REFUSED(backward.forward.y_dtype = FLP_I64, "y_dtype: got");
    REFUSED(backward.forward.rows = -1, "rows: got -1");
    REFUSED(backward.forward.columns = 0, "columns: got 0");
    REFUSED(backward.forward.columns = INT64_C(1) << 31, "columns: got 2147483648");
    REFUSED(backward.forward.x_stride = 4095, "x_stride: got 4095, wanted 0 or at least the row's 4096");
    REFUSED(backward.forward.pointer_alignment = 1, "pointer_alignment: got 1");
    REFUSED(backward.forward.backend = (flp_backend)9, "backend: got 9");
    REFUSED(backward.grad_x = FLP_I32, "grad_x: got");
    REFUSED(backward.grad_w = FLP_I32, "grad_w: got");
    REFUSED(backward.grad_x = backward.grad_w = FLP_NONE, "got FLP_NONE for both");
    REFUSED(backward.grad_x_stride = 4095, "grad_x_stride: got 4095");
    REFUSED((backward.grad_x = FLP_NONE, backward.grad_x_stride = 4096), "grad_x_stride: got 4096 without grad_x");
    REFUSED(backward.accumulate = 2, "accumulate: got 2");
    REFUSED((backward.accumulate = 1, backward.grad_w = FLP_NONE), "accumulate: got 1 without grad_w");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_plan_create(context, NULL, &made), "problem: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward_plan_create(context, NULL, &made), "problem: got NULL");
    problem.columns = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_plan_create(context, &problem, &made), "columns: got 0");
}

/* ---- the forward */

static void one_kernel_gets_the_problem_and_the_arguments(void **state)
{
    (void)state;
    problem.x_stride = 4104;
    make_plan();
    assert_int_equal(FLP_BACKEND_PORTABLE, flp_plan_backend(plan));
    assert_contains(flp_plan_reason(plan), "not sm_90a: weighted_sum has one kernel for all GPUs");
    assert_int_equal(0, flp_plan_workspace_bytes(plan, ROWS));
    args.stream = memory;
    assert_succeeds(flp_weighted_sum_execute(plan, &args));
    assert_int_equal(1, fake_driver.launches);
    assert_ptr_equal(args.stream, fake_driver.launch[0].stream);
    assert_int_equal(256, fake_driver.launch[0].block[0]);
    assert_ptr_equal(args.x, sum.x);
    assert_ptr_equal(args.w, sum.w);
    assert_ptr_equal(args.y, sum.y);
    assert_int_equal(ROWS, sum.rows);
    assert_int_equal(4104, sum.x_stride);
    assert_int_equal(COLUMNS, sum.columns);
}

/* As many as the device holds at least, as long as there are rows for them; with many rows, some that serve many rows each. */
static void the_blocks_follow_the_rows(void **state)
{
    static const struct {
        int64_t rows;
        unsigned blocks;
    } wanted[] = { { 1, 1 }, { 2, 1 }, { 3, 2 }, { 800, 400 }, { 10000, 528 } };

    (void)state;
    make_plan();
    for (size_t i = 0; i < sizeof(wanted) / sizeof(wanted[0]); i++) {
        args.rows = wanted[i].rows;
        assert_succeeds(flp_weighted_sum_execute(plan, &args));
        assert_int_equal(wanted[i].blocks, fake_driver.launch[i].grid[0]);
    }
    problem.rows = INT64_C(1) << 28;
    make_plan();
    args.rows = problem.rows;
    assert_succeeds(flp_weighted_sum_execute(plan, &args));
    assert_int_equal(16 * 528, fake_driver.launch[0].grid[0]);
}

static void narrow_alignment_is_taken_and_shown(void **state)
{
    (void)state;
    problem.pointer_alignment = 2;
    make_plan();
    assert_contains(flp_plan_describe(plan), ".vec2.");
    problem.pointer_alignment = 16;
    problem.x_stride = 4097;
    make_plan();
    assert_contains(flp_plan_describe(plan), ".vec2.");
}

/* Whatever says so to a trainer and to an engine. */
static void numerics_depend_on_columns_and_dtypes_alone(void **state)
{
    char numerics[256];

    (void)state;
    make_plan();
    snprintf(numerics, sizeof(numerics), "%s", flp_plan_numerics(plan));
    problem.rows = 3;
    problem.pointer_alignment = 2;
    problem.x_stride = 5001;
    fake_driver.major = 8;
    fake_driver.minor = 0;
    fake_driver.current = fake_driver_context(1); /* of another GPU: the facts of a context's own are kept */
    make_plan();
    assert_string_equal(numerics, flp_plan_numerics(plan));
    problem.columns = 8192;
    problem.x_stride = 0;
    make_plan();
    assert_string_not_equal(numerics, flp_plan_numerics(plan));
}

static void the_forwards_arguments_are_checked_and_named(void **state)
{
    (void)state;
    make_plan();
#define ARGUMENT_REFUSED(change, part)                                                    \
    do {                                                                                  \
        const flp_weighted_sum_args saved = args;                                         \
        change;                                                                           \
        assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_execute(plan, &args), part);      \
        assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum(context, &problem, &args), part); \
        args = saved;                                                                     \
    } while (0)
    ARGUMENT_REFUSED(args.rows = -1, "rows: got -1");
    ARGUMENT_REFUSED(args.x = NULL, "x: got NULL");
    ARGUMENT_REFUSED(args.x = memory + 1, "x: got 0x");
    ARGUMENT_REFUSED(args.w = NULL, "w: got NULL");
    ARGUMENT_REFUSED(args.w = memory + 1, "w: got 0x");
    ARGUMENT_REFUSED(args.y = NULL, "y: got NULL");
    ARGUMENT_REFUSED(args.y = memory + 1, "y: got 0x");
    args.x = memory + 2; /* to which a call without a plan finds another */
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_execute(plan, &args), "wanted a multiple of 16 bytes");
    args.x = memory;
    args.rows = ROWS + 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_execute(plan, &args), "rows: got 10001, wanted 0 .. 10000");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_execute(plan, NULL), "args: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_execute(NULL, &args), "plan: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward_execute(plan, &backward_args),
                 "plan: got one of weighted_sum, wanted one of weighted_sum_backward");
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum(context, NULL, &args), "problem: got NULL");
    assert_int_equal(0, fake_driver.launches);
    args = (flp_weighted_sum_args){ 0 };
    assert_succeeds(flp_weighted_sum_execute(plan, &args));
    assert_succeeds(flp_weighted_sum(context, &problem, &args));
    assert_int_equal(0, fake_driver.launches);
}

/* ---- the backward */

static void grad_w_comes_before_grad_x_which_may_be_x(void **state)
{
    const fake_launch *launch = fake_driver.launch;

    (void)state;
    make_backward_plan();
    backward_args.grad_x = memory; /* x */
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_int_equal(3, fake_driver.launches);
    assert_contains(launch[0].kernel, "weighted_sum_tile");
    assert_contains(launch[1].kernel, "weighted_sum_combine");
    assert_contains(launch[2].kernel, "weighted_sum_outer");
    assert_int_equal(1, launch[1].dependent_launch);
    assert_int_equal(0, launch[2].dependent_launch); /* it overwrites what the tiles read */
}

static void the_backwards_kernels_get_the_problem_and_the_arguments(void **state)
{
    const flp_weighted_sum_tiles tiles = flp_weighted_sum_tiles_compute(ROWS - 1, COLUMNS, 8, 512);

    (void)state;
    backward.accumulate = 1;
    backward.forward.x_stride = 4104;
    make_backward_plan();
    backward_args.rows = ROWS - 1;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_ptr_equal(backward_args.x, tile.x);
    assert_ptr_equal(backward_args.g, tile.g);
    assert_int_equal(ROWS - 1, tile.rows);
    assert_int_equal(4104, tile.x_stride);
    assert_int_equal(1, tile.accumulate);
    assert_int_equal(tiles.tiles, tile.tiles);
    assert_int_equal(tiles.tile_rows, tile.tile_rows);
    assert_int_equal(tiles.slabs * tiles.tiles, fake_driver.launch[0].grid[0]);
    assert_ptr_equal(tile.partial, combine.partial);
    assert_ptr_equal(backward_args.grad_w, combine.grad_w);
    assert_int_equal(1, combine.accumulate);
    assert_int_equal(COLUMNS, combine.partial_stride);
    assert_int_equal(COLUMNS / 32, fake_driver.launch[1].grid[0]);
    assert_ptr_equal(backward_args.grad_x, outer.grad_x);
    assert_ptr_equal(backward_args.w, outer.w);
    assert_int_equal(4104, outer.grad_x_stride);
    assert_int_equal(256, outer.slab);
    assert_int_equal(2, outer.slabs);
    assert_int_equal(1, outer.lanes);
    assert_int_equal(2 * ((ROWS - 1 + 1) / 2), fake_driver.launch[2].grid[0]);
}

static void only_what_is_wanted_is_launched(void **state)
{
    (void)state;
    backward.grad_w = FLP_NONE;
    make_backward_plan();
    backward_args.x = backward_args.grad_w = NULL;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_int_equal(1, fake_driver.launches);
    assert_int_equal(0, flp_plan_workspace_bytes(plan, ROWS));
    backward.grad_w = FLP_BF16;
    backward.grad_x = FLP_NONE;
    make_backward_plan();
    backward_args.x = memory;
    backward_args.grad_w = memory;
    backward_args.w = backward_args.grad_x = NULL;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_int_equal(2, fake_driver.launches);
}

static void few_rows_and_no_rows_write_grad_w_in_one_launch(void **state)
{
    (void)state;
    backward.grad_x = FLP_NONE;
    backward_args.grad_x = NULL;
    make_backward_plan();
    backward_args.rows = 100;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    backward_args.rows = 0;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_succeeds(flp_weighted_sum_backward(context, &backward, &backward_args));
    assert_int_equal(3, fake_driver.launches);
    assert_int_equal(1, tile.tiles);
    assert_int_equal(0, tile.rows);
    assert_null(tile.partial);
    assert_int_equal(0, flp_plan_workspace_bytes(plan, 100));
}

static void the_workspace_is_the_tiles_sums(void **state)
{
    static _Alignas(256) char workspace[1 << 20];
    int64_t bytes;

    (void)state;
    make_backward_plan();
    bytes = flp_plan_workspace_bytes(plan, ROWS);
    assert_int_equal(flp_weighted_sum_tiles_floats(ROWS, COLUMNS, 8, 512) * 4, bytes);
    assert_true(bytes > 0 && bytes <= (int64_t)sizeof(workspace));
    backward_args.workspace = workspace;
    backward_args.workspace_bytes = (size_t)bytes;
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_ptr_equal(workspace, tile.partial);
    backward_args.workspace_bytes--;
    assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward_execute(plan, &backward_args), "workspace_bytes: got");
}

static void the_backwards_arguments_are_checked_and_named(void **state)
{
    (void)state;
    make_backward_plan();
#define BACKWARD_REFUSED(change, part)                                                                       \
    do {                                                                                                     \
        const flp_weighted_sum_backward_args saved = backward_args;                                          \
        change;                                                                                              \
        assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward_execute(plan, &backward_args), part);       \
        assert_fails(FLP_BAD_ARGUMENT, flp_weighted_sum_backward(context, &backward, &backward_args), part); \
        backward_args = saved;                                                                               \
    } while (0)
    BACKWARD_REFUSED(backward_args.rows = -1, "rows: got -1");
    BACKWARD_REFUSED(backward_args.g = NULL, "g: got NULL");
    BACKWARD_REFUSED(backward_args.x = NULL, "x: got NULL");
    BACKWARD_REFUSED(backward_args.x = memory + 1, "x: got 0x");
    BACKWARD_REFUSED(backward_args.w = NULL, "w: got NULL");
    BACKWARD_REFUSED(backward_args.grad_x = NULL, "grad_x: got NULL");
    BACKWARD_REFUSED(backward_args.grad_x = memory + 1, "grad_x: got 0x");
    BACKWARD_REFUSED(backward_args.grad_w = NULL, "grad_w: got NULL");
    BACKWARD_REFUSED(backward_args.grad_w = memory + 2, "wanted a multiple of 4 bytes");
    backward.forward.x_stride = 4104;
    backward.grad_x_stride = 4096;
    make_backward_plan();
    BACKWARD_REFUSED(backward_args.grad_x = memory, "grad_x: got x with another dtype or stride");
    backward.grad_x = FLP_NONE;
    backward.grad_x_stride = 0;
    make_backward_plan();
    BACKWARD_REFUSED(backward_args.grad_x = memory, "grad_x: got 0x");
    BACKWARD_REFUSED((backward_args.grad_x = memory, backward_args.rows = 0), "wanted NULL: the problem's grad_x is FLP_NONE");
    assert_int_equal(0, fake_driver.launches);
}

static void another_gpu_takes_the_portable_path(void **state)
{
    (void)state;
    fake_driver.major = 8;
    fake_driver.minor = 6;
    make_backward_plan();
    assert_int_equal(FLP_BACKEND_PORTABLE, flp_plan_backend(plan));
    assert_succeeds(flp_weighted_sum_backward_execute(plan, &backward_args));
    assert_int_equal(3, fake_driver.launches);
    assert_int_equal(0, fake_driver.launch[1].dependent_launch);
}

static void a_capture_wants_the_plan_prepared(void **state)
{
    (void)state;
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_weighted_sum_backward(context, &backward, &backward_args), "flp_weighted_sum_backward_prepare");
    assert_fails(FLP_CAPTURING, flp_weighted_sum(context, &problem, &args), "flp_weighted_sum_prepare");
    fake_driver.capture = 0;
    assert_succeeds(flp_weighted_sum_backward_prepare(context, &backward, NULL));
    assert_succeeds(flp_weighted_sum_prepare(context, &problem, NULL));
    fake_driver.capture = 1;
    assert_succeeds(flp_weighted_sum_backward(context, &backward, &backward_args));
    assert_succeeds(flp_weighted_sum(context, &problem, &args));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_problem_has_one_string),
        TEST(every_field_is_checked_and_named),
        TEST(one_kernel_gets_the_problem_and_the_arguments),
        TEST(the_blocks_follow_the_rows),
        TEST(narrow_alignment_is_taken_and_shown),
        TEST(numerics_depend_on_columns_and_dtypes_alone),
        TEST(the_forwards_arguments_are_checked_and_named),
        TEST(grad_w_comes_before_grad_x_which_may_be_x),
        TEST(the_backwards_kernels_get_the_problem_and_the_arguments),
        TEST(only_what_is_wanted_is_launched),
        TEST(few_rows_and_no_rows_write_grad_w_in_one_launch),
        TEST(the_workspace_is_the_tiles_sums),
        TEST(the_backwards_arguments_are_checked_and_named),
        TEST(another_gpu_takes_the_portable_path),
        TEST(a_capture_wants_the_plan_prepared),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
