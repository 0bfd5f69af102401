/* Finding, loading and using NVRTC; the last tests use a real one where it is installed. */
#include "cuda/nvrtc.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file.h"
#include "cuda/elf_build_id.h"
#include "cuda/library.h"
#include "assertions.h"
#include "fake_directory.h"
#include "fake_library.h"
#include "fake_nvrtc.h"

static const char *const variables[] = { "FUSEDLOGP_NVRTC_PATH", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "CONDA_PREFIX", "HOME" };
enum { VARIABLES = sizeof(variables) / sizeof(variables[0]) };
static char *saved[VARIABLES];
static const char *const no_options[] = { NULL };
static const char *root;
static flp_nvrtc_facts facts;

static int install(void **state)
{
    (void)state;
    for (int i = 0; i < VARIABLES; i++) {
        const char *value = getenv(variables[i]);
        saved[i] = value ? strdup(value) : NULL;
        unsetenv(variables[i]);
    }
    root = fake_directory_make();
    fake_library_install();
    fake_library.root = root;
    return 0;
}

static int restore(void **state)
{
    (void)state;
    fake_directory_remove(root);
    for (int i = 0; i < VARIABLES; i++) {
        if (saved[i])
            setenv(variables[i], saved[i], 1);
        else
            unsetenv(variables[i]);
        free(saved[i]);
    }
    return 0;
}

/* A library below root, whose directory is made. */
static const char *put(const char *name, const char *build_id)
{
    const char *path = fake_directory_path(root, name);
    char directory[4096];

    snprintf(directory, sizeof(directory), "%.*s", (int)(strrchr(path, '/') - path), path);
    assert_succeeds(flp_file_make_directories(directory, 0700));
    fake_nvrtc_write_library(path, build_id);
    return path;
}

static void assert_found(const char *path, const char *build)
{
    flp_library_loader_set(flp_library_loader_get());
    assert_succeeds(flp_nvrtc_find(&facts));
    assert_string_equal(path, facts.path);
    assert_string_equal(build, facts.build);
}

static void a_file_on_the_loader_path_is_found_without_loading_it(void **state)
{
    const char *path = put("b/libnvrtc.so.13", "65be0db342ad51a0");
    char value[256];

    (void)state;
    snprintf(value, sizeof(value), "/nowhere::%s/a:%s/b", root, root);
    setenv("LD_LIBRARY_PATH", value, 1);
    assert_found(path, "65be0db342ad51a0");
    assert_string_equal("", fake_library.opened);
}

static void the_newest_version_in_a_directory_is_taken(void **state)
{
    const char *plain = put("libnvrtc.so", "01"), *twelve, *thirteen;

    (void)state;
    setenv("LD_LIBRARY_PATH", root, 1);
    assert_found(plain, "01");
    twelve = put("libnvrtc.so.12", "02");
    assert_found(twelve, "02");
    thirteen = put("libnvrtc.so.13", "03");
    assert_found(thirteen, "03");
}

