/* Executing plans beside a real driver: graphs, captures, streams, threads, contexts, workspaces, targets. */
#include <pthread.h>
#include <stdlib.h>

#include "device/device_case.h"
#include "device/device_test.h"
#include "device/edge_cases.h"

enum { CASE = 2, MOST_ROWS = 512, NON_BLOCKING = 1, THREADS = 4, ROUNDS = 50 };

/* One case on the device, a plan for it, and the bits of its logp. */
typedef struct {
    flp_case c;
    flp_case_data data;
    flp_device_case on_device;
    flp_linear_logp_args args;
    flp_plan *plan;
    CUstream stream;
    uint32_t expected[MOST_ROWS];
} fixture;

static flp_gpu *gpu(void)
{
    return &flp_device_test.gpu;
}

static void fetch(const fixture *f, uint32_t *logp)
{
    assert_succeeds(flp_gpu_synchronize(gpu()));
    assert_succeeds(flp_gpu_download(gpu(), logp, (CUdeviceptr)(uintptr_t)f->args.logp, (size_t)f->args.rows * 4));
}

static void expect_result(const fixture *f)
{
    uint32_t got[MOST_ROWS];

    fetch(f, got);
    assert_memory_equal(f->expected, got, (size_t)f->args.rows * 4);
}

static void expect_nothing_written(const fixture *f)
{
    uint32_t got[MOST_ROWS];

    fetch(f, got);
    for (int64_t i = 0; i < f->args.rows; i++)
        assert_int_equal(0xc5c5c5c5, got[i]);
}

static void poison(fixture *f)
{
    assert_succeeds(flp_device_case_poison(gpu(), &f->data, &f->on_device));
}

static void upload(fixture *f)
{
    int64_t bytes = flp_plan_workspace_bytes(f->plan, f->c.problem.rows);

    assert_succeeds(flp_device_case_upload(gpu(), &f->data, 0, &f->on_device));
    assert_succeeds(flp_device_case_add_workspace(gpu(), bytes, 0, &f->on_device));
    flp_device_case_args(&f->c, &f->data, &f->on_device, &f->args);
    flp_device_case_use_workspace(&f->on_device, &f->args);
    f->args.stream = f->stream;
}

static void set_up(fixture *f)
{
    *f = (fixture){ 0 };
    flp_edge_case_quick_get(CASE, &f->c);
    assert_true(flp_case_make_data(&f->c, &f->data));
    assert_succeeds(flp_gpu_check(gpu(), gpu()->driver->stream_create(&f->stream, NON_BLOCKING), "cuStreamCreate"));
    assert_succeeds(flp_plan_create(flp_device_test.context, &f->c.problem, &f->plan));
    upload(f);
    assert_succeeds(flp_plan_execute(f->plan, &f->args));
    fetch(f, f->expected);
    poison(f);
}

static void tear_down(fixture *f)
{
    flp_plan_destroy(f->plan);
    flp_case_free_data(&f->data);
    gpu()->driver->stream_destroy(f->stream);
}

/* ---- graphs */

static void begin_capture(const fixture *f)
{
    assert_succeeds(flp_gpu_check(gpu(), gpu()->capture_begin(f->stream, 0), "cuStreamBeginCapture"));
}

static CUgraphExec end_capture(const fixture *f)
{
    CUgraph graph;
    CUgraphExec exec;

    assert_succeeds(flp_gpu_check(gpu(), gpu()->capture_end(f->stream, &graph), "cuStreamEndCapture"));
    assert_succeeds(flp_gpu_check(gpu(), gpu()->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate"));
    gpu()->graph_destroy(graph);
    return exec;
}

static void expect_replays(fixture *f, CUgraphExec exec)
{
    for (int i = 0; i < 3; i++) {
        poison(f);
        assert_succeeds(flp_gpu_check(gpu(), gpu()->graph_launch(exec, f->stream), "cuGraphLaunch"));
        expect_result(f);
    }
    gpu()->graph_exec_destroy(exec);
}

static void a_captured_plan_replays(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    begin_capture(&f);
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    tear_down(&f);
}

static void a_prepared_problem_is_captured_with_the_shared_scratch(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    f.args.workspace = NULL;
    assert_succeeds(flp_prepare(flp_device_test.context, &f.c.problem, f.stream));
    begin_capture(&f);
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &f.args));
    expect_replays(&f, end_capture(&f));
    tear_down(&f);
}

