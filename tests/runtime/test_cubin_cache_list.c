/* The size and age of what a cache directory holds, and what people ask of it. */
#include "fake_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void the_least_recently_used_go_first(void **state)
{
    int64_t bytes;

    (void)state;
    fake_cache_store_numbered(0, 50000);
    fake_cache_numbered_path(0, &bytes);
    fake_cache_open(fake_cache.user, "", 3 * bytes);
    fake_cache_store_numbered(1, 90000);
    fake_cache_store_numbered(2, 70000);
    assert_true(fake_cache_numbered_path(0, NULL)[0] && fake_cache_numbered_path(1, NULL)[0] && fake_cache_numbered_path(2, NULL)[0]);
    fake_cache_store_numbered(3, 0);
    assert_true(fake_cache_numbered_path(0, NULL)[0] && !fake_cache_numbered_path(1, NULL)[0] && fake_cache_numbered_path(2, NULL)[0] &&
                fake_cache_numbered_path(3, NULL)[0]);
    fake_cache_store_numbered(4, 0);
    assert_true(fake_cache_numbered_path(0, NULL)[0] && !fake_cache_numbered_path(2, NULL)[0] && fake_cache_numbered_path(3, NULL)[0] &&
                fake_cache_numbered_path(4, NULL)[0]);
}

/* What was used by a clock that was ahead does not outlive what is new, and is put right by a hit. */
static void times_in_the_future_are_the_oldest(void **state)
{
    char source[16];
    flp_cubin_key numbered = fake_cache_numbered_key(source, 1);
    struct stat facts;
    int64_t bytes;

    (void)state;
    fake_cache_store_numbered(0, -100000);
    fake_cache_store_numbered(1, -90000);
    fake_cache_numbered_path(0, &bytes);
    assert_true(fake_cache_has(&numbered));
    assert_int_equal(0, stat(fake_cache_numbered_path(1, NULL), &facts));
    assert_true(labs((long)(time(NULL) - facts.st_mtim.tv_sec)) < 60);
    fake_cache_open(fake_cache.user, "", 2 * bytes);
    fake_cache_store_numbered(2, 0);
    assert_true(!fake_cache_numbered_path(0, NULL)[0] && fake_cache_numbered_path(1, NULL)[0] && fake_cache_numbered_path(2, NULL)[0]);
}

static void files_of_one_age_go_in_name_order(void **state)
{
    char first[256];
    int64_t bytes;

    (void)state;
    for (int i = 0; i < 4; i++)
        fake_cache_store_numbered(i, 50000);
    fake_cache_numbered_path(0, &bytes);
    snprintf(first, sizeof(first), "%s", fake_cache_path());
    fake_cache_open(fake_cache.user, "", 4 * bytes);
    fake_cache_store_numbered(4, 0);
    assert_int_equal(4, fake_directory_count(fake_cache.user, ".flpk"));
    assert_int_equal(-1, access(first, F_OK));
}

static void a_hit_makes_an_old_file_young(void **state)
{
    char source[16];
    flp_cubin_key numbered = fake_cache_numbered_key(source, 1);
    struct stat facts;

    (void)state;
    fake_cache_store_numbered(1, 7200);
    assert_true(fake_cache_has(&numbered));
    assert_int_equal(0, stat(fake_cache_numbered_path(1, NULL), &facts));
    assert_true(time(NULL) - facts.st_mtim.tv_sec < 60);
    fake_cache_store_numbered(1, 1800);
    assert_true(fake_cache_has(&numbered));
    assert_int_equal(0, stat(fake_cache_numbered_path(1, NULL), &facts));
    assert_true(time(NULL) - facts.st_mtim.tv_sec >= 1800);
}

static void what_killed_processes_left_is_removed_when_old(void **state)
{
    struct timespec old[2] = { { time(NULL) - 7200, 0 }, { time(NULL) - 7200, 0 } };
    char directory[256], names[4][300];

    (void)state;
    assert_succeeds(fake_cache_store());
    snprintf(directory, sizeof(directory), "%.*s", (int)(strlen(fake_cache.user) + 3), fake_cache_path());
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof(names[i]), "%s/x%d%s", directory, i, i < 2 ? ".flpk.writing-0123456789abcdef" : ".lock");
        fake_directory_write(names[i], "", 0);
        if (i % 2 == 0)
            assert_int_equal(0, utimensat(AT_FDCWD, names[i], old, 0));
    }
    assert_succeeds(fake_cache_store());
    for (int i = 0; i < 4; i++)
        assert_int_equal(i % 2 ? 0 : -1, access(names[i], F_OK));
}

static int append_line(void *data, const char *file, const char *variant, int64_t bytes)
{
    (void)file;
    assert_true(bytes > 0);
    strcat(data, variant ? variant : "damaged");
    strcat(data, " ");
    return 0;
}

static void the_list_shows_variants_and_damage(void **state)
{
    char list[256] = "";
    size_t count;
    char *bytes;

    (void)state;
    fake_cache_store_numbered(1, 0);
    fake_cache_store_numbered(2, 0);
    bytes = fake_directory_read(fake_cache_numbered_path(1, NULL), &count);
    bytes[count / 2] ^= 1;
    fake_directory_write(fake_cache_numbered_path(1, NULL), bytes, count);
    free(bytes);
    flp_cubin_cache_visit(fake_cache.cache, append_line, list);
    assert_contains(list, "v02 ");
    assert_contains(list, "damaged ");
    assert_int_equal(strlen("v02 damaged "), strlen(list));
}

