/* A call's plan and workspace, and the cases that hold for every operator. */
#include "operator_call.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "fake_call.h"
#include "fake_driver.h"

const operator_call *operator_call_current;

static flp_status execute(void)
{
    return operator_call_current->execute(*operator_call_current->plan, operator_call_current->args);
}

static flp_status run(void)
{
    return operator_call_current->run(*operator_call_current->context, operator_call_current->problem, operator_call_current->args);
}

void operator_call_make_plan(void)
{
    const operator_call *call = operator_call_current;

    flp_plan_destroy(*call->plan);
    assert_succeeds(call->plan_create(*call->context, call->problem, call->plan));
    free(*call->memory);
    *call->workspace_bytes = (size_t)flp_plan_workspace_bytes(*call->plan, *call->most_rows);
    *call->workspace = *call->memory = *call->workspace_bytes ? aligned_alloc(256, *call->workspace_bytes) : NULL;
    memset(fake_driver.calls, 0, sizeof(fake_driver.calls));
    fake_driver.launches = 0;
}

int operator_call_start_on_gpu(void)
{
    operator_call_make_plan();
    return flp_plan_backend(*operator_call_current->plan) != FLP_BACKEND_SM90A;
}

int operator_call_start_on_cpu(void)
{
    *operator_call_current->backend = FLP_BACKEND_CPU;
    operator_call_make_plan();
    return 0;
}

int operator_call_stop(void **state)
{
    const operator_call *call = operator_call_current;

    (void)state;
    flp_plan_destroy(*call->plan);
    *call->plan = NULL;
    flp_context_destroy(*call->context);
    free(*call->memory);
    *call->memory = NULL;
    return fake_driver.live_blocks || fake_driver.live_modules;
}

int operator_call_launches_of(const char *kernel)
{
    int count = 0;

    for (int i = 0; i < fake_driver.launches; i++)
        count += strncmp(fake_driver.launch[i].kernel, kernel, strlen(kernel)) == 0;
    return count;
}

/* ---- cases ---- */

/* What glibc's allocator handed out in the whole process. */
static size_t heap_bytes(void)
{
    return mallinfo2().uordblks;
}

void operator_call_executing_in_a_workspace_allocates_nothing_and_can_be_captured(void **state)
{
    size_t before;
    int launches;

    (void)state;
    fake_driver.capture = 1;
    assert_succeeds(execute());
    launches = fake_driver.launches;
    before = heap_bytes();
    for (int i = 0; i < 20; i++)
        assert_succeeds(execute());
    assert_int_equal(before, heap_bytes());
    assert_int_equal(0, fake_driver.calls[FAKE_memory_allocate]);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_synchronize]);
    assert_int_equal(0, fake_driver.calls[FAKE_context_synchronize]);
    assert_int_equal(21 * launches, fake_driver.launches);
}

void operator_call_all_launches_are_on_the_stream(void **state)
{
    (void)state;
    *operator_call_current->stream = fake_call_memory();
    assert_succeeds(execute());
    assert_in_range(fake_driver.launches, 1, FAKE_LAUNCHES);
    for (int i = 0; i < fake_driver.launches; i++)
        assert_ptr_equal(fake_call_memory(), fake_driver.launch[i].stream);
    assert_int_equal(0, fake_driver.calls[FAKE_stream_synchronize]);
    assert_int_equal(0, fake_driver.calls[FAKE_context_synchronize]);
}

void operator_call_another_cuda_context_is_refused(void **state)
{
    (void)state;
    fake_driver.current = fake_driver_context(1);
    assert_fails(FLP_WRONG_CONTEXT, execute(), "number 1001, the plan belongs to number 1000");
    *operator_call_current->rows = 0; /* there are zeros to write */
    assert_fails(FLP_WRONG_CONTEXT, execute(), "number 1001");
    assert_int_equal(0, fake_driver.launches);
}

void operator_call_a_failed_launch_names_the_kernel_and_is_the_last(void **state)
{
    (void)state;
    fake_driver_fail(FAKE_launch, CUDA_ERROR_LAUNCH_FAILED, -1);
    fake_driver_fail(FAKE_launch_extended, CUDA_ERROR_LAUNCH_FAILED, -1);
    assert_fails(FLP_CUDA_FAILED, execute(), "linear_logp_backward_rows.");
    assert_int_equal(1, fake_driver.calls[FAKE_launch] + fake_driver.calls[FAKE_launch_extended]);
}

static int launches_that_succeed;

static void let_launches_fail(int times)
{
    fake_driver_fail(FAKE_launch, CUDA_ERROR_LAUNCH_FAILED, times);
    fake_driver_fail(FAKE_launch_extended, CUDA_ERROR_LAUNCH_FAILED, times);
}

/* In the driver, as one begins, which is too late for that one. */
static void count_launch(int function)
{
    if ((function == FAKE_launch || function == FAKE_launch_extended) && --launches_that_succeed == 0)
        let_launches_fail(1);
}

void operator_call_each_failed_launch_is_the_last(void **state)
{
    int launches;

    (void)state;
    assert_succeeds(execute());
    launches = fake_driver.calls[FAKE_launch] + fake_driver.calls[FAKE_launch_extended];
    assert_true(launches > 1);
    fake_driver.on_call = count_launch;
    for (int i = 0; i < launches; i++) {
        launches_that_succeed = i;
        fake_driver.calls[FAKE_launch] = fake_driver.calls[FAKE_launch_extended] = 0;
        let_launches_fail(i == 0);
        assert_fails(FLP_CUDA_FAILED, execute(), "cuLaunchKernel");
        assert_int_equal(i + 1, fake_driver.calls[FAKE_launch] + fake_driver.calls[FAKE_launch_extended]);
    }
    fake_driver.on_call = NULL;
    let_launches_fail(0);
}

void operator_call_calls_without_a_plan_share_one(void **state)
{
    const operator_call *call = operator_call_current;
    flp_counters counters;

    (void)state;
    assert_succeeds(run());
    *call->rows = 1;
    assert_succeeds(run());
    *call->rows = 0;
    assert_succeeds(run());
    flp_context_counters(*call->context, &counters);
    assert_int_equal(2, counters.plans); /* with the test's own */
    assert_fails(FLP_BAD_ARGUMENT, call->run(NULL, call->problem, call->args), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, call->run(*call->context, NULL, call->args), "problem: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, call->run(*call->context, call->problem, NULL), "args: got NULL");
}

void operator_call_a_prepared_problem_can_be_captured(void **state)
{
    const operator_call *call = operator_call_current;
    char hint[128];

    (void)state;
    snprintf(hint, sizeof(hint), "call %s before", call->prepare_name);
    *call->workspace = NULL;
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, run(), hint);
    fake_driver.capture = 0;
    assert_succeeds(call->prepare(*call->context, call->problem, NULL));
    fake_driver.capture = 1;
    assert_succeeds(run());
}