static void each_usual_place_is_searched(void **state)
{
    const struct {
        const char *variable, *below;
    } places[] = {
        { "FUSEDLOGP_NVRTC_PATH", "" },
        { "LD_LIBRARY_PATH", "" },
        { "CUDA_HOME", "lib64/" },
        { "CUDA_PATH", "lib64/" },
        { "VIRTUAL_ENV", "lib/python3.11/site-packages/nvidia/cu13/lib/" },
        { "VIRTUAL_ENV", "lib/python3.9/site-packages/nvidia/cuda_nvrtc/lib/" },
        { "CONDA_PREFIX", "lib/" },
        { "CONDA_PREFIX", "lib/python3.13/site-packages/nvidia/cu13/lib/" },
        { "CONDA_PREFIX", "lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/" },
        { "HOME", ".local/lib/python3.12/site-packages/nvidia/cu13/lib/" },
        { "HOME", ".local/lib/python3.10/site-packages/nvidia/cuda_nvrtc/lib/" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char name[256];
        const char *path;

        snprintf(name, sizeof(name), "%zu/%slibnvrtc.so.13", i, places[i].below);
        path = put(name, "0a0b");
        snprintf(name, sizeof(name), "%s/%zu", root, i);
        setenv(places[i].variable, name, 1);
        assert_found(path, "0a0b");
        unsetenv(places[i].variable);
    }
}

static void the_loader_path_goes_before_cuda_home(void **state)
{
    const char *first = put("one/libnvrtc.so.12", "01");

    (void)state;
    put("two/lib64/libnvrtc.so.13", "02");
    setenv("CUDA_HOME", fake_directory_path(root, "two"), 1);
    setenv("LD_LIBRARY_PATH", fake_directory_path(root, "one"), 1);
    assert_found(first, "01");
}

static void a_file_that_is_no_library_is_passed_over(void **state)
{
    const char *good;

    (void)state;
    fake_directory_write(fake_directory_path(root, "libnvrtc.so.13"), "/* GNU ld script */", 19);
    setenv("LD_LIBRARY_PATH", root, 1);
    fake_library.nvrtc = 0;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_find(&facts), "/libnvrtc.so.13 is not a library of this machine");
    good = put("libnvrtc.so.12", "0c");
    assert_found(good, "0c");
}

/* As with an old CUDA toolkit in CUDA_HOME beside a newer wheel. */
static void a_file_whose_name_says_an_old_version_is_passed_over(void **state)
{
    const char *good;

    (void)state;
    put("old/lib64/libnvrtc.so.11.8.89", "0a");
    assert_int_equal(0, symlink("libnvrtc.so.11.8.89", fake_directory_path(root, "old/lib64/libnvrtc.so")));
    setenv("CUDA_HOME", fake_directory_path(root, "old"), 1);
    setenv("VIRTUAL_ENV", fake_directory_path(root, "venv"), 1);
    fake_library.nvrtc = 0;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_find(&facts), "set FUSEDLOGP_NVRTC_PATH");
    assert_contains(flp_error_message(), "/old/lib64/libnvrtc.so is NVRTC 11; no libnvrtc.so.13");
    good = put("venv/lib/python3.12/site-packages/nvidia/cu13/lib/libnvrtc.so.13", "0b");
    assert_found(good, "0b");
}

static void a_library_without_a_build_id_is_known_by_its_versioned_name_and_size(void **state)
{
    struct stat size;
    char build[96];

    (void)state;
    put("libnvrtc.so.13.0.88", "");
    assert_int_equal(0, symlink("libnvrtc.so.13.0.88", fake_directory_path(root, "libnvrtc.so.13")));
    assert_int_equal(0, stat(fake_directory_path(root, "libnvrtc.so.13"), &size));
    snprintf(build, sizeof(build), "libnvrtc.so.13.0.88-%lld", (long long)size.st_size);
    setenv("LD_LIBRARY_PATH", root, 1);
    assert_found(fake_directory_path(root, "libnvrtc.so.13"), build);
}

static void a_find_is_kept_and_a_miss_is_not(void **state)
{
    (void)state;
    fake_library.nvrtc = 0;
    setenv("LD_LIBRARY_PATH", root, 1);
    assert_int_equal(FLP_NO_NVRTC, flp_nvrtc_find(&facts));
    put("libnvrtc.so.13", "0d");
    assert_succeeds(flp_nvrtc_find(&facts));
    assert_int_equal(0, unlink(fake_directory_path(root, "libnvrtc.so.13")));
    assert_succeeds(flp_nvrtc_find(&facts));
    assert_string_equal("0d", facts.build);
}

static void with_no_file_the_loader_is_asked(void **state)
{
    const char *elsewhere;

    (void)state;
    assert_found("libnvrtc.so.13", "libnvrtc.so.13-0");
    assert_string_equal("libnvrtc.so.13\n", fake_library.opened);
    elsewhere = put("elsewhere/libnvrtc.so.13", "0e0f");
    fake_library.origin = elsewhere;
    assert_found(elsewhere, "0e0f");
    fake_library.origin = put("elsewhere/libnvrtc.so.11.2", "0a");
    flp_library_loader_set(flp_library_loader_get());
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_find(&facts), "/elsewhere/libnvrtc.so.11.2 is NVRTC 11;");
}

