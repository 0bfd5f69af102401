/* The kernel cache on disk: what is found, what is a miss, and that damage heals. */
#include "fake_cache.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

static void what_was_stored_is_loaded(void **state)
{
    flp_cubin cubin, with_ptx = fake_cache_kernel;
    char ptx[] = "// PTX";
    int found;

    (void)state;
    with_ptx.ptx = ptx;
    assert_false(fake_cache_has(&fake_cache_key));
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &fake_cache_key, &with_ptx));
    fake_cache_open(fake_cache.user, "", 0);
    assert_succeeds(flp_cubin_cache_load(fake_cache.cache, &fake_cache_key, &cubin, &found));
    assert_true(found);
    assert_string_equal("variant:one", cubin.variant);
    assert_string_equal("variant one\n", cubin.manifest_text);
    assert_int_equal(11, cubin.cubin_bytes);
    assert_memory_equal(fake_cache_kernel.cubin, cubin.cubin, 11);
    assert_string_equal("// PTX", cubin.ptx);
    flp_cubin_free(&cubin);
    assert_int_equal(0, fake_cache.warnings);
}

static void absent_ptx_stays_absent(void **state)
{
    flp_cubin cubin;
    int found;

    (void)state;
    assert_succeeds(fake_cache_store());
    assert_succeeds(flp_cubin_cache_load(fake_cache.cache, &fake_cache_key, &cubin, &found));
    assert_true(found);
    assert_null(cubin.ptx);
    flp_cubin_free(&cubin);
}

static void every_part_of_the_key_counts(void **state)
{
    const flp_cubin_key others[] = {
        { "source texT", 11, NULL, "-std=c++17\n", "sm_90a", "aa11" }, { "source text", 10, NULL, "-std=c++17\n", "sm_90a", "aa11" },
        { "source text", 11, NULL, "-std=c++14\n", "sm_90a", "aa11" }, { "source text", 11, NULL, "", "sm_90a", "aa11" },
        { "source text", 11, NULL, "-std=c++17\n", "sm_90", "aa11" },  { "source text", 11, NULL, "-std=c++17\n", "sm_90a", "aa12" },
        { "source text", 11, NULL, "-std=c++17\nsm_90a", "", "aa11" }, { "source text", 11, "0123", "-std=c++17\n", "sm_90a", "aa11" },
    };

    (void)state;
    assert_succeeds(fake_cache_store());
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(fake_cache_has(&others[i]));
    assert_true(fake_cache_has(&fake_cache_key));
}

static void the_name_does_not_depend_on_place_or_time(void **state)
{
    char first[256];

    (void)state;
    assert_succeeds(fake_cache_store());
    snprintf(first, sizeof(first), "%s", fake_cache_path() + strlen(fake_cache.user));
    assert_int_equal(strlen("/ab/") + 64 + strlen(".flpk"), strlen(first));
    assert_int_equal(0, strncmp(first + 1, first + 4, 2));
    snprintf(fake_cache.user, sizeof(fake_cache.user), "%s/elsewhere", fake_cache.root);
    fake_cache_open(fake_cache.user, "", 0);
    assert_succeeds(fake_cache_store());
    assert_string_equal(first, fake_cache_path() + strlen(fake_cache.user));
}

static void an_evicted_kernel_is_gone(void **state)
{
    (void)state;
    flp_cubin_cache_evict(fake_cache.cache, &fake_cache_key);
    assert_succeeds(fake_cache_store());
    flp_cubin_cache_evict(fake_cache.cache, &fake_cache_key);
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, fake_directory_count(fake_cache.user, ".flpk"));
}

static void a_system_directory_is_read_after_the_users(void **state)
{
    char systems[512];
    flp_cubin other = fake_cache_kernel, cubin;
    int found;

    (void)state;
    assert_succeeds(fake_cache_store());
    snprintf(systems, sizeof(systems), "/no/such/directory::%s", fake_cache.user);
    fake_cache_open(fake_directory_path(fake_cache.root, "mine"), systems, 0);
    assert_true(fake_cache_has(&fake_cache_key));
    other.variant = "mine";
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &fake_cache_key, &other));
    assert_succeeds(flp_cubin_cache_load(fake_cache.cache, &fake_cache_key, &cubin, &found));
    assert_string_equal("mine", cubin.variant);
    flp_cubin_free(&cubin);
    fake_cache_open("", fake_cache.user, 0);
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, fake_cache.warnings);
}

static void without_nvrtc_every_build_that_published_is_tried(void **state)
{
    flp_cubin_key stored = fake_cache_key, unknown = fake_cache_key;
    size_t count;
    char *builds;

    (void)state;
    unknown.nvrtc_build = NULL;
    stored.source = "other text ";
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &stored, &fake_cache_kernel));
    assert_false(fake_cache_has(&unknown));
    stored = fake_cache_key;
    stored.nvrtc_build = "bb22";
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &stored, &fake_cache_kernel));
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &stored, &fake_cache_kernel));
    assert_true(fake_cache_has(&unknown));
    builds = fake_directory_read(fake_directory_path(fake_cache.user, "builds"), &count);
    assert_string_equal("\naa11\n\nbb22\n", builds);
    free(builds);
    fake_cache_open("", fake_cache.user, 0);
    assert_true(fake_cache_has(&unknown));
}

