/* Executing a plan: arguments, memory, launches, errors. Nothing here computes, but for the CPU path's few rows. */
#include "params/linear_logp.h"

#include <float.h>
#include <math.h>

#include "cuda/driver.h"
#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "operator_call.h"
#include "operators/linear/linear_logp_plan.h"

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_linear_logp_args args;
static flp_plan *plan;
static void *workspace;

/* What the last tile and combine launches were given. */
static flp_linear_logp_params tile;
static flp_linear_logp_combine_params combine;
static int maps;

static void keep_parameters(const fake_launch *launch)
{
    if (strstr(launch->kernel, "combine")) {
        memcpy(&combine, launch->parameters[0], sizeof(combine));
        return;
    }
    memcpy(&tile, launch->parameters[maps], sizeof(tile));
}

OPERATOR_CALL_FUNCTIONS(linear_logp)
static const operator_call call = OPERATOR_CALL(linear_logp, problem, args, problem.rows, problem.backend);

static void make_plan(void)
{
    operator_call_make_plan();
    maps = flp_plan_backend(plan) == FLP_BACKEND_SM90A ? 2 : 0;
}

static int start(void **state)
{
    (void)state;
    operator_call_current = &call;
    context = fake_call_start(0);
    problem = fake_call_problem();
    args = fake_call_args(FAKE_CALL_ROWS);
    fake_driver.on_launch = keep_parameters;
    make_plan();
    return 0;
}

static void two_kernels_are_launched_on_the_stream(void **state)
{
    const fake_launch *first = &fake_driver.launch[0], *second = &fake_driver.launch[1];

    (void)state;
    args.stream = fake_call_memory();
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(2, fake_driver.launches);
    assert_string_equal(flp_linear_logp_plan_of(plan)->tile->manifest.kernel, first->kernel);
    assert_string_equal(flp_linear_logp_plan_of(plan)->combine->manifest.kernel, second->kernel);
    assert_ptr_equal(args.stream, first->stream);
    assert_ptr_equal(args.stream, second->stream);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.threads, first->block[0]);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.shared_bytes, first->shared_bytes);
    assert_int_equal(flp_linear_logp_plan_of(plan)->combine->manifest.threads, second->block[0]);
    /* More units than the device holds clusters: one persistent block a multiprocessor. */
    assert_int_equal(132, first->grid[0]);
    assert_int_equal((300 + flp_linear_logp_plan_of(plan)->combine->manifest.block_rows - 1) / flp_linear_logp_plan_of(plan)->combine->manifest.block_rows,
                     second->grid[0]);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_synchronize]);
}