static void without_nvrtc_the_places_are_listed(void **state)
{
    (void)state;
    fake_library.nvrtc = 0;
    setenv("CUDA_HOME", "/opt/cuda", 1);
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_find(&facts), "/opt/cuda/lib64");
    assert_contains(flp_error_message(), "/usr/local/cuda/lib64");
    assert_contains(flp_error_message(), "/usr/local/lib/python3*/*-packages/nvidia/cu1[0-9]/lib");
    assert_contains(flp_error_message(), "/usr/local/lib/python3*/*-packages/nvidia/cuda_nvrtc/lib");
    assert_contains(flp_error_message(), "no such library here");
}

static void the_builtins_beside_the_library_are_loaded_with_it(void **state)
{
    const char *path = put("libnvrtc.so.13", "0a"), *builtins = put("libnvrtc-builtins.so.13.2", "0b");
    int major, minor;
    char wanted[512];

    (void)state;
    fake_nvrtc.minor = 2;
    setenv("LD_LIBRARY_PATH", root, 1);
    assert_succeeds(flp_nvrtc_version(&major, &minor));
    assert_int_equal(13, major);
    assert_int_equal(2, minor);
    snprintf(wanted, sizeof(wanted), "%s\n%s\n", path, builtins);
    assert_string_equal(wanted, fake_library.opened);
}

static void a_library_without_a_function_is_too_old(void **state)
{
    int major, minor;

    (void)state;
    fake_library.missing = "nvrtcGetCUBIN";
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_version(&major, &minor), "nvrtcGetCUBIN");
    fake_library.missing = NULL;
    fake_nvrtc.major = 11;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_version(&major, &minor), "libnvrtc.so.13 is NVRTC 11.0: install NVRTC 12.0 or newer");
    assert_contains(flp_error_message(), "FUSEDLOGP_NVRTC_PATH");
    fake_nvrtc.major = 12;
    assert_succeeds(flp_nvrtc_version(&major, &minor));
}

static void a_library_that_does_not_load_is_named(void **state)
{
    int major, minor;

    (void)state;
    put("libnvrtc.so.13", "0a");
    setenv("LD_LIBRARY_PATH", root, 1);
    fake_library.nvrtc = 0;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_version(&major, &minor), "/libnvrtc.so.13 cannot be loaded");
}

static void compiling_returns_cubin_ptx_and_log(void **state)
{
    const char *const options[] = { "-std=c++17", "--ptxas-options=-v", NULL };
    flp_nvrtc_output output;

    (void)state;
    assert_succeeds(flp_nvrtc_compile("void f();", "f.cu", "sm_90a", options, &output));
    assert_string_equal("FAKE-CUBIN sm_90a\nvoid f();", output.cubin);
    assert_int_equal(strlen(output.cubin) + 1, output.cubin_bytes);
    assert_contains(output.ptx, "PTX");
    assert_contains(output.log, "32 registers");
    assert_string_equal("-arch=sm_90a\n-std=c++17\n--ptxas-options=-v\n-minimal\n", fake_nvrtc.options);
    flp_nvrtc_output_free(&output);
    assert_null(output.cubin);
    assert_int_equal(0, fake_nvrtc.live_programs);
}

static void an_older_nvrtc_is_not_asked_for_what_it_does_not_know(void **state)
{
    const char *const options[] = { "-std=c++17", NULL };
    flp_nvrtc_output output;

    (void)state;
    fake_nvrtc.major = 12;
    fake_nvrtc.minor = 3;
    assert_succeeds(flp_nvrtc_compile("void f();", "f.cu", "sm_90a", options, &output));
    assert_string_equal("-arch=sm_90a\n-std=c++17\n", fake_nvrtc.options);
    flp_nvrtc_output_free(&output);
}

