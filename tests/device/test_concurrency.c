/* linear_logp on several streams, in several threads and in several CUDA contexts at once. */
#include <pthread.h>

#include "device/fixture.h"

enum { THREADS = 4, ROUNDS = 50 };

static flp_gpu *const gpu = &flp_device_test.gpu;

typedef struct {
    flp_fixture *f;
    flp_device_case own;
    flp_linear_logp_args args;
    flp_status status;
    char message[256];
} worker;

static void *call_many_times(void *argument)
{
    worker *w = argument;

    if (gpu->driver->context_set_current(gpu->context) != CUDA_SUCCESS)
        w->status = FLP_CUDA_FAILED;
    for (int i = 0; i < ROUNDS && w->status == FLP_OK; i++)
        w->status = flp_linear_logp(flp_device_test.context, &w->f->c.problem, &w->args);
    if (w->status != FLP_OK)
        strncpy(w->message, flp_error_message(), sizeof(w->message) - 1);
    return NULL;
}

/* Each thread has its own inputs and outputs, and no workspace. streams: one for all threads, or one for each. */
static void run_threads(flp_fixture *f, CUstream *streams, int stream_count)
{
    pthread_t threads[THREADS];
    worker workers[THREADS];

    for (int i = 0; i < THREADS; i++) {
        workers[i] = (worker){ .f = f };
        assert_succeeds(flp_device_case_upload(gpu, &f->data, 0, &workers[i].own));
        flp_device_case_args(&f->c, &f->data, &workers[i].own, &workers[i].args);
        workers[i].args.stream = streams[i % stream_count];
        /* Each thread has another number of rows, so that a scratch that they shared by mistake would show. */
        workers[i].args.rows = f->c.problem.rows - i;
    }
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, call_many_times, &workers[i]));
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        flp_fixture as_worker = *f;
        if (workers[i].status != FLP_OK)
            fail_msg("thread %d: %s", i, workers[i].message);
        as_worker.args = workers[i].args;
        flp_fixture_expect_result(&as_worker);
    }
}

static void threads_with_their_own_streams_do_not_meet(void **state)
{
    CUstream streams[THREADS];
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    for (int i = 0; i < THREADS; i++)
        assert_succeeds(flp_gpu_check(gpu, gpu->driver->stream_create(&streams[i], FLP_FIXTURE_NON_BLOCKING), "cuStreamCreate"));
    run_threads(&f, streams, THREADS);
    for (int i = 0; i < THREADS; i++)
        gpu->driver->stream_destroy(streams[i]);
    flp_fixture_tear_down(&f);
}

static void threads_on_one_stream_take_turns(void **state)
{
    flp_fixture f;

    (void)state;
    flp_fixture_set_up(&f);
    run_threads(&f, &f.stream, 1);
    flp_fixture_tear_down(&f);
}

/* ---- contexts */

static void a_plan_belongs_to_its_cuda_context(void **state)
{
    flp_fixture f;
    CUcontext other;

    (void)state;
    flp_fixture_set_up(&f);
    gpu->driver->context_set_current(NULL);
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_execute(f.plan, &f.args), "current");
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp(flp_device_test.context, &f.c.problem, &f.args), "current");
    assert_succeeds(flp_gpu_check(gpu, gpu->context_create(&other, 0, gpu->device), "cuCtxCreate"));
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp_execute(f.plan, &f.args), "plan belongs to");
    assert_succeeds(flp_gpu_check(gpu, gpu->context_destroy(other), "cuCtxDestroy"));
    gpu->driver->context_set_current(gpu->context);
    flp_fixture_expect_nothing_written(&f);
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    flp_fixture_expect_result(&f);
    flp_fixture_tear_down(&f);
}

static void another_cuda_context_gives_the_same_bits(void **state)
{
    flp_fixture f, elsewhere;
    CUcontext other;
    int kept;

    (void)state;
    flp_fixture_set_up(&f);
    kept = gpu->live_count;
    assert_succeeds(flp_gpu_check(gpu, gpu->context_create(&other, 0, gpu->device), "cuCtxCreate"));
    flp_fixture_set_up(&elsewhere);
    assert_memory_equal(f.expected, elsewhere.expected, (size_t)f.args.rows * 4);
    elsewhere.args.workspace = NULL;
    assert_succeeds(flp_linear_logp(flp_device_test.context, &f.c.problem, &elsewhere.args));
    flp_fixture_expect_result(&elsewhere);
    flp_fixture_tear_down(&elsewhere);
    assert_succeeds(flp_gpu_check(gpu, gpu->context_destroy(other), "cuCtxDestroy"));
    gpu->live_count = kept; /* the other context's memory went with it */
    gpu->driver->context_set_current(gpu->context);
    assert_succeeds(flp_linear_logp_execute(f.plan, &f.args));
    flp_fixture_expect_result(&f);
    flp_fixture_tear_down(&f);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        flp_device_test_of(threads_with_their_own_streams_do_not_meet),
        flp_device_test_of(threads_on_one_stream_take_turns),
        flp_device_test_of(a_plan_belongs_to_its_cuda_context),
        flp_device_test_of(another_cuda_context_gives_the_same_bits),
    };

    return flp_device_test_main("threads and contexts", tests, argc, argv);
}