static void an_unprepared_problem_cannot_be_captured(void **state)
{
    fixture f;
    flp_context *fresh;

    (void)state;
    set_up(&f);
    assert_succeeds(flp_context_create(NULL, &fresh));
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_linear_logp(fresh, &f.c.problem, &f.args), "flp_prepare");
    /* The capture goes on as if nothing had been called. */
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    flp_context_destroy(fresh);
    tear_down(&f);
}

static void scratch_that_was_not_reserved_cannot_be_captured(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    f.args.workspace = NULL;
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_plan_execute(f.plan, &f.args), "workspace");
    flp_device_case_use_workspace(&f.on_device, &f.args);
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    tear_down(&f);
}

static void checking_targets_cannot_be_captured(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    f.args.flags = FLP_CHECK_TARGETS;
    begin_capture(&f);
    assert_fails(FLP_CAPTURING, flp_plan_execute(f.plan, &f.args), "FLP_CHECK_TARGETS");
    f.args.flags = 0;
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_replays(&f, end_capture(&f));
    tear_down(&f);
}

/* ---- targets */

static void set_target(const fixture *f, int64_t row, int64_t value)
{
    assert_succeeds(flp_gpu_upload(gpu(), (CUdeviceptr)(uintptr_t)f->args.target + (uint64_t)row * 8, &value, sizeof(value)));
}

static void a_checked_bad_target_enqueues_nothing(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    f.args.flags = FLP_CHECK_TARGETS;
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_result(&f);
    poison(&f);
    set_target(&f, 211, 1300);
    set_target(&f, 299, -5);
    assert_fails(FLP_BAD_TARGET, flp_plan_execute(f.plan, &f.args), "row 211 got 1300");
    expect_nothing_written(&f);
    tear_down(&f);
}

static void bad_targets_are_counted_until_asked(void **state)
{
    fixture f;
    int64_t count, first;
    CUgraphExec exec;

    (void)state;
    set_up(&f);
    set_target(&f, 211, 1300);
    set_target(&f, 299, INT64_MIN);
    begin_capture(&f);
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    exec = end_capture(&f);
    for (int i = 0; i < 2; i++)
        assert_succeeds(flp_gpu_check(gpu(), gpu()->graph_launch(exec, f.stream), "cuGraphLaunch"));
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    assert_succeeds(flp_plan_target_errors(f.plan, &count, &first));
    assert_int_equal(6, count);
    assert_int_equal(211, first);
    assert_succeeds(flp_plan_target_errors(f.plan, &count, &first));
    assert_int_equal(0, count);
    assert_int_equal(-1, first);
    gpu()->graph_exec_destroy(exec);
    tear_down(&f);
}

/* ---- workspaces and rows */

static void a_wrong_workspace_is_refused(void **state)
{
    fixture f;
    char *workspace;

    (void)state;
    set_up(&f);
    workspace = f.args.workspace;
    f.args.workspace_bytes--;
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_execute(f.plan, &f.args), "workspace_bytes");
    f.args.workspace_bytes++;
    f.args.workspace = workspace + 16;
    assert_fails(FLP_BAD_ARGUMENT, flp_plan_execute(f.plan, &f.args), "workspace");
    expect_nothing_written(&f);
    tear_down(&f);
}

static void no_rows_touch_nothing(void **state)
{
    fixture f;
    flp_linear_logp_args empty = { 0 };

    (void)state;
    set_up(&f);
    empty.stream = f.stream;
    assert_succeeds(flp_plan_execute(f.plan, &empty));
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &empty));
    expect_nothing_written(&f);
    tear_down(&f);
}

/* Without waiting in between: the small call's scratch must not be freed under it. */
static void the_shared_scratch_grows_behind_running_kernels(void **state)
{
    fixture f;
    flp_context *fresh;

    (void)state;
    set_up(&f);
    f.args.workspace = NULL;
    assert_succeeds(flp_context_create(NULL, &fresh));
    for (int64_t rows = 1; rows < f.c.problem.rows; rows *= 3) {
        f.args.rows = rows;
        assert_succeeds(flp_linear_logp(fresh, &f.c.problem, &f.args));
    }
    expect_result(&f);
    f.args.rows = f.c.problem.rows;
    assert_succeeds(flp_linear_logp(fresh, &f.c.problem, &f.args));
    expect_result(&f);
    flp_context_destroy(fresh);
    tear_down(&f);
}

/* ---- streams and threads */

typedef struct {
    fixture *f;
    flp_device_case own;
    flp_linear_logp_args args;
    flp_status status;
    char message[256];
} worker;