static void an_architecture_newer_than_nvrtc_is_told(void **state)
{
    const char *const options[] = { NULL };
    flp_nvrtc_output output;

    (void)state;
    fake_nvrtc.newest_arch = 90;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_compile("void f();", "f.cu", "sm_120", options, &output), "does not know sm_120, its newest architecture is sm_90");
    assert_contains(flp_error_message(), "NVRTC 13.0 (libnvrtc.so.13) does not know");
    assert_contains(flp_error_message(), "install a newer NVRTC");
    assert_contains(flp_error_message(), "FUSEDLOGP_NVRTC_PATH");
    assert_null(output.cubin);
    assert_int_equal(0, fake_nvrtc.compiles);
    assert_succeeds(flp_nvrtc_compile("void f();", "f.cu", "sm_90a", options, &output));
    flp_nvrtc_output_free(&output);
}

static void a_rejected_source_is_told_with_options_and_log(void **state)
{
    const char *const options[] = { "-std=c++17", NULL };
    flp_nvrtc_output output;

    (void)state;
    assert_fails(FLP_COMPILE_FAILED, flp_nvrtc_compile("#error", "f.cu", "sm_80", options, &output), "f.cu");
    assert_contains(flp_error_message(), "-arch=sm_80 -std=c++17");
    assert_contains(flp_error_message(), "line 1: error: #error directive");
    assert_contains(flp_error_message(), "NVRTC_ERROR_COMPILATION");
    assert_contains(output.log, "line 2: more");
    assert_null(output.cubin);
    flp_nvrtc_output_free(&output);
    assert_int_equal(0, fake_nvrtc.live_programs);
}

static void want_of_memory_is_not_a_rejection(void **state)
{
    flp_nvrtc_output output;

    (void)state;
    fake_nvrtc.result = 1;
    assert_int_equal(FLP_OUT_OF_MEMORY, flp_nvrtc_compile("f", "f.cu", "sm_80", no_options, &output));
    flp_nvrtc_output_free(&output);
    fake_nvrtc.create_result = 1;
    assert_fails(FLP_OUT_OF_MEMORY, flp_nvrtc_compile("f", "f.cu", "sm_80", no_options, &output), "nvrtcCreateProgram");
    flp_nvrtc_output_free(&output);
}

/* Its libnvrtc-builtins cannot be loaded, so that it compiles nothing. */
static void an_nvrtc_without_its_builtins_is_none(void **state)
{
    flp_nvrtc_output output;

    (void)state;
    fake_nvrtc.result = 7;
    assert_fails(FLP_NO_NVRTC, flp_nvrtc_compile("f", "f.cu", "sm_80", no_options, &output), "NVRTC 13.0: NVRTC_ERROR");
    flp_nvrtc_output_free(&output);
}

static void *compile_one(void *argument)
{
    flp_nvrtc_output output;
    flp_status status = flp_nvrtc_compile("f", "f.cu", "sm_80", no_options, &output);

    (void)argument;
    flp_nvrtc_output_free(&output);
    return (void *)(intptr_t)status;
}

static void threads_compile_side_by_side(void **state)
{
    pthread_t threads[3];

    (void)state;
    fake_nvrtc.milliseconds = 100;
    for (int i = 0; i < 3; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, compile_one, NULL));
    for (int i = 0; i < 3; i++) {
        void *status;
        pthread_join(threads[i], &status);
        assert_int_equal(FLP_OK, (intptr_t)status);
    }
    assert_int_equal(3, fake_nvrtc.most_at_once);
}

static void the_running_program_has_a_kind_and_a_text_file_none(void **state)
{
    char hex[96];

    (void)state;
    assert_int_not_equal(FLP_ELF_FOREIGN, flp_elf_build_id_read("/proc/self/exe", hex, sizeof(hex)));
    assert_int_equal(FLP_ELF_FOREIGN, flp_elf_build_id_read("/proc/self/status", hex, sizeof(hex)));
    assert_string_equal("", hex);
    assert_int_equal(FLP_ELF_FOREIGN, flp_elf_build_id_read("/no/such/file", hex, sizeof(hex)));
}