static void the_combine_is_a_dependent_launch_where_the_driver_can(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(0, fake_driver.launch[0].dependent_launch);
    assert_int_equal(1, fake_driver.launch[1].dependent_launch);
    fake_driver_fail(FAKE_launch_extended, CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_fails(FLP_CUDA_FAILED, flp_linear_logp_execute(plan, &args), "cuLaunchKernelEx");
}

static void an_older_driver_launches_the_combine_behind_the_tile_kernel(void **state)
{
    (void)state;
    operator_call_stop(NULL);
    context = fake_call_start(0);
    fake_library.missing = "cuLaunchKernelEx";
    make_plan();
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(2, fake_driver.launches);
    assert_int_equal(0, fake_driver.launch[1].dependent_launch);
}

static void the_kernels_get_the_problem_and_the_arguments(void **state)
{
    (void)state;
    problem.argmax = 1;
    problem.entropy = 1;
    problem.softcap = 30;
    problem.bias_dtype = FLP_F32;
    problem.target_dtype = FLP_I32;
    make_plan();
    args.bias = fake_call_memory();
    args.lse = fake_call_memory();
    args.argmax = fake_call_memory();
    args.entropy = fake_call_memory();
    args.temperature = 0.5;
    args.rows = 299;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_ptr_equal(args.hidden, tile.hidden);
    assert_ptr_equal(args.weight, tile.weight);
    assert_ptr_equal(args.bias, tile.bias);
    assert_ptr_equal(args.target, tile.target);
    assert_null(tile.row_temperature);
    assert_int_equal(299, tile.rows);
    assert_int_equal(FAKE_CALL_HIDDEN, tile.hidden_stride);
    assert_int_equal(FAKE_CALL_HIDDEN, tile.weight_stride);
    assert_int_equal(FAKE_CALL_VOCAB, tile.vocab);
    assert_int_equal(FAKE_CALL_HIDDEN, tile.hidden_size);
    assert_int_equal(4, tile.target_bytes);
    assert_true(tile.scale == (float)(M_LOG2E / 0.5));
    assert_true(tile.softcap == 30 && tile.inverse_softcap == (float)(1.0 / 30));
    assert_memory_equal(&flp_linear_logp_plan_of(plan)->split, &tile.split, sizeof(tile.split));
    assert_ptr_equal(args.logp, combine.logp);
    assert_ptr_equal(args.lse, combine.lse);
    assert_ptr_equal(args.argmax, combine.argmax);
    assert_ptr_equal(args.entropy, combine.entropy);
    assert_ptr_equal(args.target, combine.target);
    assert_int_equal(299, combine.rows);
    assert_int_equal(-100, combine.ignore_index);
    assert_int_equal(1, combine.ignores);
    assert_int_equal(flp_linear_logp_plan_of(plan)->split.splits, combine.splits);
    assert_int_equal(FAKE_CALL_VOCAB, combine.vocab);
    assert_ptr_equal((void *)(uintptr_t)plan->target_errors, combine.target_errors);
}

/* Aligned, inside the workspace, and over none of the others. */
static void assert_regions(const void *const *start, const int64_t *bytes, int count)
{
    const char *end = (const char *)workspace + args.workspace_bytes;

    for (int i = 0; i < count; i++) {
        const char *at = start[i];

        assert_true(at >= (const char *)workspace && at + bytes[i] <= end);
        assert_int_equal(0, (at - (const char *)workspace) % 256);
        for (int j = 0; j < i; j++)
            assert_true(at + bytes[i] <= (const char *)start[j] || (const char *)start[j] + bytes[j] <= at);
    }
}

static void the_workspace_is_cut_into_aligned_regions(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_null(tile.best);
    assert_null(tile.moment);
    problem.argmax = 1;
    problem.entropy = 1;
    make_plan();
    args.rows = 3;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    {
        const int64_t sums = 3 * flp_linear_logp_plan_of(plan)->split.splits;
        const void *const start[] = { tile.partial, tile.best, tile.moment, tile.target_logit };
        const int64_t bytes[] = { sums * 8, sums * 8, sums * 4, 3 * 4 };

        assert_regions(start, bytes, 4);
    }
    assert_ptr_equal(tile.moment, combine.moment);
    assert_ptr_equal(tile.partial, combine.partial);
    assert_ptr_equal(tile.best, combine.best);
    assert_ptr_equal(tile.target_logit, combine.target_logit);
}

static void the_tensor_maps_end_at_the_real_sizes(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(2, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
    /* The weight's is the last. */
    assert_ptr_equal(args.weight, fake_driver.map.address);
    assert_int_equal(FAKE_CALL_HIDDEN, fake_driver.map.dimensions[0]);
    assert_int_equal(FAKE_CALL_VOCAB, fake_driver.map.dimensions[1]);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.b_box_rows, fake_driver.map.box[1]);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.block_rows > 64 ? CU_TENSOR_MAP_L2_PROMOTION_L2_256B : CU_TENSOR_MAP_L2_PROMOTION_L2_128B,
                     fake_driver.map.l2_promotion);
    problem.weight_layout = FLP_HIDDEN_VOCAB;
    problem.weight_stride = FAKE_CALL_VOCAB + 16;
    make_plan();
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(FAKE_CALL_VOCAB, fake_driver.map.dimensions[0]);
    assert_int_equal(FAKE_CALL_HIDDEN, fake_driver.map.dimensions[1]);
    assert_int_equal((FAKE_CALL_VOCAB + 16) * 2, fake_driver.map.stride_bytes);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.b_box_columns, fake_driver.map.box[0]);
    assert_int_equal(CU_TENSOR_MAP_L2_PROMOTION_L2_128B, fake_driver.map.l2_promotion);
}

