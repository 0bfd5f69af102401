/* Tuning on first use, on a fake driver and with candidates whose times are known. */
#include "core/call.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_call.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_record.h"
#include "fake_tune_target.h"
#include "operators/linear/linear_logp_plan.h"
#include "tune/untuned.h"

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_plan *plan;
static const char *root;

static void make_context(const char *records, double seconds)
{
    const flp_context_options options = {
        .cache_directory = "", .flags = FLP_CONTEXT_TUNE, .records_directory = records, .system_records_directories = "", .tune_seconds = seconds
    };

    flp_plan_destroy(plan);
    plan = NULL;
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
}

static int start(void **state)
{
    (void)state;
    flp_context_destroy(fake_call_start(0)); /* a device is there */
    context = NULL;
    plan = NULL;
    root = fake_directory_make();
    fake_tune_reset();
    fake_tune.combines = 0; /* the kernel that combines has nothing that is tuned */
    fake_tune.real_identity = 1;
    make_context(root, 5);
    problem = fake_call_problem();
    return 0;
}

static int stop(void **state)
{
    (void)state;
    unsetenv("FUSEDLOGP_TUNE_SECONDS");
    flp_plan_destroy(plan);
    flp_context_destroy(context);
    fake_directory_remove(root);
    return fake_driver.live_blocks || fake_driver.live_modules;
}

static void create(void)
{
    flp_plan_destroy(plan);
    assert_succeeds(flp_linear_logp_plan_create(context, &problem, &plan));
}

static void assert_untuned(const char *wanted)
{
    flp_text lines = { 0 };

    assert_succeeds(flp_untuned_read(root, &lines));
    assert_string_equal(wanted, lines.data ? lines.data : "");
    flp_text_free(&lines);
}

static const char bucket[] = "sm_90a linear_logp:bf16:n1024:d64:v70000\n";

static void a_new_plan_is_tuned_and_takes_the_record(void **state)
{
    (void)state;
    create();
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_string_equal("tile.group=2", flp_plan_tuning(plan));
    assert_int_equal(1, fake_tune.created);
    assert_string_equal("", fake_tune.base);
    assert_int_equal(1, fake_directory_count(root, ".record"));
    assert_int_equal(0, fake_directory_count(root, ".lock"));
    assert_untuned("");
    create();
    make_context(root, 5);
    create();
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_int_equal(1, fake_tune.created);
}

/* A plan has the tuning of a record of another machine until it has one of this machine. */
static void what_a_plan_followed_is_only_replaced_by_what_is_known_to_be_faster(void **state)
{
    const flp_wanted_kernels wanted = { "linear_logp:bf16:n1024:d64:v70000", 90, "sm_90a", "tile.group=4" };
    flp_record nearby = fake_record();
    flp_device device;

    (void)state;
    assert_succeeds(flp_device_current(&device));
    flp_environment_describe(&device, &nearby.environment);
    strcpy(nearby.environment.driver, "999");
    strcpy(nearby.identity.problem, wanted.problem);
    strcpy(nearby.tuning, wanted.tuning);
    assert_succeeds(flp_tuned_identify(context, &wanted, &nearby.identity));
    assert_succeeds(flp_record_files_publish(root, &nearby));
    fake_tune.tile_factors[1] = 1.1; /* the default is the best but for what the record has */
    fake_tune.added_factor = 0.8;
    fake_tune.slow_compilation = 4;
    fake_tune.slow_compilation_microseconds = 500000;
    make_context(root, 0.4);
    create();
    assert_int_equal(FLP_TUNED_NEARBY, flp_plan_tuned_by(plan));
    assert_string_equal("tile.group=4", flp_plan_tuning(plan));
    assert_contains(flp_plan_describe(plan), "; not tuned: ");
    assert_int_equal(1, fake_tune.created);
    fake_tune.slow_compilation_microseconds = 0;
    make_context(root, 5);
    create();
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_string_equal("tile.group=4", flp_plan_tuning(plan));
    assert_int_equal(2, fake_directory_count(root, ".record"));
}

