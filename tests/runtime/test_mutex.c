/* A log callback that calls the library: at each line that the library logs, no lock is held that such a call wants. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* pthread_setattr_default_np */
#endif
#include "base/mutex.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "base/status.h"
#include "fake_call.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "jit/kernel.h"

enum { DEADLOCK_SECONDS = 150 };

static const char definition[] = "return { inputs = {}, loss = function(t) return -t.logp end }";

static flp_context *context;
static flp_linear_logp_problem problem;
static flp_linear_logp_args args;
static const char *root;
static char lines[1 << 16];
static pthread_mutex_t lines_mutex = PTHREAD_MUTEX_INITIALIZER; /* not held while the library is called */
static _Thread_local int depth;
static atomic_int deepest, failures;

static int run(void)
{
    return flp_linear_logp(context, &problem, &args);
}

/* One call for each lock of the library, and two that fail, which the caller of the library must not hear of. */
static void call_everything(void)
{
    flp_counters counters;
    flp_plan *plan = NULL;
    int count, failed;

    failed = flp_device_count(&count) != FLP_OK || flp_device_count(NULL) != FLP_BAD_ARGUMENT;
    if (context) {
        failed |= run() || flp_linear_logp_prepare(context, &problem, NULL);
        failed |= flp_linear_logp_plan_create(context, &problem, &plan) || flp_linear_logp_execute(plan, &args);
        failed |= flp_plan_target_errors(plan, NULL, NULL) || flp_token_loss_define(context, "mine", definition);
        failed |= flp_context_release_scratch(context, 0) || flp_context_counters(context, &counters);
        failed |= flp_linear_logp(context, NULL, &args) != FLP_BAD_ARGUMENT;
        flp_plan_destroy(plan);
    }
    atomic_fetch_add(&failures, failed);
    errno = EILSEQ;
}

/* 1 where the message was not heard before: a plan that is created logs the same line each time. */
static int keep(const char *message)
{
    int is_new;

    pthread_mutex_lock(&lines_mutex);
    is_new = !strstr(lines, message);
    if (is_new && strlen(lines) + strlen(message) + 2 < sizeof(lines))
        strcat(strcat(lines, message), "\n");
    pthread_mutex_unlock(&lines_mutex);
    return is_new;
}

static void answer(void *user_data, flp_log_level level, const char *message)
{
    (void)user_data;
    (void)level;
    depth++;
    if (depth > deepest)
        deepest = depth;
    if (keep(message))
        call_everything();
    depth--;
}

static void open_context(const char *cache, const char *systems, int64_t cache_bytes, unsigned flags)
{
    const flp_context_options options = {
        .cache_directory = cache, .system_cache_directories = systems, .cache_bytes = cache_bytes, .cpu_threads = 2, .flags = flags
    };
    flp_context *made, *old = context;

    context = NULL;
    flp_context_destroy(old);
    assert_succeeds(flp_context_create(&options, &made));
    context = made;
    problem = fake_call_problem();
    args = fake_call_args(FAKE_CALL_ROWS);
}

static int start(void **state)
{
    (void)state;
    root = fake_directory_make();
    fake_library_install();
    lines[0] = 0;
    failures = deepest = 0;
    flp_log_set_callback(answer, NULL);
    alarm(DEADLOCK_SECONDS);
    return 0;
}

static int stop(void **state)
{
    flp_context *old = context;

    (void)state;
    context = NULL;
    flp_context_destroy(old);
    flp_log_set_callback(NULL, NULL);
    fake_directory_remove(root);
    alarm(0);
    return failures != 0 || deepest > 1;
}

static void the_driver_the_compiler_kernels_and_plans_are_told_of(void **state)
{
    (void)state;
    open_context("", "", 0, 0);
    assert_succeeds(run());
    assert_contains(lines, "CUDA driver 13.0");
    assert_contains(lines, "NVRTC: ");
    assert_contains(lines, "compiled linear_logp");
    assert_contains(lines, "plan linear_logp:");
    assert_int_equal(0, failures);
}

static void a_cache_that_cannot_be_used_is_told_of(void **state)
{
    const char *file = fake_directory_path(root, "file");

    (void)state;
    fake_directory_write(file, "", 0);
    open_context(fake_directory_path(file, "below"), file, 0, 0);
    assert_succeeds(run());
    assert_contains(lines, "kernels stay in memory only");
    assert_contains(lines, "system ");
}

/* Damages every kernel of the directory. */
static void damage(const char *directory)
{
    char command[512];

    snprintf(command, sizeof(command), "find '%s' -name '*.flpk' -exec truncate -s 20 '{}' ';'", directory);
    assert_int_equal(0, system(command));
}

