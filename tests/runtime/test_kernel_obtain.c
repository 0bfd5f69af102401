/* A cubin from the cache or NVRTC, what each failure says, and prebuilding without a device. */
#include "fake_store.h"

#include <stdio.h>
#include <stdlib.h>

static void without_nvrtc_a_cached_kernel_of_any_build_is_used(void **state)
{
    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_open(fake_store.root, 0);
    fake_library_install();
    fake_library.nvrtc = 0;
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(0, 1, 0, 1);
    assert_fails(FLP_NO_NVRTC, fake_store_get(2, fake_store_pair), "fake:tile:sm_90a");
    assert_contains(flp_error_message(), "libnvrtc.so.13");
    fake_store_assert_counters(0, 1, 2, 1);
    fake_library.nvrtc = 1;
    assert_succeeds(fake_store_get(2, fake_store_pair));
}

/* The cache was filled by another build of NVRTC than the one that is installed. */
static void an_nvrtc_that_cannot_be_used_does_not_hide_the_cache(void **state)
{
    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    for (int i = 0; i < 3; i++) {
        fake_store_open(fake_store.root, 0);
        fake_library_install();
        fake_library.root = fake_store.root;
        fake_nvrtc_write_library(fake_directory_path(fake_store.root, "libnvrtc.so.13"), "0102");
        setenv("FUSEDLOGP_NVRTC_PATH", fake_store.root, 1);
        fake_library.nvrtc = i != 0;
        fake_nvrtc.major = i == 1 ? 11 : 13;
        fake_nvrtc.newest_arch = i == 2 ? 80 : 0;
        assert_succeeds(fake_store_get(1, fake_store_small));
        fake_store_assert_counters(0, 1, 0, 1);
        assert_fails(FLP_NO_NVRTC, fake_store_get(1, fake_store_pair),
                     i == 0   ? "kernel fake:tile:sm_90a: "
                     : i == 1 ? "12.0 or newer"
                              : "does not know sm_90a");
        assert_contains(flp_error_message(), "kernel fake:tile:sm_90a: ");
        fake_store_assert_counters(0, 1, 1, 1);
    }
    unsetenv("FUSEDLOGP_NVRTC_PATH");
    assert_int_equal(0, fake_nvrtc.compiles);
}

static void a_context_that_may_not_compile_says_so(void **state)
{
    (void)state;
    fake_store_open(fake_store.root, FLP_CONTEXT_NO_COMPILE);
    assert_fails(FLP_NO_NVRTC, fake_store_get(1, fake_store_small), "FLP_CONTEXT_NO_COMPILE");
    assert_contains(flp_error_message(), "fake:small:sm_90a");
    fake_store_assert_counters(0, 0, 1, 0);
    assert_int_equal(0, fake_nvrtc.compiles);
    assert_string_equal("libcuda.so.1\n", fake_library.opened);
    fake_store_open(fake_store.root, 0);
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_open(fake_store.root, FLP_CONTEXT_NO_COMPILE);
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(0, 1, 0, 1);
}

static void a_source_that_does_not_compile_is_kept_and_nothing_published(void **state)
{
    char *source;
    size_t count;

    (void)state;
    assert_fails(FLP_COMPILE_FAILED, fake_store_get(1, fake_store_broken), "fake:broken:sm_90a");
    assert_contains(flp_error_message(), "-arch=sm_90a -std=c++17");
    assert_contains(flp_error_message(), "line 1: error: #error directive");
    assert_contains(flp_error_message(), fake_directory_path(fake_store.root, "failed/fake:broken:sm_90a.cu"));
    source = fake_directory_read(fake_directory_path(fake_store.root, "failed/fake:broken:sm_90a.cu"), &count);
    assert_contains(source, "#error");
    free(source);
    assert_int_equal(0, fake_directory_count(fake_store.root, ".flpk"));
    assert_int_equal(0, fake_directory_count(fake_store.root, ".lock"));
    fake_store_assert_counters(0, 0, 1, 0);
}

static void a_rejected_source_is_compiled_once_only(void **state)
{
    char first[4096];

    (void)state;
    assert_int_equal(FLP_COMPILE_FAILED, fake_store_get(1, fake_store_broken));
    snprintf(first, sizeof(first), "%s", flp_error_message());
    assert_int_equal(FLP_COMPILE_FAILED, fake_store_get(1, fake_store_broken));
    assert_string_equal(first, flp_error_message());
    assert_int_equal(1, fake_nvrtc.compiles);
}

