/* Opens what every device test uses, and ends a program that hangs. */
#include "device/device_test.h"

#include <getopt.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/workspace.h"
#include "operators/linear/linear_logp_backward_chunk.h"
#include "operators/linear/linear_workspace.h"

enum { NO_DEVICE_EXIT = 77, USAGE_EXIT = 2 };

flp_device_test_state flp_device_test = { .seconds = 120 };

static void hung(int signal)
{
    static const char message[] = "\nnot ok - the last test hangs\n";

    (void)signal;
    /* Ends at once, because the driver may never return to main. */
    if (write(STDOUT_FILENO, message, sizeof(message) - 1) > 0)
        _exit(1);
    _exit(1);
}

static void print_warning(void *data, flp_log_level level, const char *message)
{
    (void)data;
    if (level == FLP_LOG_WARNING)
        fprintf(stderr, "# warning: %s\n", message);
}

/* Writes the ticket before the kernel reads it. The kernel sets it itself (templates/sm90a/tickets.cuh), but compute-sanitizer's initcheck reports the read. */
static void set_ticket(const flp_workspace *workspace, int step)
{
    void *ticket = step == FLP_STEP_TILES ? flp_workspace_at(workspace, FLP_PART_TICKET) : NULL;

    if (ticket)
        flp_gpu_set(&flp_device_test.gpu, (CUdeviceptr)(uintptr_t)ticket, 0xff, sizeof(uint64_t));
}

static int read_options(int argc, char **argv)
{
    static const struct option options[] = {
        { "filter", required_argument, NULL, 'f' }, { "quick", no_argument, NULL, 'q' }, { "seconds", required_argument, NULL, 's' }, { 0 }
    };
    int option;

    while ((option = getopt_long(argc, argv, "", options, NULL)) != -1) {
        switch (option) {
        case 'f':
            cmocka_set_test_filter(optarg);
            break;
        case 'q':
            flp_device_test.quick = 1;
            break;
        case 's':
            flp_device_test.seconds = (unsigned)strtoul(optarg, NULL, 10);
            break;
        default:
            return USAGE_EXIT;
        }
    }
    return optind == argc ? 0 : USAGE_EXIT;
}

int flp_device_test_start(int argc, char **argv)
{
    flp_device_test_state *test = &flp_device_test;
    int code = read_options(argc, argv);
    flp_status status;

    if (code != 0) {
        fprintf(stderr, "usage: %s [--filter PATTERN] [--quick] [--seconds N]\n", argv[0]);
        return code;
    }
    /* Line by line, so that the results before a crash are not lost. */
    setvbuf(stdout, NULL, _IOLBF, 0);
    flp_log_set_callback(print_warning, NULL);
    flp_backward_set_least_steps_in_step(0); /* clusters synchronise with one another even in the tests' short products */
    if (getenv("FUSEDLOGP_TEST_SETS_TICKETS"))
        flp_workspace_watcher = set_ticket;
    signal(SIGALRM, hung);
    alarm(test->seconds);
    status = flp_gpu_open(&test->gpu);
    if (status == FLP_NO_DRIVER) {
        fprintf(stderr, "# no GPU: %s\n", flp_error_message());
        return NO_DEVICE_EXIT;
    }
    if (status == FLP_OK)
        status = flp_context_create(NULL, &test->context);
    if (status == FLP_OK) {
        fprintf(stderr, "# %s, compute capability %d\n", test->gpu.facts.name, test->gpu.facts.compute_capability);
        status = flp_gpu_kernels_load(&test->gpu, &test->kernels);
    }
    if (status == FLP_OK || status == FLP_NO_NVRTC)
        return 0;
    fprintf(stderr, "# %s: %s\n", flp_status_text(status), flp_error_message());
    return 1;
}

void flp_device_test_finish(void)
{
    flp_context_destroy(flp_device_test.context);
    flp_gpu_kernels_unload(&flp_device_test.gpu, &flp_device_test.kernels);
    flp_gpu_close(&flp_device_test.gpu);
}

int flp_device_test_setup(void **state)
{
    const flp_gpu *gpu = &flp_device_test.gpu;

    (void)state;
    alarm(flp_device_test.seconds);
    if (gpu->driver->context_set_current(gpu->context) == CUDA_SUCCESS && flp_gpu_synchronize(gpu) == FLP_OK)
        return 0;
    /* After a fault in a kernel every call fails, so the tests that follow would say nothing. */
    printf("not ok - the device is lost: %s\n", flp_error_message());
    exit(1);
}

int flp_device_test_teardown(void **state)
{
    (void)state;
    flp_gpu_free_all(&flp_device_test.gpu);
    return 0;
}

struct CMUnitTest flp_device_test_case(const char *name, CMUnitTestFunction function, const void *data)
{
    return (struct CMUnitTest){ name, function, flp_device_test_setup, flp_device_test_teardown, (void *)(uintptr_t)data };
}

int flp_device_test_run_cases(const char *group, int count, struct CMUnitTest (*test_at)(int index))
{
    struct CMUnitTest *tests = calloc((size_t)count, sizeof(*tests));
    int failed;

    if (!tests)
        return 1;
    for (int i = 0; i < count; i++)
        tests[i] = test_at(i);
    failed = _cmocka_run_group_tests(group, tests, (size_t)count, NULL, NULL);
    free(tests);
    return failed;
}

int flp_device_test_run(const char *group, const struct CMUnitTest *tests, size_t count, int argc, char **argv)
{
    int code = flp_device_test_start(argc, argv);

    if (code != 0)
        return code;
    code = _cmocka_run_group_tests(group, tests, count, NULL, NULL);
    flp_device_test_finish();
    return code;
}

void flp_device_test_need_kernels(void)
{
    if (flp_device_test.kernels.module)
        return;
    fprintf(stderr, "# no NVRTC, so the test's own kernels cannot be compiled\n");
    skip();
}
