/* flp_linear_logp and flp_linear_logp_prepare: which calls share a plan, and that a known one costs nothing. */
#include "core/dispatch.h"

#include <malloc.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_nvrtc.h"
#include "operators/linear/linear_logp_plan.h"
#include "core/problem.h"

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_linear_logp_args args;

static int start(void **state)
{
    (void)state;
    context = fake_call_start(0);
    problem = fake_call_problem();
    args = fake_call_args(FAKE_CALL_ROWS);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    flp_context_destroy(context);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

static int64_t plans(void)
{
    flp_counters counters;

    flp_context_counters(context, &counters);
    return counters.plans;
}

static void a_context_gives_its_scratch_back_on_demand(void **state)
{
    int64_t without;

    (void)state;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    without = fake_driver.live_blocks;
    assert_succeeds(flp_context_release_scratch(context, 0));
    assert_int_equal(without - 1, fake_driver.live_blocks);
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(without, fake_driver.live_blocks);
}

static void a_known_problem_makes_compiles_and_allocates_nothing(void **state)
{
    size_t heap;
    int compiles, allocations, memory;

    (void)state;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(1, plans());
    heap = mallinfo2().uordblks;
    compiles = fake_nvrtc.compiles;
    allocations = fake_driver.calls[FAKE_memory_allocate];
    memory = (int)fake_driver.live_bytes;
    for (int i = 0; i < 20; i++)
        assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(1, plans());
    assert_int_equal(heap, mallinfo2().uordblks);
    assert_int_equal(compiles, fake_nvrtc.compiles);
    assert_int_equal(allocations, fake_driver.calls[FAKE_memory_allocate]);
    assert_int_equal(memory, fake_driver.live_bytes);
    assert_int_equal(42, fake_driver.launches);
    assert_int_equal(0, fake_driver.calls[FAKE_context_synchronize]);
}

/* The plan that answers so many rows. */
static flp_plan *find(int64_t rows)
{
    unsigned long long cuda_context;
    flp_plan *plan;

    assert_succeeds(
        flp_dispatch_find(context, &flp_linear_logp_operator, &problem, &(flp_dispatch_call){ .rows = rows, .addresses = 16 }, &cuda_context, &plan));
    return plan;
}

static void rows_share_a_plan_within_their_bucket(void **state)
{
    static const struct {
        int64_t rows, bucket;
    } cases[] = { { 1, 64 },
                  { 64, 64 },
                  { 65, 128 },
                  { 128, 128 },
                  { 129, 256 },
                  { 256, 256 },
                  { 257, 1024 },
                  { 1024, 1024 },
                  { 1025, 2048 },
                  { 2048, 2048 },
                  { 2049, 4096 },
                  { 100000, 131072 },
                  { FLP_PROBLEM_ROWS_MAX, FLP_PROBLEM_ROWS_MAX } };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
        assert_int_equal(cases[i].bucket, flp_plan_rows(find(cases[i].rows)));
        assert_ptr_equal(find(cases[i].bucket), find(cases[i].rows));
    }
    assert_int_equal(8, plans());
}

static void defaults_and_what_the_call_ignores_do_not_make_another_plan(void **state)
{
    flp_plan *first = find(300);

    (void)state;
    problem.rows = 0;
    problem.pointer_alignment = 2;
    problem.hidden_stride = problem.weight_stride = FAKE_CALL_HIDDEN;
    problem.target_dtype = FLP_I64;
    assert_ptr_equal(first, find(300));
    problem.rows = -5;
    args.rows = 257;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(1, plans());
}

#define OTHER_PLAN(change)                            \
    do {                                              \
        const flp_linear_logp_problem kept = problem; \
        different++;                                  \
        change;                                       \
        assert_ptr_not_equal(first, find(300));       \
        problem = kept;                               \
    } while (0)

static void every_field_tells_problems_apart(void **state)
{
    flp_plan *first = find(300);
    int64_t different = 0;

    (void)state;
    OTHER_PLAN(problem.dtype = FLP_F16);
    OTHER_PLAN(problem.hidden = 128);
    OTHER_PLAN(problem.vocab = 69999);
    OTHER_PLAN(problem.weight_layout = FLP_HIDDEN_VOCAB);
    OTHER_PLAN(problem.hidden_stride = 72);
    OTHER_PLAN(problem.weight_stride = 72);
    OTHER_PLAN(problem.bias_dtype = FLP_F32);
    OTHER_PLAN(problem.target_dtype = FLP_I32);
    OTHER_PLAN(problem.softcap = 30);
    OTHER_PLAN(problem.argmax = 1);
    OTHER_PLAN(problem.entropy = 1);
    OTHER_PLAN((problem.dtype = FLP_F32, problem.precision = FLP_PRECISION_EXACT));
    OTHER_PLAN(problem.dtype = FLP_F32);
    OTHER_PLAN(problem.backend = FLP_BACKEND_PORTABLE);
    OTHER_PLAN(problem.backend = FLP_BACKEND_CPU);
    assert_int_equal(1 + different, plans());
    assert_ptr_equal(first, find(300));
}