static void damaged_rejected_and_trimmed_kernels_are_told_of(void **state)
{
    (void)state;
    open_context(root, "", 0, 0);
    assert_succeeds(run());
    open_context(root, "", 0, 0);
    fake_driver_fail(FAKE_module_load, CUDA_ERROR_INVALID_IMAGE, 1);
    assert_succeeds(run());
    assert_contains(lines, "the driver rejects the cached kernel");
    damage(root);
    open_context(root, "", 1, 0);
    assert_succeeds(run());
    assert_contains(lines, "is damaged or foreign");
    assert_contains(lines, "bytes were over the limit");
}

static void the_cpu_beside_a_gpu_is_told_of(void **state)
{
    (void)state;
    fake_driver.major = 7;
    open_context("", "", 0, 0);
    args.rows = 1;
    problem.vocab = 1000;
    assert_succeeds(run());
    assert_contains(lines, "runs on the CPU beside");
}

static void threads_that_do_not_start_are_told_of(void **state)
{
    pthread_attr_t usual, huge;

    (void)state;
    assert_int_equal(0, pthread_getattr_default_np(&usual));
    assert_int_equal(0, pthread_getattr_default_np(&huge));
    assert_int_equal(0, pthread_attr_setstacksize(&huge, (size_t)1 << 46));
    assert_int_equal(0, pthread_setattr_default_np(&huge));
    open_context("", "", 0, FLP_CONTEXT_NO_GPU);
    problem.vocab = 1000;
    assert_succeeds(run());
    assert_int_equal(0, pthread_setattr_default_np(&usual));
    assert_contains(lines, "did not start");
}

static void modules_that_stay_are_told_of(void **state)
{
    (void)state;
    open_context("", "", 0, 0);
    assert_succeeds(run());
    fake_driver_fail(FAKE_module_unload, CUDA_ERROR_LAUNCH_FAILED, 1);
    open_context("", "", 0, 0);
    assert_contains(lines, "could not be unloaded");
}

static flp_kernel_store *store;
static const char variant[] = "linear_logp_combine.bm8.sm_90a";

/* Asks for the same kernel, whose lock file would be waited for. */
static void prebuild_again(void *user_data, flp_log_level level, const char *message)
{
    int compiled = 1;

    (void)user_data;
    (void)level;
    if (keep(message) && strncmp(message, "compiled ", 9) == 0)
        atomic_fetch_add(&failures, flp_kernel_store_prebuild(store, variant, &compiled, NULL) != FLP_OK || compiled);
}

static void a_kernels_lock_file_is_gone_when_it_is_told_of(void **state)
{
    const flp_context_options options = { .cache_directory = root, .system_cache_directories = "" };
    const time_t begun = time(NULL);
    int compiled;

    (void)state;
    flp_log_set_callback(prebuild_again, NULL);
    assert_succeeds(flp_kernel_store_create(&options, &store));
    assert_succeeds(flp_kernel_store_prebuild(store, variant, &compiled, NULL));
    assert_int_equal(1, compiled);
    assert_contains(lines, "compiled linear_logp_combine");
    assert_in_range(time(NULL) - begun, 0, 30); /* half of what a lock is waited for */
    flp_kernel_store_destroy(store);
}

static void lines_of_a_locked_thread_wait_for_its_last_unlock(void **state)
{
    pthread_mutex_t outer = PTHREAD_MUTEX_INITIALIZER, inner = PTHREAD_MUTEX_INITIALIZER;

    (void)state;
    flp_mutex_lock(&outer);
    flp_log_info("first");
    flp_mutex_lock(&inner);
    flp_log_info("second");
    flp_mutex_unlock(&inner);
    assert_string_equal("", lines);
    flp_mutex_unlock(&outer);
    assert_ptr_equal(lines, strstr(lines, "first\nsecond\n"));
    flp_log_info("third");
    assert_contains(lines, "third\n");
}

static void a_line_leaves_error_message_and_errno_alone(void **state)
{
    (void)state;
    flp_status_fail(FLP_IO_FAILED, "the caller's");
    errno = ENOENT;
    flp_log_info("whatever");
    assert_int_equal(ENOENT, errno);
    assert_string_equal("the caller's", flp_error_message());
    assert_contains(lines, "whatever");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(the_driver_the_compiler_kernels_and_plans_are_told_of),
        TEST(a_cache_that_cannot_be_used_is_told_of),
        TEST(damaged_rejected_and_trimmed_kernels_are_told_of),
        TEST(the_cpu_beside_a_gpu_is_told_of),
        TEST(threads_that_do_not_start_are_told_of),
        TEST(modules_that_stay_are_told_of),
        TEST(a_kernels_lock_file_is_gone_when_it_is_told_of),
        TEST(lines_of_a_locked_thread_wait_for_its_last_unlock),
        TEST(a_line_leaves_error_message_and_errno_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