static void a_source_that_cannot_be_kept_is_said(void **state)
{
    (void)state;
    fake_store_open("", 0);
    assert_fails(FLP_COMPILE_FAILED, fake_store_get(1, fake_store_broken), "kept in nowhere");
    assert_contains(flp_error_message(), "#error directive");
}

static void want_of_memory_may_be_tried_again(void **state)
{
    (void)state;
    fake_nvrtc.result = 1;
    assert_int_equal(FLP_OUT_OF_MEMORY, fake_store_get(1, fake_store_small));
    fake_nvrtc.result = 0;
    assert_succeeds(fake_store_get(1, fake_store_small));
}

static void the_generators_refusal_is_passed_on(void **state)
{
    static const fake_variant illegal[] = { "fake:illegal:sm_90a" }, nonsense[] = { "nonsense" };
    fake_variant endless[1];

    (void)state;
    assert_fails(FLP_NO_VARIANT, fake_store_get(1, illegal), "it is illegal");
    assert_fails(FLP_BAD_ARGUMENT, fake_store_get(1, nonsense), "got \"nonsense\"");
    memset(endless, 'x', sizeof(endless));
    assert_fails(FLP_BAD_ARGUMENT, fake_store_get(1, (const fake_variant *)endless), "wanted fewer than 192");
    assert_fails(FLP_BAD_ARGUMENT, fake_store_get(-1, fake_store_small), "count: got -1");
}

static void one_of_two_that_fails_fails_both_and_keeps_the_other(void **state)
{
    static const fake_variant mixed[] = { "fake:small:sm_90a", "fake:broken:sm_90a" };

    (void)state;
    assert_fails(FLP_COMPILE_FAILED, fake_store_get(2, mixed), "fake:broken");
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(1, 0, 2, 1);
}

static void an_unusable_cache_is_one_warning_and_the_kernel_still_comes(void **state)
{
    (void)state;
    fake_directory_write(fake_directory_path(fake_store.root, "file"), "", 0);
    fake_store_open(fake_directory_path(fake_store.root, "file"), 0);
    assert_succeeds(fake_store_get(2, fake_store_pair));
    assert_int_equal(1, fake_store.warnings);
    fake_store_assert_counters(2, 0, 2, 2);
}

static void a_damaged_cached_kernel_is_compiled_again(void **state)
{
    flp_cubin_cache_facts facts;
    char command[256];

    (void)state;
    assert_succeeds(fake_store_get(1, fake_store_small));
    snprintf(command, sizeof(command), "for f in %s/*/*.flpk; do printf x >> $f; done", fake_store.root);
    assert_int_equal(0, system(command));
    fake_store_open(fake_store.root, 0);
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(1, 0, 1, 1);
    flp_cubin_cache_describe(flp_kernel_store_cache(fake_store.store), &facts);
    assert_int_equal(1, facts.files);
    fake_store_open(fake_store.root, 0);
    assert_succeeds(fake_store_get(1, fake_store_small));
    fake_store_assert_counters(0, 1, 0, 1);
}

static void prebuilding_needs_no_driver(void **state)
{
    int compiled;
    char *log;

    (void)state;
    fake_library.driver = 0;
    assert_succeeds(flp_kernel_store_prebuild(fake_store.store, fake_store_small[0], &compiled, &log));
    assert_int_equal(1, compiled);
    assert_contains(log, "32 registers");
    free(log);
    assert_succeeds(flp_kernel_store_prebuild(fake_store.store, fake_store_small[0], &compiled, &log));
    assert_int_equal(0, compiled);
    assert_null(log);
    assert_string_equal("libnvrtc.so.13\nlibnvrtc.so.13\n", fake_library.opened);
}