static void the_addresses_decide_the_alignment(void **state)
{
    unsigned long long cuda_context;
    flp_plan *plan;

    (void)state;
    args.hidden = (const char *)args.hidden + 8;
    args.rows = 200;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_succeeds(flp_dispatch_find(context, &flp_linear_logp_operator, &problem, &(flp_dispatch_call){ .rows = 200, .addresses = 8 }, &cuda_context, &plan));
    assert_int_equal(8, flp_linear_logp_plan_of(plan)->problem.pointer_alignment);
    assert_int_equal(FLP_BACKEND_PORTABLE, flp_plan_backend(plan));
    assert_int_equal(1, plans());
}

static void each_cuda_context_has_its_own_plan(void **state)
{
    flp_plan *first = find(300), *second;

    (void)state;
    fake_driver.current = fake_driver_context(1);
    second = find(300);
    assert_ptr_not_equal(first, second);
    assert_int_equal(1001, second->device.context_id);
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    fake_driver.current = fake_driver_context(0);
    assert_ptr_equal(first, find(300));
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(2, plans());
    /* Going to and fro asks the driver for no facts of the device. */
    memset(fake_driver.calls, 0, sizeof(fake_driver.calls));
    for (int i = 0; i < 10; i++) {
        fake_driver.current = fake_driver_context(i % 2);
        assert_succeeds(flp_linear_logp(context, &problem, &args));
    }
    assert_int_equal(0, fake_driver.calls[FAKE_device_attribute]);
    fake_driver.current = NULL;
    assert_fails(FLP_WRONG_CONTEXT, flp_linear_logp(context, &problem, &args), "no CUDA context is current");
    fake_driver.current = fake_driver_context(0);
}

/* The second context may lie where the first lay; the thread's recent hits are of the first. */
static void a_new_context_knows_nothing_of_a_destroyed_one(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) {
        assert_succeeds(flp_linear_logp(context, &problem, &args));
        assert_int_equal(1, plans());
        flp_context_destroy(context);
        context = fake_call_start(0);
    }
}

static void *call_often(void *failures)
{
    flp_linear_logp_args own = args;

    for (int i = 0; i < 50; i++) {
        own.rows = 1 + (i * 37) % 300;
        if (flp_linear_logp(context, &problem, &own) != FLP_OK)
            atomic_fetch_add((atomic_int *)failures, 1);
    }
    return NULL;
}

static void threads_that_start_together_end_with_one_plan_a_bucket(void **state)
{
    pthread_t threads[6];
    atomic_int failures = 0;
    int64_t made;

    (void)state;
    for (int i = 0; i < 6; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, call_often, &failures));
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(0, failures);
    /* Three tile heights and a combine: more threads than kernels, each compiled once. */
    assert_int_equal(4, fake_nvrtc.compiles);
    /* A thread that lost the race has destroyed its plan: four are left, with the shared scratch. */
    assert_int_equal(4 + 1, fake_driver.live_blocks);
    made = plans();
    assert_int_equal(64, flp_plan_rows(find(1)));
    assert_int_equal(1024, flp_plan_rows(find(300)));
    assert_int_equal(made, plans());
}

static void a_new_problem_is_refused_while_its_stream_is_captured(void **state)
{
    (void)state;
    fake_driver.capture = 1;
    assert_fails(FLP_CAPTURING, flp_linear_logp(context, &problem, &args), "call flp_linear_logp_prepare before the capture");
    assert_fails(FLP_CAPTURING, flp_linear_logp_prepare(context, &problem, NULL), "the stream is captured");
    assert_int_equal(0, plans());
    fake_driver.capture = 0;
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL));
    fake_driver.capture = 1;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(2, fake_driver.launches);
}

static void prepare_makes_all_that_later_calls_need(void **state)
{
    int64_t made;
    int allocations, compiles;

    (void)state;
    problem.hidden_stride = 0;
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL));
    made = plans();
    assert_int_equal(4, made);
    allocations = fake_driver.calls[FAKE_memory_allocate];
    compiles = fake_nvrtc.compiles;
    for (args.rows = 1; args.rows <= FAKE_CALL_ROWS; args.rows++)
        assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(made, plans());
    assert_int_equal(allocations, fake_driver.calls[FAKE_memory_allocate]);
    assert_int_equal(compiles, fake_nvrtc.compiles);
    problem.rows = 0;
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL));
    assert_int_equal(made, plans());
}

