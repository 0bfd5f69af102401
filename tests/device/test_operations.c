/* Every operator with a real driver: graphs, threads with streams of their own, the context's scratch, bad targets. */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include "device/operation.h"

enum { THREADS = 4, ROUNDS = 20, REPLAYS = 5, NON_BLOCKING = 1 /* CU_STREAM_NON_BLOCKING */ };

static flp_gpu *const gpu = &flp_device_test.gpu;

static CUstream make_stream(void)
{
    CUstream stream;

    assert_succeeds(flp_gpu_check(gpu, gpu->driver->stream_create(&stream, NON_BLOCKING), "cuStreamCreate"));
    return stream;
}

/* Opens an operation and executes it once in its workspace. Returns what it has written, which all other executions must write, too. */
static unsigned char *open_and_run(const flp_operation_kind *kind, const flp_operation_inputs *inputs, CUstream stream, flp_operation *operation)
{
    unsigned char *wanted;
    size_t bytes;

    flp_operation_open(kind, inputs, stream, operation);
    flp_operation_poison(operation);
    assert_succeeds(kind->execute(operation));
    wanted = flp_operation_fetch(operation, &bytes);
    flp_operation_poison(operation);
    return wanted;
}

static CUgraphExec capture(flp_operation *operation, flp_status (*enqueue)(flp_operation *))
{
    CUgraph graph;
    CUgraphExec exec;

    assert_succeeds(flp_gpu_check(gpu, gpu->capture_begin(operation->stream, 0), "cuStreamBeginCapture"));
    assert_succeeds(enqueue(operation));
    assert_succeeds(flp_gpu_check(gpu, gpu->capture_end(operation->stream, &graph), "cuStreamEndCapture"));
    assert_succeeds(flp_gpu_check(gpu, gpu->graph_instantiate(&exec, graph, 0), "cuGraphInstantiate"));
    gpu->graph_destroy(graph);
    return exec;
}

static void expect_replays(flp_operation *operation, CUgraphExec exec, const unsigned char *wanted)
{
    for (int i = 0; i < REPLAYS; i++) {
        flp_operation_poison(operation);
        assert_succeeds(flp_gpu_check(gpu, gpu->graph_launch(exec, operation->stream), "cuGraphLaunch"));
        flp_operation_expect(operation, wanted, "replayed");
    }
    gpu->graph_exec_destroy(exec);
}

static void captured_executions_replay(void **state)
{
    flp_operation_inputs inputs;
    flp_operation operation;
    unsigned char *wanted;
    CUstream stream = make_stream();

    flp_operation_make_inputs(&inputs);
    wanted = open_and_run(*state, &inputs, stream, &operation);
    expect_replays(&operation, capture(&operation, operation.kind->execute), wanted);
    assert_succeeds(operation.kind->prepare(&operation));
    expect_replays(&operation, capture(&operation, operation.kind->call), wanted);
    free(wanted);
    flp_operation_close(&operation);
    gpu->driver->stream_destroy(stream);
}

/* ---- threads ---- */

typedef struct {
    flp_operation operation;
    flp_status status;
    char message[256];
} worker;

static void *call_many_times(void *argument)
{
    worker *w = argument;

    if (gpu->driver->context_set_current(gpu->context) != CUDA_SUCCESS)
        w->status = FLP_CUDA_FAILED;
    for (int i = 0; i < ROUNDS && w->status == FLP_OK; i++)
        w->status = i % 2 ? w->operation.kind->call(&w->operation) : w->operation.kind->execute(&w->operation);
    if (w->status != FLP_OK)
        snprintf(w->message, sizeof(w->message), "%s", flp_error_message());
    return NULL;
}

/* All threads execute the first one's plan, each in a workspace of its own, in turn with calls without a plan and a workspace. */
static void run_threads(worker *workers, const unsigned char *wanted)
{
    pthread_t threads[THREADS];
    flp_plan *own[THREADS];

    for (int i = 0; i < THREADS; i++) {
        own[i] = workers[i].operation.plan;
        workers[i].operation.plan = workers[0].operation.plan;
        assert_int_equal(0, pthread_create(&threads[i], NULL, call_many_times, &workers[i]));
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        if (workers[i].status != FLP_OK)
            fail_msg("thread %d: %s", i, workers[i].message);
        flp_operation_expect(&workers[i].operation, wanted, "in a thread");
        workers[i].operation.plan = own[i];
    }
}

static void threads_with_their_own_streams_do_not_meet(void **state)
{
    static worker workers[THREADS];
    flp_operation_inputs inputs;
    unsigned char *wanted = NULL;

    flp_operation_make_inputs(&inputs);
    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ 0 };
        free(wanted);
        wanted = open_and_run(*state, &inputs, make_stream(), &workers[i].operation);
    }
    run_threads(workers, wanted);
    free(wanted);
    for (int i = 0; i < THREADS; i++) {
        flp_operation_close(&workers[i].operation);
        gpu->driver->stream_destroy(workers[i].operation.stream);
    }
}