/* What a record decides on a row's bits is what the tuning begins with. */
static void other_bits_that_were_decided_are_kept(void **state)
{
    const flp_wanted_kernels wanted = { "linear_logp:bf16:n1024:d64:v70000", 90, "sm_90a", "" };
    const flp_context_options options = { .cache_directory = "",
                                          .flags = FLP_CONTEXT_TUNE | FLP_CONTEXT_TUNED_BITS,
                                          .records_directory = root,
                                          .system_records_directories = "",
                                          .tune_seconds = 5 };
    flp_record decision = fake_record();
    flp_problem_storage normal;
    flp_device device;

    (void)state;
    assert_succeeds(flp_problem_normalize(&flp_linear_logp_operator, &problem, &normal));
    assert_succeeds(flp_tuned_identify_decision(context, &flp_linear_logp_operator, &normal, &wanted, &decision.identity));
    assert_succeeds(flp_device_current(&device));
    flp_environment_describe(&device, &decision.environment);
    strcpy(decision.tuning, "tile.bv=128");
    assert_succeeds(flp_record_files_publish(root, &decision));
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&options, &context));
    create();
    assert_string_equal("tile.bv=128", fake_tune.base);
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
    assert_string_equal("tile.bv=128,tile.group=2", flp_plan_tuning(plan));
}

static void a_call_s_plan_is_tuned_once_for_its_bucket(void **state)
{
    flp_linear_logp_args args = fake_call_args(FAKE_CALL_ROWS);

    (void)state;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    args.rows--;
    assert_succeeds(flp_linear_logp(context, &problem, &args));
    assert_int_equal(1, fake_tune.created);
    assert_succeeds(flp_linear_logp_prepare(context, &problem, NULL)); /* of 64, 128 and 256 rows, too */
    assert_int_equal(4, fake_tune.created);
    assert_int_equal(4, fake_directory_count(root, ".record"));
}

static void without_the_flag_nothing_is_tuned(void **state)
{
    (void)state;
    flp_context_destroy(context);
    assert_succeeds(flp_context_create(&(flp_context_options){ .cache_directory = "", .records_directory = root }, &context));
    create();
    problem.backend = FLP_BACKEND_CPU;
    make_context(root, 5);
    create();
    assert_int_equal(0, fake_tune.created);
}

static void during_a_capture_the_default_serves(void **state)
{
    (void)state;
    fake_driver.capture = 1;
    create();
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "tuning: default (no record; not tuned: a stream is being captured)\n");
    assert_int_equal(0, fake_tune.created);
    assert_untuned(bucket);
    fake_driver.capture = CU_STREAM_CAPTURE_STATUS_NONE;
    create();
    assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plan));
}

static void the_time_is_bounded(void **state)
{
    (void)state;
    fake_tune.slow_microseconds = 50000; /* 8 rounds of two are 0.8 seconds; how many fit into 0.3 a busy machine makes fewer, never more */
    make_context(root, 0.3);
    create();
    assert_in_range(fake_tune.timed, 0, 8);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan)); /* by so few rounds no candidate can win */
    assert_contains(flp_plan_describe(plan), " was timed in 0.3 s: ");
    assert_int_equal(0, fake_directory_count(root, ".record"));
    assert_untuned(bucket);
    fake_tune.slow_microseconds = 5000;
    problem.argmax = 1;
    make_context(root, 1e-9);
    create();
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "not tuned: its arrays and the reference took ");
}

static void a_time_that_compiling_takes_up_is_said_with_what_would_do(void **state)
{
    (void)state;
    fake_tune.slow_compilation_microseconds = 400000;
    make_context(root, 0.2);
    create();
    assert_int_equal(0, fake_tune.timed);
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "not tuned: nothing was timed in 0.2 s: ");
    assert_contains(flp_plan_describe(plan), " of 3 candidates were compiled");
    assert_contains(flp_plan_describe(plan), " (tune_seconds, or fusedlogp tune --untuned))\n");
    assert_untuned(bucket);
}

static void the_variable_says_how_long(void **state)
{
    (void)state;
    setenv("FUSEDLOGP_TUNE_SECONDS", "1e-9", 1);
    make_context(root, 0);
    create();
    assert_contains(flp_plan_describe(plan), "and the tuning has 1e-09 s");
    setenv("FUSEDLOGP_TUNE_SECONDS", "soon", 1);
    make_context(root, 0);
    assert_contains(fake_call_log(), "warning: FUSEDLOGP_TUNE_SECONDS: got 'soon', wanted a number above 0");
    assert_true(context->tune_seconds == 2);
}

static void what_fails_leaves_the_default(void **state)
{
    char before[256];

    (void)state;
    fake_tune.failure = FLP_OUT_OF_MEMORY;
    assert_int_equal(FLP_BAD_ARGUMENT, flp_linear_logp_plan_create(NULL, &problem, &plan));
    snprintf(before, sizeof(before), "%s", flp_error_message());
    create();
    assert_string_equal(before, flp_error_message());
    assert_int_equal(FLP_TUNED_NOT, flp_plan_tuned_by(plan));
    assert_contains(flp_plan_describe(plan), "(no record; not tuned: no target today)\n");
    assert_contains(fake_call_log(), "warning: linear_logp:bf16:n1024:d64:v70000 is not tuned: no target today\n");
    assert_int_equal(0, fake_directory_count(root, ".lock"));
    assert_untuned(bucket);
}