/* Tiles of up to 64 rows, up to 128, and of more, and what merges splits. */
static void prepare_compiles_for_all_rows_side_by_side(void **state)
{
    (void)state;
    fake_nvrtc.milliseconds = 50;
    problem.rows = 100000;
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL));
    assert_int_equal(4, fake_nvrtc.compiles);
    assert_true(fake_nvrtc.most_at_once >= 2);
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL));
    assert_int_equal(4, fake_nvrtc.compiles);
}

static void prepare_reports_what_a_plan_would(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_prepare(NULL, &problem, NULL), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_prepare(context, NULL, NULL), "problem: got NULL");
    fake_library.nvrtc = 0;
    assert_fails(FLP_NO_NVRTC, flp_linear_logp_prepare(context, &problem, NULL), "linear_logp");
    problem.rows = -1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp_prepare(context, &problem, NULL), "rows: got -1");
}

static void a_plan_that_failed_is_tried_again(void **state)
{
    (void)state;
    fake_driver_fail(FAKE_memory_allocate, CUDA_ERROR_OUT_OF_MEMORY, 1);
    assert_fails(FLP_OUT_OF_MEMORY, flp_linear_logp(context, &problem, &args), "cuMemAlloc");
    assert_succeeds(flp_linear_logp(context, &problem, &args));
}

static void arguments_are_checked_and_named(void **state)
{
    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(NULL, &problem, &args), "context: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, NULL, &args), "problem: got NULL");
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, NULL), "args: got NULL");
    args.rows = -1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "rows: got -1");
    args.rows = FLP_PROBLEM_ROWS_MAX + 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "rows: got 268435457");
    args.rows = 1;
    args.hidden = (const char *)args.hidden + 1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "hidden: got 0x");
    args = fake_call_args(1);
    args.weight = NULL;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "weight: got NULL");
    args = fake_call_args(1);
    problem.dtype = (flp_dtype)300;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "dtype: got 300");
    problem = fake_call_problem();
    problem.backend = (flp_backend)(1 << 20);
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "backend: got 1048576");
    problem = fake_call_problem();
    problem.argmax = -1;
    assert_fails(FLP_BAD_ARGUMENT, flp_linear_logp(context, &problem, &args), "argmax: got -1");
    assert_int_equal(0, plans());
}

static void a_missing_driver_is_looked_for_once(void **state)
{
    char opened[sizeof(fake_library.opened)];

    (void)state;
    fake_library.driver = 0;
    args.rows = 2;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    strcpy(opened, fake_library.opened);
    assert_contains(opened, "libcuda.so.1");
    /* Making the CPU plan has looked too; later calls do not. */
    args.rows = 3;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_string_equal(opened, fake_library.opened);
    problem.backend = FLP_BACKEND_SM90A;
    assert_fails(FLP_NO_DRIVER, flp_linear_logp(context, &problem, &args), "backend sm_90a: ");
    assert_contains(flp_error_message(), "libcuda.so");
}

static void a_forked_child_is_told_so(void **state)
{
    int status;
    pid_t child;

    (void)state;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    child = fork();
    if (child == 0)
        _exit(flp_linear_logp(context, &problem, &args) == FLP_FORKED ? 0 : 1);
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFEXITED(status));
    assert_int_equal(0, WEXITSTATUS(status));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_context_gives_its_scratch_back_on_demand),
        TEST(a_known_problem_makes_compiles_and_allocates_nothing),
        TEST(rows_share_a_plan_within_their_bucket),
        TEST(defaults_and_what_the_call_ignores_do_not_make_another_plan),
        TEST(every_field_tells_problems_apart),
        TEST(the_addresses_decide_the_alignment),
        TEST(each_cuda_context_has_its_own_plan),
        TEST(a_new_context_knows_nothing_of_a_destroyed_one),
        TEST(threads_that_start_together_end_with_one_plan_a_bucket),
        TEST(a_new_problem_is_refused_while_its_stream_is_captured),
        TEST(prepare_makes_all_that_later_calls_need),
        TEST(prepare_compiles_for_all_rows_side_by_side),
        TEST(prepare_reports_what_a_plan_would),
        TEST(a_plan_that_failed_is_tried_again),
        TEST(arguments_are_checked_and_named),
        TEST(a_missing_driver_is_looked_for_once),
        TEST(a_forked_child_is_told_so),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