static void the_facts_count_and_clearing_empties(void **state)
{
    flp_cubin_cache_facts facts;
    int64_t bytes;

    (void)state;
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_string_equal(fake_cache.user, facts.directory);
    assert_true(facts.files == 0 && facts.bytes == 0 && facts.writable == 1);
    fake_cache_store_numbered(1, 0);
    fake_cache_store_numbered(2, 0);
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_int_equal(2, facts.files);
    fake_cache_numbered_path(1, &bytes);
    assert_int_equal(2 * bytes, facts.bytes);
    assert_int_equal(1, facts.writable);
    assert_int_equal(2, flp_cubin_cache_clear(fake_cache.cache));
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_int_equal(0, facts.files);
    assert_int_equal(0, fake_directory_count(fake_cache.user, ""));
    fake_directory_write(fake_directory_path(fake_cache.root, "file"), "", 0);
    fake_cache_open(fake_directory_path(fake_cache.root, "file"), "", 0);
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_int_equal(0, facts.writable);
    assert_contains(facts.refusal, "Not a directory");
    fake_cache_open("", "", 0);
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_string_equal("", facts.directory);
    assert_int_equal(0, facts.writable);
}

static void a_directory_that_is_refused_is_no_empty_one(void **state)
{
    flp_cubin_cache_facts facts;

    (void)state;
    fake_cache_store_numbered(1, 0);
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_string_equal("", facts.refusal);
    assert_int_equal(0, chmod(fake_cache.user, 0775));
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_contains(facts.refusal, "group or others may write to it");
    assert_true(facts.files == 0 && facts.writable == 0);
    fake_cache_open(fake_directory_path(fake_cache.root, "absent"), "", 0);
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_string_equal("", facts.refusal);
    assert_int_equal(1, facts.writable);
}

/* Such a directory leaves room for the folder of sources, and none for a source's long name. */
static void a_source_whose_path_is_too_long_has_no_path(void **state)
{
    char user[4096], path[4096] = "before", variant[201];
    int length;

    (void)state;
    length = snprintf(user, sizeof(user), "%s", fake_cache.root);
    for (int level = 0; level < 20; level++)
        length += snprintf(user + length, sizeof(user) - (size_t)length, "/%0200d", level);
    memset(variant, 'v', sizeof(variant) - 1);
    variant[sizeof(variant) - 1] = 0;
    fake_cache_open(user, "", 0);
    assert_fails(FLP_IO_FAILED, flp_cubin_cache_keep_source(fake_cache.cache, variant, "#error", 6, path), "the path is too long");
    assert_string_equal("", path);
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "x", "#error", 6, path));
    assert_contains(path, "/failed/x.cu");
}

static void a_failed_source_is_kept_under_its_variants_name(void **state)
{
    char path[4096];
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "tile:bf16/../x", "#error", 6, path));
    assert_string_equal(fake_directory_path(fake_cache.user, "failed/tile:bf16_.._x.cu"), path);
    bytes = fake_directory_read(path, &count);
    assert_string_equal("#error", bytes);
    free(bytes);
    fake_cache_open("", "", 0);
    assert_fails(FLP_IO_FAILED, flp_cubin_cache_keep_source(fake_cache.cache, "x", "#error", 6, path), "none is configured");
    assert_string_equal("", path);
    fake_cache_open("/proc/fusedlogp", "", 0);
    assert_fails(FLP_IO_FAILED, flp_cubin_cache_keep_source(fake_cache.cache, "x", "#error", 6, path), "/proc/fusedlogp");
}

static void kept_sources_are_counted_and_removed_like_kernels(void **state)
{
    const struct timespec old[2] = { { time(NULL) - 7200, 0 }, { time(NULL) - 7200, 0 } };
    char path[4096], other[4096], list[256] = "", source[1000];
    flp_cubin_cache_facts facts;
    int64_t bytes;

    (void)state;
    memset(source, '#', sizeof(source));
    fake_cache_store_numbered(1, 0);
    fake_cache_numbered_path(1, &bytes);
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "x", source, sizeof(source), path));
    flp_cubin_cache_describe(fake_cache.cache, &facts);
    assert_int_equal(1, facts.files);
    assert_int_equal(1, facts.sources);
    assert_int_equal(bytes + (int64_t)sizeof(source), facts.bytes);
    flp_cubin_cache_visit(fake_cache.cache, append_line, list);
    assert_string_equal("v01 ", list);
    assert_int_equal(0, utimensat(AT_FDCWD, path, old, 0));
    fake_cache_open(fake_cache.user, "", bytes + (int64_t)sizeof(source));
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "y", source, sizeof(source), other));
    assert_int_equal(-1, access(path, F_OK));
    assert_int_equal(0, access(other, F_OK));
    assert_int_equal(1, flp_cubin_cache_clear(fake_cache.cache));
    assert_int_equal(0, fake_directory_count(fake_cache.user, ""));
    assert_int_equal(-1, access(fake_directory_path(fake_cache.user, "failed"), F_OK));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(the_least_recently_used_go_first),
        CACHE_TEST(times_in_the_future_are_the_oldest),
        CACHE_TEST(files_of_one_age_go_in_name_order),
        CACHE_TEST(a_hit_makes_an_old_file_young),
        CACHE_TEST(what_killed_processes_left_is_removed_when_old),
        CACHE_TEST(the_list_shows_variants_and_damage),
        CACHE_TEST(the_facts_count_and_clearing_empties),
        CACHE_TEST(a_directory_that_is_refused_is_no_empty_one),
        CACHE_TEST(kept_sources_are_counted_and_removed_like_kernels),
        CACHE_TEST(a_source_whose_path_is_too_long_has_no_path),
        CACHE_TEST(a_failed_source_is_kept_under_its_variants_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