static void *call_many_times(void *argument)
{
    worker *w = argument;

    if (gpu()->driver->context_set_current(gpu()->context) != CUDA_SUCCESS)
        w->status = FLP_CUDA_FAILED;
    for (int i = 0; i < ROUNDS && w->status == FLP_OK; i++)
        w->status = flp_linear_logp(flp_device_test.context, &w->f->c.problem, &w->args);
    if (w->status != FLP_OK)
        strncpy(w->message, flp_error_message(), sizeof(w->message) - 1);
    return NULL;
}

/* Each thread has its own inputs and outputs; streams: one for all, or one each. All without a workspace. */
static void run_threads(fixture *f, CUstream *streams, int stream_count)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ .f = f };
        assert_succeeds(flp_device_case_upload(gpu(), &f->data, 0, &workers[i].own));
        flp_device_case_args(&f->c, &f->data, &workers[i].own, &workers[i].args);
        workers[i].args.stream = streams[i % stream_count];
        /* Other batches in other threads, so that a shared scratch would show. */
        workers[i].args.rows = f->c.problem.rows - i;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, call_many_times, &workers[i]));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        fixture as_worker = *f;
        if (workers[i].status != FLP_OK)
            fail_msg("thread %d: %s", i, workers[i].message);
        as_worker.args = workers[i].args;
        expect_result(&as_worker);
    }
}

static void threads_with_their_own_streams_do_not_meet(void **state)
{
    CUstream streams[THREADS];
    fixture f;

    (void)state;
    set_up(&f);
    for (int i = 0; i < THREADS; i++)
        assert_succeeds(flp_gpu_check(gpu(), gpu()->driver->stream_create(&streams[i], NON_BLOCKING), "cuStreamCreate"));
    run_threads(&f, streams, THREADS);
    for (int i = 0; i < THREADS; i++)
        gpu()->driver->stream_destroy(streams[i]);
    tear_down(&f);
}

static void threads_on_one_stream_take_turns(void **state)
{
    fixture f;

    (void)state;
    set_up(&f);
    run_threads(&f, &f.stream, 1);
    tear_down(&f);
}

/* ---- contexts */

static void a_plan_belongs_to_its_cuda_context(void **state)
{
    fixture f;
    CUcontext other;

    (void)state;
    set_up(&f);
    gpu()->driver->context_set_current(NULL);
    assert_fails(FLP_WRONG_CONTEXT, flp_plan_execute(f.plan, &f.args), "current");
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp(flp_device_test.context, &f.c.problem, &f.args), "current");
    assert_succeeds(flp_gpu_check(gpu(), gpu()->context_create(&other, 0, gpu()->device), "cuCtxCreate"));
    assert_fails(FLP_WRONG_CONTEXT, flp_plan_execute(f.plan, &f.args), "plan belongs to");
    assert_succeeds(flp_gpu_check(gpu(), gpu()->context_destroy(other), "cuCtxDestroy"));
    gpu()->driver->context_set_current(gpu()->context);
    expect_nothing_written(&f);
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_result(&f);
    tear_down(&f);
}

static void another_cuda_context_gives_the_same_bits(void **state)
{
    fixture f, elsewhere;
    CUcontext other;

    (void)state;
    set_up(&f);
    assert_succeeds(flp_gpu_check(gpu(), gpu()->context_create(&other, 0, gpu()->device), "cuCtxCreate"));
    set_up(&elsewhere);
    assert_memory_equal(f.expected, elsewhere.expected, (size_t)f.args.rows * 4);
    elsewhere.args.workspace = NULL;
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &elsewhere.args));
    expect_result(&elsewhere);
    tear_down(&elsewhere);
    assert_succeeds(flp_gpu_check(gpu(), gpu()->context_destroy(other), "cuCtxDestroy"));
    gpu()->live_count = 0; /* the other context's went with it; the first one's are freed with its own */
    gpu()->driver->context_set_current(gpu()->context);
    assert_succeeds(flp_plan_execute(f.plan, &f.args));
    expect_result(&f);
    tear_down(&f);
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
        flp_device_test_of(threads_with_their_own_streams_do_not_meet),
        flp_device_test_of(threads_on_one_stream_take_turns),
        flp_device_test_of(a_plan_belongs_to_its_cuda_context),
        flp_device_test_of(another_cuda_context_gives_the_same_bits),
    };
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = cmocka_run_group_tests(tests, NULL, NULL);
    flp_device_test_finish();
    return code;
}