static void a_torn_line_of_builds_spoils_no_other(void **state)
{
    flp_cubin_key unknown = fake_cache_key;

    (void)state;
    unknown.nvrtc_build = NULL;
    assert_succeeds(fake_cache_store());
    fake_directory_write(fake_directory_path(fake_cache.user, "builds"), "with space\n\xff\naa", 15);
    assert_false(fake_cache_has(&unknown));
    assert_succeeds(fake_cache_store());
    assert_true(fake_cache_has(&unknown));
}

static void every_flipped_byte_is_a_miss_and_storing_heals(void **state)
{
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(fake_cache_store());
    bytes = fake_directory_read(fake_cache_path(), &count);
    for (size_t i = 0; i < count; i++) {
        bytes[i] ^= 1 << (i % 8);
        fake_directory_write(fake_cache_path(), bytes, count);
        assert_false(fake_cache_has(&fake_cache_key));
        bytes[i] ^= 1 << (i % 8);
    }
    assert_succeeds(fake_cache_store());
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, fake_cache.warnings);
    free(bytes);
}

static void a_file_cut_or_extended_anywhere_is_a_miss(void **state)
{
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(fake_cache_store());
    bytes = fake_directory_read(fake_cache_path(), &count);
    for (size_t i = 0; i < count; i++) {
        fake_directory_write(fake_cache_path(), bytes, i);
        assert_false(fake_cache_has(&fake_cache_key));
    }
    fake_directory_write(fake_cache_path(), bytes, count + 1);
    assert_false(fake_cache_has(&fake_cache_key));
    free(bytes);
}

static void a_whole_file_under_another_keys_name_is_a_miss(void **state)
{
    flp_cubin_key other = fake_cache_key;
    char first[256], second[256];

    (void)state;
    other.arch = "sm_80";
    assert_succeeds(fake_cache_store());
    snprintf(first, sizeof(first), "%s", fake_cache_path());
    assert_int_equal(0, rename(first, fake_directory_path(fake_cache.root, "kept")));
    assert_succeeds(flp_cubin_cache_store(fake_cache.cache, &other, &fake_cache_kernel));
    snprintf(second, sizeof(second), "%s", fake_cache_path());
    assert_int_equal(0, rename(fake_directory_path(fake_cache.root, "kept"), second));
    assert_false(fake_cache_has(&other));
}

static void a_symbolic_link_or_a_fifo_is_a_miss(void **state)
{
    char path[256];

    (void)state;
    assert_succeeds(fake_cache_store());
    snprintf(path, sizeof(path), "%s", fake_cache_path());
    assert_int_equal(0, rename(path, fake_directory_path(fake_cache.root, "kept")));
    assert_int_equal(0, symlink(fake_directory_path(fake_cache.root, "kept"), path));
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, mkfifo(path, 0600));
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, rename(fake_directory_path(fake_cache.root, "kept"), path));
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, chmod(path, 0666));
    assert_false(fake_cache_has(&fake_cache_key));
}

static void a_linked_subdirectory_is_a_miss(void **state)
{
    char path[256];

    (void)state;
    assert_succeeds(fake_cache_store());
    snprintf(path, sizeof(path), "%.*s", (int)(strlen(fake_cache.user) + 3), fake_cache_path());
    assert_int_equal(0, rename(path, fake_directory_path(fake_cache.root, "kept")));
    assert_int_equal(0, symlink(fake_directory_path(fake_cache.root, "kept"), path));
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(FLP_IO_FAILED, fake_cache_store());
}

/* Whatever the moment, the next process finds the whole kernel or none, and can store. */
static void a_store_killed_at_any_moment_leaves_nothing_broken(void **state)
{
    (void)state;
    for (int i = 0; i < 50; i++) {
        pid_t child = fork();
        int result;

        if (child == 0)
            for (;;)
                fake_cache_store();
        usleep(200 + 97 * (useconds_t)i);
        kill(child, SIGKILL);
        assert_int_equal(child, waitpid(child, &result, 0));
        if (!fake_cache_has(&fake_cache_key))
            assert_int_equal(0, fake_directory_count(fake_cache.user, ".flpk") - fake_directory_count(fake_cache.user, ".writing-"));
    }
    assert_succeeds(fake_cache_store());
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, fake_cache.warnings);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(what_was_stored_is_loaded),
        CACHE_TEST(absent_ptx_stays_absent),
        CACHE_TEST(every_part_of_the_key_counts),
        CACHE_TEST(the_name_does_not_depend_on_place_or_time),
        CACHE_TEST(an_evicted_kernel_is_gone),
        CACHE_TEST(a_system_directory_is_read_after_the_users),
        CACHE_TEST(without_nvrtc_every_build_that_published_is_tried),
        CACHE_TEST(a_torn_line_of_builds_spoils_no_other),
        CACHE_TEST(every_flipped_byte_is_a_miss_and_storing_heals),
        CACHE_TEST(a_file_cut_or_extended_anywhere_is_a_miss),
        CACHE_TEST(a_whole_file_under_another_keys_name_is_a_miss),
        CACHE_TEST(a_symbolic_link_or_a_fifo_is_a_miss),
        CACHE_TEST(a_linked_subdirectory_is_a_miss),
        CACHE_TEST(a_store_killed_at_any_moment_leaves_nothing_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