/* Every header field set to garbage in turn: never a crash, and an id only from an intact note. */
static void a_damaged_library_file_is_read_safely(void **state)
{
    const char *path = put("libnvrtc.so.13", "0102030405060708");
    size_t count;
    char *bytes = fake_directory_read(path, &count), hex[96];

    (void)state;
    for (size_t i = 0; i < count; i++) {
        const char kept = bytes[i];

        bytes[i] = (char)0xff;
        fake_directory_write(path, bytes, count);
        if (flp_elf_build_id_read(path, hex, sizeof(hex)) == FLP_ELF_BUILD_ID)
            assert_true(strlen(hex) >= 2);
        bytes[i] = kept;
        fake_directory_write(path, bytes, i);
        if (flp_elf_build_id_read(path, hex, sizeof(hex)) == FLP_ELF_BUILD_ID)
            assert_string_equal("0102030405060708", hex);
    }
    free(bytes);
}

/* ---- the installed NVRTC ---- */

static int use_real(void **state)
{
    (void)state;
    flp_library_loader_set(NULL);
    return 0;
}

static int have_real(void)
{
    return flp_nvrtc_find(&facts) == FLP_OK;
}

static void a_real_kernel_compiles_to_an_elf_with_a_report(void **state)
{
    const char *const options[] = { "-std=c++17", "-default-device", "--ptxas-options=-v", "-modify-stack-limit=false", NULL };
    const char source[] = "extern \"C\" __global__ void f(float *x) { x[threadIdx.x] *= 2; }";
    flp_nvrtc_output output;

    (void)state;
    if (!have_real())
        skip();
    assert_succeeds(flp_nvrtc_compile(source, "f.cu", "sm_90a", options, &output));
    assert_memory_equal("\177ELF", output.cubin, 4);
    assert_contains(output.ptx, ".target sm_90a");
    assert_contains(output.log, "registers");
    assert_contains(output.log, "spill stores");
    flp_nvrtc_output_free(&output);
    assert_fails(FLP_COMPILE_FAILED, flp_nvrtc_compile("int x = y;", "g.cu", "sm_80", options, &output), "\"y\" is undefined");
    flp_nvrtc_output_free(&output);
}

static void the_real_build_is_an_id(void **state)
{
    (void)state;
    if (!have_real())
        skip();
    assert_true(strlen(facts.build) >= 8);
    assert_int_equal(strlen(facts.build), strspn(facts.build, "0123456789abcdef"));
}

int main(void)
{
#define FAKED(name) cmocka_unit_test_setup_teardown(name, install, restore)
    const struct CMUnitTest tests[] = {
        FAKED(a_file_on_the_loader_path_is_found_without_loading_it),
        FAKED(the_newest_version_in_a_directory_is_taken),
        FAKED(each_usual_place_is_searched),
        FAKED(the_loader_path_goes_before_cuda_home),
        FAKED(a_file_that_is_no_library_is_passed_over),
        FAKED(a_file_whose_name_says_an_old_version_is_passed_over),
        FAKED(a_library_without_a_build_id_is_known_by_its_versioned_name_and_size),
        FAKED(a_find_is_kept_and_a_miss_is_not),
        FAKED(with_no_file_the_loader_is_asked),
        FAKED(without_nvrtc_the_places_are_listed),
        FAKED(the_builtins_beside_the_library_are_loaded_with_it),
        FAKED(a_library_without_a_function_is_too_old),
        FAKED(a_library_that_does_not_load_is_named),
        FAKED(compiling_returns_cubin_ptx_and_log),
        FAKED(an_older_nvrtc_is_not_asked_for_what_it_does_not_know),
        FAKED(an_architecture_newer_than_nvrtc_is_told),
        FAKED(a_rejected_source_is_told_with_options_and_log),
        FAKED(an_nvrtc_without_its_builtins_is_none),
        FAKED(want_of_memory_is_not_a_rejection),
        FAKED(threads_compile_side_by_side),
        FAKED(the_running_program_has_a_kind_and_a_text_file_none),
        FAKED(a_damaged_library_file_is_read_safely),
        cmocka_unit_test_setup(a_real_kernel_compiles_to_an_elf_with_a_report, use_real),
        cmocka_unit_test_setup(the_real_build_is_an_id, use_real),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
