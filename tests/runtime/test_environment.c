/* What is said of a machine, with NVML and without. */
#include "tune/environment.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/status.h"
#include "cuda/nvml.h"
#include "assertions.h"
#include "fake_driver.h"
#include "fake_library.h"
#include "fake_nvml.h"

static flp_environment here;

static int install(void **state)
{
    (void)state;
    fake_library_install();
    fake_library.nvml = 1;
    return 0;
}

static void describe(void)
{
    flp_device device;

    assert_succeeds(flp_device_current(&device));
    flp_status_fail(FLP_OK, "the caller's message");
    flp_environment_describe(&device, &here);
    assert_string_equal("the caller's message", flp_error_message());
}

static void a_device_is_described_by_driver_and_nvml(void **state)
{
    (void)state;
    describe();
    assert_string_equal("Fake GPU 0", here.device);
    assert_int_equal(132, here.multiprocessors);
    assert_int_equal(52428800, here.l2_bytes);
    assert_int_equal(700, here.power_limit_w);
    assert_string_equal("none", here.mig);
    assert_string_equal("580", here.driver);
    assert_string_equal("0000:40:00.0", fake_nvml.bus);
    assert_true(*here.nvrtc && strcmp(here.nvrtc, "none") != 0);
}

static void a_part_of_a_gpu_is_known_by_its_profile(void **state)
{
    (void)state;
    fake_driver.name = "NVIDIA H100 80GB HBM3 MIG 1g.10gb";
    describe();
    assert_string_equal("1g.10gb", here.mig);
}

static void a_name_is_made_printable(void **state)
{
    (void)state;
    fake_driver.name = " odd\tname\n";
    describe();
    assert_string_equal("odd?name?", here.device);
    fake_driver.name = "  ";
    fake_library_install();
    fake_driver.name = "  ";
    describe();
    assert_string_equal("unknown", here.device);
}

static void without_nvml_less_is_known(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        fake_library_install();
        fake_library.nvml = kind != 0;
        fake_library.missing = kind == 1 ? "nvmlDeviceGetEnforcedPowerLimit" : NULL;
        fake_nvml.failure = kind == 2 ? 999 : NVML_SUCCESS;
        describe();
        assert_int_equal(0, here.power_limit_w);
        assert_string_equal("cuda 13.0", here.driver);
        assert_int_equal(132, here.multiprocessors);
    }
}

static void a_driver_without_bus_ids_leaves_the_power_limit_unknown(void **state)
{
    (void)state;
    fake_library.missing = "cuDeviceGetPCIBusId";
    describe();
    assert_int_equal(0, here.power_limit_w);
    assert_string_equal("580", here.driver);
}

static void the_clock_is_that_of_now(void **state)
{
    nvmlDevice_t handle;

    (void)state;
    assert_succeeds(flp_nvml_find(0, &handle));
    assert_true(flp_nvml_clock_mhz(handle) == 1980);
    fake_nvml.megahertz = 1200;
    assert_true(flp_nvml_clock_mhz(handle) == 1200);
    fake_nvml.failure = 15;
    assert_true(flp_nvml_clock_mhz(handle) == 0);
    assert_true(flp_nvml_clock_mhz(NULL) == 0);
    assert_fails(FLP_NO_DRIVER, flp_nvml_find(0, &handle), "error 15");
}

static void the_first_difference_is_said(void **state)
{
    char text[FLP_ENVIRONMENT_DIFFERENCE_BYTES];
    flp_environment other;

    (void)state;
    describe();
    other = here;
    flp_environment_difference(&other, &here, text);
    assert_string_equal("", text);
    strcpy(other.nvrtc, "x");
    strcpy(other.driver, "570");
    flp_environment_difference(&other, &here, text);
    assert_string_equal("its driver is 570, here 580", text);
    other.l2_bytes = 1024;
    flp_environment_difference(&other, &here, text);
    assert_true(strncmp("its L2 cache in bytes is 1024, here ", text, 36) == 0);
    memset(other.device, 'G', sizeof(other.device) - 1);
    flp_environment_difference(&other, &here, text);
    assert_true(strncmp("its device is GGGG", text, 18) == 0);
}

static void every_part_tells_environments_apart(void **state)
{
    flp_environment other;

    (void)state;
    describe();
    other = here;
    assert_true(flp_environment_same(&here, &other));
    other.power_limit_w++;
    assert_false(flp_environment_same(&here, &other));
    other = here;
    strcpy(other.nvrtc, "x");
    assert_false(flp_environment_same(&here, &other));
}

/* A file of that name, mapped as the loader maps a library. */
static void a_tool_is_known_by_its_library(void **state)
{
    char folder[] = "/tmp/flp-environment-XXXXXX", path[64], tool[FLP_ENVIRONMENT_TOOL_BYTES];
    void *mapped;
    int file;

    (void)state;
    unsetenv("CUDA_INJECTION64_PATH");
    flp_environment_tool(tool);
    assert_string_equal("", tool);
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/libsanitizer-collection.so", folder);
    file = open(path, O_RDWR | O_CREAT, 0600);
    assert_int_equal(1, write(file, "x", 1));
    mapped = mmap(NULL, 1, PROT_READ, MAP_PRIVATE, file, 0);
    assert_ptr_not_equal(MAP_FAILED, mapped);
    flp_environment_tool(tool);
    munmap(mapped, 1);
    close(file);
    unlink(path);
    rmdir(folder);
    assert_string_equal("a tool has loaded libsanitizer-collection.so", tool);
    flp_environment_tool(tool);
    assert_string_equal("", tool);
}

static void a_process_that_is_traced_says_so(void **state)
{
    char tool[FLP_ENVIRONMENT_TOOL_BYTES];
    int status;
    const pid_t child = fork();

    (void)state;
    if (child == 0) {
        if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0)
            _exit(2);
        flp_environment_tool(tool);
        _exit(strstr(tool, "debugs or traces this one") ? 0 : 1);
    }
    assert_true(child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status));
    if (WEXITSTATUS(status) == 2)
        skip(); /* not allowed here */
    assert_int_equal(0, WEXITSTATUS(status));
}

int main(void)
{
#define ENVIRONMENT_TEST(name) cmocka_unit_test_setup(name, install)
    const struct CMUnitTest tests[] = {
        ENVIRONMENT_TEST(a_device_is_described_by_driver_and_nvml),
        ENVIRONMENT_TEST(a_part_of_a_gpu_is_known_by_its_profile),
        ENVIRONMENT_TEST(a_name_is_made_printable),
        ENVIRONMENT_TEST(without_nvml_less_is_known),
        ENVIRONMENT_TEST(a_driver_without_bus_ids_leaves_the_power_limit_unknown),
        ENVIRONMENT_TEST(the_clock_is_that_of_now),
        ENVIRONMENT_TEST(the_first_difference_is_said),
        ENVIRONMENT_TEST(every_part_tells_environments_apart),
        cmocka_unit_test(a_tool_is_known_by_its_library),
        cmocka_unit_test(a_process_that_is_traced_says_so),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
