/* Loading libcuda, and what its errors become. */
#include "cuda/driver.h"

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cuda/library.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"

static const flp_driver *driver;

static int install(void **state)
{
    (void)state;
    driver = NULL;
    fake_library_install();
    return 0;
}

static void the_driver_is_loaded_and_initialised_once(void **state)
{
    const flp_driver *again;

    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    assert_succeeds(flp_driver_get(&again));
    assert_ptr_equal(driver, again);
    assert_int_equal(1, fake_driver.calls[FAKE_init]);
    assert_string_equal("libcuda.so.1\n", fake_library.opened);
    assert_int_equal(13000, driver->version);
    assert_non_null(driver->tensor_map_encode_tiled);
}

static void *get_driver(void *argument)
{
    return (void *)(intptr_t)flp_driver_get((const flp_driver **)argument);
}

static void threads_initialise_it_once_together(void **state)
{
    pthread_t threads[8];
    const flp_driver *drivers[8];

    (void)state;
    for (int i = 0; i < 8; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, get_driver, &drivers[i]));
    for (int i = 0; i < 8; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal(FLP_OK, (intptr_t)status);
        assert_ptr_equal(drivers[0], drivers[i]);
    }
    assert_int_equal(1, fake_driver.calls[FAKE_init]);
}

static void without_a_driver_both_names_are_tried_and_named(void **state)
{
    (void)state;
    fake_library.driver = 0;
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "libcuda.so.1 nor libcuda.so");
    assert_contains(flp_error_message(), "no such library here");
    assert_string_equal("libcuda.so.1\nlibcuda.so\n", fake_library.opened);
    assert_null(driver);
}

static void a_driver_that_comes_later_is_found(void **state)
{
    (void)state;
    fake_library.driver = 0;
    assert_int_equal(FLP_NO_DRIVER, flp_driver_get(&driver));
    fake_library.driver = 1;
    assert_succeeds(flp_driver_get(&driver));
}

static void a_driver_without_a_needed_function_is_too_old(void **state)
{
    (void)state;
    fake_library.missing = "cuCtxGetId";
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "cuCtxGetId");
    assert_contains(flp_error_message(), "too old");
    assert_int_equal(0, fake_driver.calls[FAKE_init]);
}

static void every_needed_function_is_asked_for(void **state)
{
    const char *const needed[] = {
#define NEEDED(field, symbol, parameters) #symbol,
        FLP_DRIVER_FUNCTIONS(NEEDED)
#undef NEEDED
    };

    (void)state;
    for (size_t i = 0; i < sizeof(needed) / sizeof(needed[0]); i++) {
        fake_library_install();
        fake_library.missing = needed[i];
        assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), needed[i]);
    }
}

static void an_optional_function_may_be_missing(void **state)
{
    (void)state;
    fake_library.missing = "cuTensorMapEncodeTiled";
    assert_succeeds(flp_driver_get(&driver));
    assert_null(driver->tensor_map_encode_tiled);
    fake_library_install();
    fake_library.missing = "cuFuncLoad";
    assert_succeeds(flp_driver_get(&driver));
    assert_null(driver->function_load);
}

static void a_driver_that_does_not_start_is_no_driver(void **state)
{
    (void)state;
    fake_driver_fail(FAKE_init, 999, 1);
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "cuInit");
    assert_contains(flp_error_message(), "999");
    assert_succeeds(flp_driver_get(&driver));
    fake_library_install();
    fake_driver_fail(FAKE_init, CUDA_ERROR_NO_DEVICE, -1);
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "cuInit");
}

static void a_driver_without_devices_is_no_driver(void **state)
{
    (void)state;
    fake_driver.devices = 0;
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "13.0 shows no device");
    fake_driver_fail(FAKE_device_count, CUDA_ERROR_OUT_OF_MEMORY, 1);
    assert_fails(FLP_NO_DRIVER, flp_driver_get(&driver), "cuDeviceGetCount");
}

static void results_become_the_statuses_that_fit(void **state)
{
    const struct {
        CUresult result;
        flp_status status;
    } pairs[] = {
        { CUDA_SUCCESS, FLP_OK },
        { CUDA_ERROR_INVALID_VALUE, FLP_CUDA_FAILED },
        { CUDA_ERROR_OUT_OF_MEMORY, FLP_OUT_OF_MEMORY },
        { CUDA_ERROR_NO_DEVICE, FLP_NO_DRIVER },
        { CUDA_ERROR_INVALID_CONTEXT, FLP_WRONG_CONTEXT },
        { CUDA_ERROR_CONTEXT_IS_DESTROYED, FLP_WRONG_CONTEXT },
        { CUDA_ERROR_LAUNCH_FAILED, FLP_CUDA_FAILED },
        { CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED - 1, FLP_CUDA_FAILED },
        { CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED, FLP_CAPTURING },
        { CUDA_ERROR_STREAM_CAPTURE_IMPLICIT, FLP_CAPTURING },
        { CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD, FLP_CAPTURING },
        { CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD + 1, FLP_CUDA_FAILED },
    };

    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_int_equal(pairs[i].status, flp_driver_check(driver, pairs[i].result, "x"));
}

