/* Executing plans with a real driver: graphs and captures, targets, workspaces. */
#include "device/fixture.h"

static flp_gpu *const gpu = &flp_device_test.gpu;

/* ---- graphs */

static void begin_capture(const flp_fixture *f)
{
    assert_succeeds(flp_gpu_check(gpu, gpu->capture_begin(f->stream, 0), "cuStreamBeginCapture"));
}

static CUgraphExec end_capture(const flp_fixture *f)
{
    CUgraph graph;
    CUgraphExec exec;

    assert_succeeds(flp_gpu_check(gpu, gpu->capture_end(f->stream, &graph), "cuStreamEndCapture"));
    assert_succeeds(flp_gpu_check(gpu, gpu->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate"));
    gpu->graph_destroy(graph);
    return exec;
}

static void expect_replays(flp_fixture *f, CUgraphExec exec)
{
    for (int i = 0; i < 3; i++) {
        flp_fixture_poison(f);
        assert_succeeds(flp_gpu_check(gpu, gpu->graph_launch(exec, f->stream), "cuGraphLaunch"));
        flp_fixture_expect_result(f);
    }
    gpu->graph_exec_destroy(exec);
}

static void a_captured_plan_replays(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    begin_capture(&f);
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_fixture_tear_down(&f);
}

static void a_prepared_problem_is_captured_with_the_shared_scratch(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    f.args.workspace = NULL;
    assert_succeeds(flp_linear_logp_prepare(flp_device_test.context, &f.c.problem, f.stream));
    begin_capture(&f);
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_fixture_tear_down(&f);
}

static void an_unprepared_problem_cannot_be_captured(void **state)
{
    flp_fixture f;
    flp_context *fresh;

    (void)state;
    flp_fixture_set_up(&f);
    assert_succeeds(flp_context_create(NULL, &fresh));
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_linear_logp(fresh, &f.c.problem, &f.args), "flp_linear_logp_prepare");
    /* The capture goes on as if nothing had been called. */
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_context_destroy(fresh);
    flp_fixture_tear_down(&f);
}

static void scratch_that_was_not_reserved_cannot_be_captured(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    f.args.workspace = NULL;
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_linear_logp_execute(f.plan, &f.args), "workspace");
    flp_device_case_use_workspace(&f.on_device, &f.args);
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_fixture_tear_down(&f);
}

static void checking_targets_cannot_be_captured(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    f.args.flags = FLP_CHECK_TARGETS | FLP_IGNORE_INDEX;
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_linear_logp_execute(f.plan, &f.args), "FLP_CHECK_TARGETS");
    f.args.flags = FLP_IGNORE_INDEX;
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_fixture_tear_down(&f);
}

/* ---- targets */

static void set_target(const flp_fixture *f, int64_t row, int64_t value)
{
    assert_succeeds(flp_gpu_upload(gpu, (CUdeviceptr)(uintptr_t)f->args.target + (uint64_t)row * 8, &value, sizeof(value)));
}

static void a_checked_bad_target_enqueues_nothing(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    f.args.flags = FLP_CHECK_TARGETS | FLP_IGNORE_INDEX;
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    flp_fixture_expect_result(&f);
    flp_fixture_poison(&f);
    set_target(&f, 211, 1300);
    set_target(&f, 299, -5);
    assert_fails(FLP_BAD_TARGET, flp_linear_logp_execute(f.plan, &f.args), "row 211 got 1300");
    flp_fixture_expect_nothing_written(&f);
    flp_fixture_tear_down(&f);
}

static void bad_targets_are_counted_until_asked(void **state)
{
    flp_fixture f;
    int64_t count, first;
    CUgraphExec exec;

    (void)state;
    flp_fixture_set_up(&f);
    set_target(&f, 211, 1300);
    set_target(&f, 299, INT64_MIN);
    begin_capture(&f);
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    exec = end_capture(&f);
    for (int i = 0; i < 2; i++)
        assert_succeeds(flp_gpu_check(gpu, gpu->graph_launch(exec, f.stream), "cuGraphLaunch"));
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    assert_succeeds(flp_plan_target_errors(f.plan, &count, &first));
    assert_int_equal(6, count);
    assert_int_equal(211, first);
    assert_succeeds(flp_plan_target_errors(f.plan, &count, &first));
    assert_int_equal(0, count);
    assert_int_equal(-1, first);
    gpu->graph_exec_destroy(exec);
    flp_fixture_tear_down(&f);
}

/* ---- workspaces and rows */

static void a_wrong_workspace_is_refused(void **state)
{
    flp_fixture f;
    char *workspace;

    (void)state;
    flp_fixture_set_up(&f);
    workspace = f.args.workspace;
    f.args.workspace_bytes--;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(f.plan, &f.args), "workspace_bytes");
    f.args.workspace_bytes++;
    f.args.workspace = workspace + 16;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_execute(f.plan, &f.args), "workspace");
    flp_fixture_expect_nothing_written(&f);
    flp_fixture_tear_down(&f);
}

static void no_rows_touch_nothing(void **state)
{
    flp_fixture f;
    flp_linear_logp_args empty = { 0 };

    (void)state;
    flp_fixture_set_up(&f);
    empty.stream = f.stream;
    assert_succeeds(flp_linear_logp_execute(f.plan, &empty));
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &empty));
    flp_fixture_expect_nothing_written(&f);
    flp_fixture_tear_down(&f);
}

/* Calls with more and more rows, without waiting in between: a small call's scratch must not be freed while its kernels run. */
static void the_shared_scratch_grows_behind_running_kernels(void **state)
{
    flp_fixture f;
    flp_context *fresh;

    (void)state;
    flp_fixture_set_up(&f);
    f.args.workspace = NULL;
    assert_succeeds(flp_context_create(NULL, &fresh));
    for (int64_t rows = 1; rows < f.c.problem.rows; rows *= 3) {
        f.args.rows = rows;
        assert_succeeds(flp_linear_logp(fresh, &f.c.problem, &f.args));
    }
    flp_fixture_expect_result(&f);
    f.args.rows = f.c.problem.rows;
    assert_succeeds(flp_linear_logp(fresh, &f.c.problem, &f.args));
    flp_fixture_expect_result(&f);
    flp_context_destroy(fresh);
    flp_fixture_tear_down(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        flp_device_test_of(a_captured_plan_replays),
        flp_device_test_of(a_prepared_problem_is_captured_with_the_shared_scratch),
        flp_device_test_of(an_unprepared_problem_cannot_be_captured),
        flp_device_test_of(scratch_that_was_not_reserved_cannot_be_captured),
        flp_device_test_of(checking_targets_cannot_be_captured),
        flp_device_test_of(a_checked_bad_target_enqueues_nothing),
        flp_device_test_of(bad_targets_are_counted_until_asked),
        flp_device_test_of(a_wrong_workspace_is_refused),
        flp_device_test_of(no_rows_touch_nothing),
        flp_device_test_of(the_shared_scratch_grows_behind_running_kernels),
    };

    return flp_device_test_main("execution", tests, argc, argv);
}
