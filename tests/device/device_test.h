/* What the device tests share: the GPU, one context of the library, options, and a watchdog, since a kernel may hang. */
#ifndef FLP_TESTS_DEVICE_DEVICE_TEST_H
#define FLP_TESTS_DEVICE_DEVICE_TEST_H
#include "device/gpu_kernels.h"
#include "runtime/assertions.h"

typedef struct {
    flp_gpu gpu;
    flp_gpu_kernels kernels; /* module NULL: no NVRTC here */
    flp_context *context;    /* its cache is $FUSEDLOGP_CACHE_DIR's */
    int quick;               /* --quick: few and small cases, for a sanitizer */
    unsigned seconds;        /* --seconds N: how long one test may take */
} flp_device_test_state;

extern flp_device_test_state flp_device_test;

/* Called first in main: reads the options (--filter PATTERN, --quick, --seconds N), opens the GPU and makes the context. Returns 0, or what main should return:
 * 77 if there is no GPU. */
int flp_device_test_start(int argc, char **argv);
void flp_device_test_finish(void);

/* Setup and teardown of every test. Setup starts the watchdog: a test that hangs ends the program with a "not ok". Teardown frees the device memory. */
int flp_device_test_setup(void **state);
int flp_device_test_teardown(void **state);

#define flp_device_test_of(function) cmocka_unit_test_setup_teardown(function, flp_device_test_setup, flp_device_test_teardown)

/* The same for a test of a case: data becomes the test's initial state. */
struct CMUnitTest flp_device_test_case(const char *name, CMUnitTestFunction function, const void *data);

/* Runs test_at(0) .. test_at(count - 1). Returns how many failed. */
int flp_device_test_run_cases(const char *group, int count, struct CMUnitTest (*test_at)(int index));

/* All that main does if its tests are an array. */
#define flp_device_test_main(group, tests, argc, argv) flp_device_test_run(group, tests, sizeof(tests) / sizeof((tests)[0]), argc, argv)
int flp_device_test_run(const char *group, const struct CMUnitTest *tests, size_t count, int argc, char **argv);

/* Skips the test if the tests' own kernels (gpu_kernels.h) could not be compiled. */
void flp_device_test_need_kernels(void);
#endif