static void hidden_comes_in_boxes_of_no_more_rows_than_there_are(void **state)
{
    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_ptr_equal(args.hidden, fake_driver.map_before.address);
    assert_int_equal(flp_linear_logp_plan_of(plan)->tile->manifest.a_box_rows, fake_driver.map_before.box[1]);
    args.rows = 3;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(3, fake_driver.map.dimensions[1]); /* the weight's is the one of before, and not encoded again */
    assert_int_equal(3, fake_driver.map.box[1]);
}

/* The driver's functions that a repeated call of known arguments asks once each. */
static void assert_repeated_call_asks(const int *wanted, int count)
{
    int before[FAKE_FUNCTIONS], calls = 0;

    assert_succeeds(flp_linear_logp_execute(plan, &args));
    for (int i = 0; i < FAKE_FUNCTIONS; i++)
        before[i] = fake_driver.calls[i];
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    for (int i = 0; i < FAKE_FUNCTIONS; i++)
        calls += fake_driver.calls[i] - before[i];
    for (int i = 0; i < count; i++)
        assert_int_equal(1, fake_driver.calls[wanted[i]] - before[wanted[i]]);
    assert_int_equal(count, calls);
}

static void a_repeated_call_asks_the_driver_for_what_may_have_changed(void **state)
{
    static const int wanted[] = { FAKE_context_current, FAKE_context_id, FAKE_launch, FAKE_launch_extended, FAKE_stream_is_capturing, FAKE_stream_id };

    (void)state;
    assert_repeated_call_asks(wanted, 4);
    args.workspace = NULL; /* lent scratch is a stream's */
    assert_repeated_call_asks(wanted, 5);
    args.stream = fake_call_memory();
    assert_repeated_call_asks(wanted, 6);
}

/* A thread keeps the layouts of four plans, by their numbers. */
static void a_repeated_call_has_the_workspace_of_its_own_rows_and_plan(void **state)
{
    const void *partial;

    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    partial = tile.partial;
    args.rows = 3;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_true((const char *)tile.partial < (const char *)partial); /* the logits of fewer targets lie before it */
    args.rows = FAKE_CALL_ROWS;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_ptr_equal(partial, tile.partial);
    assert_null(tile.moment);
    problem.entropy = 1;
    for (int i = 0; i < 4; i++)
        make_plan();
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_non_null(tile.moment);
}

static void the_portable_kernel_gets_no_tensor_maps(void **state)
{
    (void)state;
    problem.backend = FLP_BACKEND_PORTABLE;
    make_plan();
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(0, fake_driver.calls[FAKE_tensor_map_encode_tiled]);
    assert_int_equal(300, tile.rows);
    assert_int_equal(FAKE_CALL_VOCAB, tile.vocab);
}

static void row_temperatures_take_the_place_of_the_temperature(void **state)
{
    (void)state;
    args.row_temperature = fake_call_memory();
    args.temperature = 1;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_ptr_equal(args.row_temperature, tile.row_temperature);
    assert_true(tile.scale == (float)M_LOG2E);
}