static void what_is_on_disk_is_found_and_nothing_compiled(void **state)
{
    int there;

    (void)state;
    assert_succeeds(flp_kernel_store_find(fake_store.store, fake_store_small[0], &there));
    assert_int_equal(0, there);
    assert_succeeds(fake_store_get(1, fake_store_small));
    assert_succeeds(flp_kernel_store_find(fake_store.store, fake_store_small[0], &there));
    assert_int_equal(1, there);
    assert_int_equal(1, fake_nvrtc.compiles);
    fake_store_open(fake_store.root, FLP_CONTEXT_NO_COMPILE);
    assert_succeeds(flp_kernel_store_find(fake_store.store, fake_store_small[0], &there));
    assert_int_equal(1, there);
    assert_succeeds(flp_kernel_store_find(fake_store.store, fake_store_pair[0], &there));
    assert_int_equal(0, there);
    assert_fails(FLP_BAD_ARGUMENT, flp_kernel_store_find(fake_store.store, "nonsense", &there), "got \"nonsense\"");
}

static void prebuilding_into_no_cache_fails(void **state)
{
    int compiled;

    (void)state;
    fake_directory_write(fake_directory_path(fake_store.root, "file"), "", 0);
    fake_store_open(fake_directory_path(fake_store.root, "file"), 0);
    assert_fails(FLP_IO_FAILED, flp_kernel_store_prebuild(fake_store.store, fake_store_small[0], &compiled, NULL), "Not a directory");
    assert_contains(flp_error_message(), "fake:small:sm_90a");
    assert_fails(FLP_COMPILE_FAILED, flp_kernel_store_prebuild(fake_store.store, fake_store_broken[0], &compiled, NULL), "fake:broken");
    assert_int_equal(0, compiled);
}

static void portable_ptx_is_kept_and_other_is_not(void **state)
{
    flp_emitted emitted;
    flp_cubin cubin;
    char *log;

    (void)state;
    assert_succeeds(flp_kernel_store_compile(fake_store.store, "fake:small:sm_80", &emitted, &cubin, &log));
    assert_non_null(cubin.ptx);
    assert_string_equal("fake:small:sm_80", cubin.variant);
    assert_string_equal(emitted.manifest_text, cubin.manifest_text);
    assert_contains(emitted.source, "kernel_small");
    assert_contains(log, "32 registers");
    flp_emitted_free(&emitted);
    flp_cubin_free(&cubin);
    free(log);
    assert_succeeds(flp_kernel_store_compile(fake_store.store, "fake:small:sm_90a", &emitted, &cubin, NULL));
    assert_null(cubin.ptx);
    flp_emitted_free(&emitted);
    flp_cubin_free(&cubin);
}

static void compiling_leaves_the_cache_alone(void **state)
{
    flp_emitted emitted;
    flp_cubin cubin;
    char *log;

    (void)state;
    assert_succeeds(flp_kernel_store_compile(fake_store.store, fake_store_small[0], &emitted, &cubin, NULL));
    flp_emitted_free(&emitted);
    flp_cubin_free(&cubin);
    assert_fails(FLP_COMPILE_FAILED, flp_kernel_store_compile(fake_store.store, fake_store_broken[0], &emitted, &cubin, &log), "kernel fake:broken:sm_90a");
    assert_null(emitted.source);
    assert_null(cubin.cubin);
    assert_null(log);
    assert_int_equal(0, fake_directory_count(fake_store.root, ""));
    fake_store_assert_counters(1, 0, 0, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        STORE_TEST(without_nvrtc_a_cached_kernel_of_any_build_is_used),
        STORE_TEST(an_nvrtc_that_cannot_be_used_does_not_hide_the_cache),
        STORE_TEST(a_context_that_may_not_compile_says_so),
        STORE_TEST(a_source_that_does_not_compile_is_kept_and_nothing_published),
        STORE_TEST(a_rejected_source_is_compiled_once_only),
        STORE_TEST(a_source_that_cannot_be_kept_is_said),
        STORE_TEST(want_of_memory_may_be_tried_again),
        STORE_TEST(the_generators_refusal_is_passed_on),
        STORE_TEST(one_of_two_that_fails_fails_both_and_keeps_the_other),
        STORE_TEST(an_unusable_cache_is_one_warning_and_the_kernel_still_comes),
        STORE_TEST(a_damaged_cached_kernel_is_compiled_again),
        STORE_TEST(prebuilding_needs_no_driver),
        STORE_TEST(what_is_on_disk_is_found_and_nothing_compiled),
        STORE_TEST(prebuilding_into_no_cache_fails),
        STORE_TEST(portable_ptx_is_kept_and_other_is_not),
        STORE_TEST(compiling_leaves_the_cache_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