static void a_failure_names_the_call_the_error_and_its_text(void **state)
{
    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    flp_driver_check(driver, CUDA_ERROR_OUT_OF_MEMORY, "cuMemAlloc of 7 bytes");
    assert_string_equal("cuMemAlloc of 7 bytes: CUDA_ERROR_OUT_OF_MEMORY (out of memory, 2)", flp_error_message());
    flp_driver_check(driver, 12345, "cuLaunchKernel");
    assert_string_equal("cuLaunchKernel: an unknown CUresult (no text, 12345)", flp_error_message());
}

static int in_child(int (*check)(void))
{
    pid_t child = fork();
    int result = -1;

    if (child == 0)
        _exit(check());
    waitpid(child, &result, 0);
    return result;
}

static int is_forked(void)
{
    return flp_driver_get(&driver) == FLP_FORKED && !driver && strstr(flp_error_message(), "fork") ? 0 : 1;
}

static int is_usable(void)
{
    return flp_driver_get(&driver) == FLP_OK ? 0 : 1;
}

static void a_child_of_a_process_that_used_cuda_is_told(void **state)
{
    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    assert_int_equal(0, in_child(is_forked));
    assert_succeeds(flp_driver_get(&driver));
}

static int is_forked_in_the_grandchild(void)
{
    return in_child(is_forked);
}

static void a_grandchild_is_told_too(void **state)
{
    (void)state;
    assert_succeeds(flp_driver_get(&driver));
    assert_int_equal(0, in_child(is_forked_in_the_grandchild));
}

static void a_child_forked_before_first_use_may_use_cuda(void **state)
{
    (void)state;
    assert_int_equal(0, in_child(is_usable));
    fake_driver_fail(FAKE_init, 999, 1);
    assert_int_equal(FLP_NO_DRIVER, flp_driver_get(&driver));
    assert_int_equal(0, in_child(is_usable));
}

static void fork_a_child(void)
{
    const pid_t child = fork();

    if (child == 0)
        _exit(0);
    waitpid(child, NULL, 0);
}

/* cuInit starts nvidia-modprobe where a device file is missing. A lock that the fork handlers wait for would be this thread's own. */
static void an_initialisation_that_forks_ends(void **state)
{
    (void)state;
    fake_driver.on_init = fork_a_child;
    alarm(60);
    assert_succeeds(flp_driver_get(&driver));
    alarm(0);
    fake_driver.on_init = NULL;
    assert_int_equal(0, in_child(is_forked));
}

static void the_real_loader_says_why_a_library_does_not_open(void **state)
{
    const flp_library_loader *loader;
    void *self;

    (void)state;
    flp_library_loader_set(NULL);
    loader = flp_library_loader_get();
    assert_null(loader->open("libdoes-not-exist.so.99"));
    assert_contains(loader->error(), "libdoes-not-exist.so.99");
    self = loader->open("libc.so.6");
    assert_non_null(self);
    assert_non_null(loader->symbol(self, "malloc"));
    assert_null(loader->symbol(self, "no_such_function"));
    assert_contains(loader->origin(loader->symbol(self, "malloc")), "/");
    assert_true(loader->readable("/proc/self/status"));
    assert_false(loader->readable("/no/such/file"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(the_driver_is_loaded_and_initialised_once, install),
        cmocka_unit_test_setup(threads_initialise_it_once_together, install),
        cmocka_unit_test_setup(without_a_driver_both_names_are_tried_and_named, install),
        cmocka_unit_test_setup(a_driver_that_comes_later_is_found, install),
        cmocka_unit_test_setup(a_driver_without_a_needed_function_is_too_old, install),
        cmocka_unit_test_setup(every_needed_function_is_asked_for, install),
        cmocka_unit_test_setup(an_optional_function_may_be_missing, install),
        cmocka_unit_test_setup(a_driver_that_does_not_start_is_no_driver, install),
        cmocka_unit_test_setup(a_driver_without_devices_is_no_driver, install),
        cmocka_unit_test_setup(results_become_the_statuses_that_fit, install),
        cmocka_unit_test_setup(a_failure_names_the_call_the_error_and_its_text, install),
        cmocka_unit_test_setup(a_child_of_a_process_that_used_cuda_is_told, install),
        cmocka_unit_test_setup(a_grandchild_is_told_too, install),
        cmocka_unit_test_setup(a_child_forked_before_first_use_may_use_cuda, install),
        cmocka_unit_test_setup(an_initialisation_that_forks_ends, install),
        cmocka_unit_test_setup(the_real_loader_says_why_a_library_does_not_open, install),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