static void every_argument_is_checked_and_named(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(NULL, &args), "plan: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(plan, NULL), "args: got NULL");
    REFUSED(args.rows = 301, "rows: got 301, wanted 0 .. 300");
    REFUSED(args.rows = -1, "rows: got -1");
    REFUSED(args.hidden = NULL, "hidden: got NULL");
    REFUSED(args.hidden = (const char *)args.hidden + 8, "hidden: got 0x");
    REFUSED(args.weight = NULL, "weight: got NULL");
    REFUSED(args.weight = (const char *)args.weight + 8, "wanted a multiple of 16 bytes");
    UNASKED(args.bias = fake_call_memory(), "bias_dtype is FLP_NONE");
    REFUSED(args.target = NULL, "target: got NULL");
    REFUSED(args.target = (const char *)args.target + 4, "wanted a multiple of 8 bytes");
    REFUSED(args.temperature = -1, "temperature: got -1, wanted 0 (for 1)");
    REFUSED(args.temperature = NAN, "temperature: got nan");
    REFUSED(args.temperature = INFINITY, "temperature: got inf");
    REFUSED(args.temperature = 1e-40, "temperature: got 1e-40");
    REFUSED((args.temperature = 2, args.row_temperature = fake_call_memory()), "temperature: got 2 beside row_temperature");
    REFUSED(args.row_temperature = (float *)((char *)fake_call_memory() + 2), "row_temperature: got 0x");
    REFUSED(args.logp = NULL, "logp: got NULL");
    REFUSED(args.logp = (float *)((char *)fake_call_memory() + 1), "logp: got 0x");
    REFUSED(args.lse = (float *)((char *)fake_call_memory() + 1), "lse: got 0x");
    UNASKED(args.argmax = fake_call_memory(), "argmax is 0");
    UNASKED(args.entropy = fake_call_memory(), "entropy is 0");
    REFUSED(args.entropy = (float *)((char *)fake_call_memory() + 1), "entropy: got 0x");
    REFUSED(args.workspace_bytes -= 1, "workspace_bytes: got");
    REFUSED(args.workspace = (char *)args.workspace + 128, "workspace: got 0x");
    REFUSED(args.flags = 2, "flags: got 0x2, wanted no bits but 0x5");
    REFUSED(args.flags = 0, "ignore_index: got -100 without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none");
    problem.bias_dtype = FLP_F32;
    problem.argmax = 1;
    make_plan();
    REFUSED(args.bias = NULL, "bias: got NULL");
    args.bias = fake_call_memory();
    REFUSED(args.bias = (char *)fake_call_memory() + 2, "wanted a multiple of 4 bytes");
    REFUSED(args.argmax = (int32_t *)((char *)fake_call_memory() + 2), "argmax: got 0x");
    assert_int_equal(0, fake_driver.launches);
}

static void no_rows_is_no_launch_and_needs_no_addresses(void **state)
{
    flp_linear_logp_args empty = { 0 };

    (void)state;
    assert_succeeds(flp_linear_logp_execute(plan, &empty));
    assert_succeeds(flp_linear_logp(context, &problem, &empty));
    assert_int_equal(0, fake_driver.launches);
    empty.flags = 8;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(plan, &empty), "flags: got 0x8");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &empty), "flags: got 0x8");
    problem.vocab = 0;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &empty), "vocab: got 0");
}

static void another_cuda_context_is_refused(void **state)
{
    (void)state;
    fake_driver.current = fake_driver_context(1);
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_execute(plan, &args), "number 1001, the plan belongs to number 1000");
    fake_driver.current = NULL;
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_execute(plan, &args), "no CUDA context is current");
    assert_int_equal(0, fake_driver.launches);
}

static void a_failed_launch_names_the_kernel(void **state)
{
    (void)state;
    fake_driver_fail(FAKE_launch, CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_fails(FLP_CUDA_FAILED, flp_linear_logp_execute(plan, &args), "132 blocks: cuLaunchKernel");
    assert_contains(flp_error_message(), flp_linear_logp_plan_of(plan)->tile->manifest.variant);
    assert_int_equal(1, fake_driver.calls[FAKE_launch]); /* no combine of what was not computed */
    fake_driver_fail(FAKE_tensor_map_encode_tiled, CUDA_ERROR_INVALID_VALUE, 1);
    args.hidden = (const char *)args.hidden + 16; /* whose map this thread does not have yet */
    assert_fails(FLP_CUDA_FAILED, flp_linear_logp_execute(plan, &args), "hidden's tensor map: cuTensorMapEncodeTiled");
    assert_int_equal(1, fake_driver.calls[FAKE_launch]);
    assert_succeeds(flp_linear_logp_execute(plan, &args));
}

static void executing_in_a_workspace_allocates_nothing_and_can_be_captured(void **state)
{
    operator_call_executing_in_a_workspace_allocates_nothing_and_can_be_captured(state);
    assert_int_equal(42, fake_driver.launches);
}

static void checking_targets_names_the_first_bad_row_and_launches_nothing(void **state)
{
    int64_t *target = (int64_t *)(uintptr_t)args.target;

    (void)state;
    args.flags |= FLP_CHECK_TARGETS;
    target[0] = FAKE_CALL_VOCAB - 1;
    target[5] = -100; /* ignored */
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(2, fake_driver.launches);
    target[299] = INT64_C(1) << 32; /* 0 in its low half */
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 299 got 4294967296, wanted 0 .. 69999 or the ignore_index -100");
    target[7] = FAKE_CALL_VOCAB;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 7 got 70000");
    target[6] = -1;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 6 got -1");
    args.flags = FLP_CHECK_TARGETS;
    args.ignore_index = 0;
    target[5] = INT64_MIN;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 5 got -9223372036854775808, wanted 0 .. 69999");
    assert_null(strstr(flp_error_message(), "ignore"));
    args.flags = 0;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    assert_int_equal(4, fake_driver.launches);
}

/* More targets than one copy takes, of which the very last is bad. */
static void targets_are_checked_to_the_last(void **state)
{
    enum { MANY = 10001 };
    static int32_t targets[MANY];

    (void)state;
    problem.rows = MANY;
    problem.target_dtype = FLP_I32;
    make_plan();
    args.rows = MANY;
    args.target = targets;
    args.flags |= FLP_CHECK_TARGETS;
    targets[MANY - 1] = INT32_MIN;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 10000 got -2147483648");
    targets[MANY - 1] = 0;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
}

static void checking_targets_cannot_be_captured(void **state)
{
    (void)state;
    args.flags |= FLP_CHECK_TARGETS;
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_linear_logp_execute(plan, &args), "FLP_CHECK_TARGETS waits for the stream");
    fake_driver.capture = 0;
    fake_driver_fail(FAKE_copy_to_host, CUDA_ERROR_LAUNCH_FAILED, 1);
    assert_fails(FLP_CUDA_FAILED, flp_linear_logp_execute(plan, &args), "cuMemcpyDtoHAsync of target");
    assert_int_equal(0, fake_driver.launches);
}