/* ---- the shared scratch ---- */

/* A stream is destroyed while its work still runs, and the driver may give its handle to the next stream. */
static void streams_that_come_and_go_share_no_scratch(void **state)
{
    flp_operation_inputs inputs;
    flp_operation operation, other;
    unsigned char *wanted;

    flp_operation_make_inputs(&inputs);
    wanted = open_and_run(*state, &inputs, NULL, &operation);
    free(open_and_run(*state, &inputs, NULL, &other));
    for (int i = 0; i < ROUNDS; i++) {
        operation.stream = make_stream();
        assert_succeeds(operation.kind->call(&operation));
        gpu->driver->stream_destroy(operation.stream);
        other.stream = make_stream();
        assert_succeeds(other.kind->call(&other));
        gpu->driver->stream_destroy(other.stream);
        flp_operation_expect(&operation, wanted, "on a stream that is gone");
        flp_operation_expect(&other, wanted, "on a stream behind one that is gone");
        flp_operation_poison(&operation);
        flp_operation_poison(&other);
    }
    free(wanted);
    flp_operation_close(&operation);
    flp_operation_close(&other);
}

static void released_scratch_comes_back(void **state)
{
    flp_operation_inputs inputs;
    flp_operation operation;
    unsigned char *wanted;

    flp_operation_make_inputs(&inputs);
    wanted = open_and_run(*state, &inputs, NULL, &operation);
    for (int i = 0; i < ROUNDS; i++) {
        assert_succeeds(operation.kind->call(&operation));
        assert_succeeds(flp_context_release_scratch(operation.context, 0));
        flp_operation_expect(&operation, wanted, "behind a release");
        flp_operation_poison(&operation);
    }
    free(wanted);
    flp_operation_close(&operation);
}

/* ---- bad targets ---- */

static void bad_targets_are_counted_once_an_execution(void **state)
{
    flp_operation_inputs inputs;
    flp_operation operation;
    const int64_t bad[] = { FLP_OPERATION_VOCAB, INT64_MIN };
    int64_t count, first;

    flp_operation_make_inputs(&inputs);
    assert_succeeds(flp_gpu_upload(gpu, inputs.target + 8 * 211, &bad[0], 8));
    assert_succeeds(flp_gpu_upload(gpu, inputs.target + 8 * 299, &bad[1], 8));
    flp_operation_open(*state, &inputs, NULL, &operation);
    for (int i = 0; i < 3; i++)
        assert_succeeds(operation.kind->execute(&operation));
    assert_succeeds(flp_plan_target_errors(operation.plan, &count, &first));
    assert_int_equal(6, count);
    assert_int_equal(211, first);
    assert_succeeds(flp_plan_target_errors(operation.plan, &count, &first));
    assert_int_equal(0, count);
    assert_int_equal(-1, first);
    flp_operation_close(&operation);
}

/* ---- main ---- */

static const struct {
    const char *name;
    CMUnitTestFunction function;
    int needs_targets;
} properties[] = {
    { "captured executions replay", captured_executions_replay, 0 },
    { "threads with their own streams do not meet", threads_with_their_own_streams_do_not_meet, 0 },
    { "streams that come and go share no scratch", streams_that_come_and_go_share_no_scratch, 0 },
    { "released scratch comes back", released_scratch_comes_back, 0 },
    { "bad targets are counted once an execution", bad_targets_are_counted_once_an_execution, 1 },
};
enum { PROPERTIES = sizeof(properties) / sizeof(properties[0]), MOST_TESTS = 64 };

static struct {
    int kind, property;
} tests[MOST_TESTS];

static int collect(void)
{
    int count = 0;

    for (int kind = 0; kind < flp_operation_kind_count(); kind++)
        for (int property = 0; property < PROPERTIES; property++)
            if (!properties[property].needs_targets || flp_operation_kinds[kind].has_targets) {
                tests[count].kind = kind;
                tests[count++].property = property;
            }
    return count;
}

static struct CMUnitTest test_at(int index)
{
    static char names[MOST_TESTS][96];
    const flp_operation_kind *kind = &flp_operation_kinds[tests[index].kind];

    snprintf(names[index], sizeof(names[index]), "%s: %s", kind->name, properties[tests[index].property].name);
    return flp_device_test_case(names[index], properties[tests[index].property].function, kind);
}

int main(int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = flp_device_test_run_cases("operators beside a driver", collect(), test_at);
    flp_device_test_finish();
    return code;
}