static void a_record_must_have_a_place(void **state)
{
    (void)state;
    make_context("", 5);
    create();
    assert_contains(flp_plan_describe(plan), "not tuned: there is no directory for its record");
    fake_directory_write(fake_directory_path(root, "file"), "", 0);
    make_context(fake_directory_path(root, "file"), 5);
    create();
    assert_contains(flp_plan_describe(plan), "; not tuned: ");
    assert_int_equal(0, fake_tune.created);
}

static void under_a_tool_nothing_is_timed(void **state)
{
    (void)state;
    assert_int_equal(0, setenv("CUDA_INJECTION64_PATH", "/opt/tool.so", 1));
    create();
    assert_int_equal(0, unsetenv("CUDA_INJECTION64_PATH"));
    assert_contains(flp_plan_describe(plan), "not tuned: times that a tool distorts make no record: CUDA_INJECTION64_PATH names /opt/tool.so");
    assert_int_equal(0, fake_tune.created);
}

static void *create_beside(void *made)
{
    return flp_linear_logp_plan_create(context, &problem, made) == FLP_OK ? NULL : made;
}

static void threads_tune_one_problem_once(void **state)
{
    enum { THREADS = 4 };
    pthread_t threads[THREADS];
    flp_plan *plans[THREADS];
    void *failed;

    (void)state;
    fake_tune.slow_microseconds = 1000;
    create(); /* what is loaded once is there */
    problem.entropy = 1;
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, create_beside, &plans[i]));
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(0, pthread_join(threads[i], &failed));
        assert_null(failed);
        assert_int_equal(FLP_TUNED_EXACT, flp_plan_tuned_by(plans[i]));
        assert_string_equal("tile.group=2", flp_plan_tuning(plans[i]));
        flp_plan_destroy(plans[i]);
    }
    assert_int_equal(2, fake_tune.created);
}

static void processes_tune_one_problem_once(void **state)
{
    enum { PROCESSES = 3 };
    int tuned = 0, result;

    (void)state;
    fake_tune.slow_microseconds = 1000;
    for (int i = 0; i < PROCESSES; i++)
        if (fork() == 0) {
            if (flp_linear_logp_plan_create(context, &problem, &plan) != FLP_OK || flp_plan_tuned_by(plan) != FLP_TUNED_EXACT)
                _exit(100);
            _exit(fake_tune.created);
        }
    while (wait(&result) > 0)
        tuned += WIFEXITED(result) ? WEXITSTATUS(result) : 100;
    assert_int_equal(1, tuned);
}

static void flags_that_exclude_each_other_are_refused(void **state)
{
    flp_context_options options = { .flags = FLP_CONTEXT_TUNE | FLP_CONTEXT_REPLAY };
    flp_context *other;

    (void)state;
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&options, &other), "wanted FLP_CONTEXT_TUNE without FLP_CONTEXT_REPLAY and FLP_CONTEXT_NO_COMPILE");
    options.flags = FLP_CONTEXT_TUNE | FLP_CONTEXT_NO_COMPILE;
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&options, &other), "wanted FLP_CONTEXT_TUNE without");
    options = (flp_context_options){ .tune_seconds = -1 };
    assert_fails(FLP_BAD_ARGUMENT, flp_context_create(&options, &other), "tune_seconds: got -1, wanted 0 or more");
}

#define test_of(function) cmocka_unit_test_setup_teardown(function, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        test_of(a_new_plan_is_tuned_and_takes_the_record),
        test_of(other_bits_that_were_decided_are_kept),
        test_of(what_a_plan_followed_is_only_replaced_by_what_is_known_to_be_faster),
        test_of(a_call_s_plan_is_tuned_once_for_its_bucket),
        test_of(without_the_flag_nothing_is_tuned),
        test_of(during_a_capture_the_default_serves),
        test_of(a_time_that_compiling_takes_up_is_said_with_what_would_do),
        test_of(the_time_is_bounded),
        test_of(the_variable_says_how_long),
        test_of(what_fails_leaves_the_default),
        test_of(a_record_must_have_a_place),
        test_of(under_a_tool_nothing_is_timed),
        test_of(threads_tune_one_problem_once),
        test_of(processes_tune_one_problem_once),
        test_of(flags_that_exclude_each_other_are_refused),
    };

    return cmocka_run_group_tests_name("tune_first", tests, NULL, NULL);
}