/* logp of zero hidden is -log V; a bad target is NaN and counted. */
static void the_cpu_path_computes_at_once(void **state)
{
    int64_t *target = (int64_t *)(uintptr_t)args.target, count, first;

    (void)state;
    problem.backend = FLP_BACKEND_CPU;
    make_plan();
    args.rows = 4;
    target[1] = FAKE_CALL_VOCAB;
    target[2] = -100;
    target[3] = -1;
    assert_succeeds(flp_linear_logp_execute(plan, &args));
    /* Rounding of a float near 11. */
    assert_true(fabs(args.logp[0] + log(FAKE_CALL_VOCAB)) <= 16 * FLT_EPSILON);
    assert_true(isnan(args.logp[1]) && args.logp[2] == 0 && isnan(args.logp[3]));
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(2, count);
    assert_int_equal(1, first);
    assert_succeeds(flp_plan_target_errors(plan, &count, &first));
    assert_int_equal(0, count);
    assert_int_equal(-1, first);
    args.flags |= FLP_CHECK_TARGETS;
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(plan, &args), "target: row 1 got 70000");
    assert_int_equal(0, fake_driver.launches);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, operator_call_stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(two_kernels_are_launched_on_the_stream),
        TEST(the_combine_is_a_dependent_launch_where_the_driver_can),
        TEST(an_older_driver_launches_the_combine_behind_the_tile_kernel),
        TEST(the_kernels_get_the_problem_and_the_arguments),
        TEST(the_workspace_is_cut_into_aligned_regions),
        TEST(the_tensor_maps_end_at_the_real_sizes),
        TEST(hidden_comes_in_boxes_of_no_more_rows_than_there_are),
        TEST(a_repeated_call_asks_the_driver_for_what_may_have_changed),
        TEST(a_repeated_call_has_the_workspace_of_its_own_rows_and_plan),
        TEST(the_portable_kernel_gets_no_tensor_maps),
        TEST(row_temperatures_take_the_place_of_the_temperature),
        TEST(every_argument_is_checked_and_named),
        TEST(no_rows_is_no_launch_and_needs_no_addresses),
        TEST(another_cuda_context_is_refused),
        TEST(a_failed_launch_names_the_kernel),
        TEST(executing_in_a_workspace_allocates_nothing_and_can_be_captured),
        TEST(checking_targets_names_the_first_bad_row_and_launches_nothing),
        TEST(targets_are_checked_to_the_last),
        TEST(checking_targets_cannot_be_captured),
        TEST(the_cpu_path_computes_at_once),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
