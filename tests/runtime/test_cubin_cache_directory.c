/* Cache directories: whose they may be, and that none that cannot be used fails a call. */
#include "fake_cache.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

static void the_directory_is_made_for_the_user_alone(void **state)
{
    struct stat facts;
    mode_t before = umask(0);

    (void)state;
    fake_cache_open(fake_directory_path(fake_cache.root, "new/cache"), "", 0);
    assert_succeeds(fake_cache_store());
    umask(before);
    assert_int_equal(0, stat(fake_directory_path(fake_cache.root, "new/cache"), &facts));
    assert_int_equal(0700, facts.st_mode & 0777);
}

static void nothing_is_made_before_the_first_store(void **state)
{
    (void)state;
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(-1, access(fake_cache.user, F_OK));
    assert_int_equal(0, fake_cache.warnings);
}

static void assert_memory_only(const char *warning)
{
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(FLP_IO_FAILED, fake_cache_store());
    assert_int_equal(FLP_IO_FAILED, fake_cache_store());
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(1, fake_cache.warnings);
    assert_contains(fake_cache.last_warning, warning);
    flp_cubin_cache_evict(fake_cache.cache, &fake_cache_key);
    assert_int_equal(0, flp_cubin_cache_clear(fake_cache.cache));
}

static void a_directory_that_others_may_write_to_is_refused(void **state)
{
    (void)state;
    assert_succeeds(fake_cache_store());
    assert_int_equal(0, chmod(fake_cache.user, 0770));
    assert_memory_only("group or others may write to it");
    assert_int_equal(0, chmod(fake_cache.user, 0755));
    assert_true(fake_cache_has(&fake_cache_key));
    fake_cache_open("", fake_cache.user, 0);
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, chmod(fake_cache.user, 0757));
    assert_false(fake_cache_has(&fake_cache_key));
}

static void a_directory_of_another_user_is_refused(void **state)
{
    (void)state;
    assert_succeeds(fake_cache_store());
    if (chown(fake_cache.user, 12345, 12345) != 0)
        skip(); /* only root may give a directory away */
    assert_memory_only("belongs to another user");
    fake_cache_open("", fake_cache.user, 0);
    assert_false(fake_cache_has(&fake_cache_key));
}

/* A file in the place of the directory, and a place where nobody can make one: these also stop root. */
static void an_unusable_directory_is_one_warning(void **state)
{
    (void)state;
    fake_directory_write(fake_cache.user, "", 0);
    assert_memory_only("Not a directory");
    fake_cache.warnings = 0;
    fake_cache_open("/proc/fusedlogp", "", 0);
    assert_memory_only("/proc/fusedlogp");
}

static void a_directory_in_which_nothing_can_be_made_is_one_warning(void **state)
{
    (void)state;
    fake_cache_open("/proc/self/fdinfo", "", 0);
    assert_memory_only("fdinfo");
}

static void without_a_home_kernels_stay_in_memory(void **state)
{
    const char *const names[] = { "FUSEDLOGP_CACHE_DIR", "XDG_CACHE_HOME", "HOME" };
    char *values[3];

    (void)state;
    for (int i = 0; i < 3; i++) {
        values[i] = getenv(names[i]) ? strdup(getenv(names[i])) : NULL;
        unsetenv(names[i]);
    }
    fake_cache_open(NULL, "", 0);
    assert_memory_only("HOME");
    fake_cache.warnings = 0;
    setenv("HOME", fake_cache.root, 1);
    fake_cache_open(NULL, "", 0);
    assert_succeeds(fake_cache_store());
    assert_int_equal(1, fake_directory_count(fake_directory_path(fake_cache.root, ".cache/fusedlogp"), ".flpk"));
    setenv("XDG_CACHE_HOME", fake_directory_path(fake_cache.root, "xdg"), 1);
    fake_cache_open(NULL, "", 0);
    assert_succeeds(fake_cache_store());
    assert_int_equal(1, fake_directory_count(fake_directory_path(fake_cache.root, "xdg/fusedlogp"), ".flpk"));
    setenv("FUSEDLOGP_CACHE_DIR", fake_directory_path(fake_cache.root, "named"), 1);
    fake_cache_open(NULL, "", 0);
    assert_succeeds(fake_cache_store());
    assert_int_equal(1, fake_directory_count(fake_directory_path(fake_cache.root, "named"), ".flpk"));
    for (int i = 0; i < 3; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
        free(values[i]);
    }
    assert_int_equal(0, fake_cache.warnings);
}

static void no_directory_by_choice_is_no_warning(void **state)
{
    (void)state;
    fake_cache_open("", "", 0);
    assert_false(fake_cache_has(&fake_cache_key));
    assert_int_equal(FLP_IO_FAILED, fake_cache_store());
    assert_int_equal(0, fake_cache.warnings);
}

static void a_directory_removed_meanwhile_is_made_again(void **state)
{
    (void)state;
    assert_succeeds(fake_cache_store());
    fake_directory_remove(fake_cache.user);
    assert_false(fake_cache_has(&fake_cache_key));
    assert_succeeds(fake_cache_store());
    assert_true(fake_cache_has(&fake_cache_key));
    assert_int_equal(0, fake_cache.warnings);
}

static void a_relative_directory_is_where_it_was_at_the_start(void **state)
{
    char before[4096];

    (void)state;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(0, chdir(fake_cache.root));
    fake_cache_open("user", "", 0);
    assert_int_equal(0, chdir("/"));
    assert_succeeds(fake_cache_store());
    assert_int_equal(1, fake_directory_count(fake_cache.user, ".flpk"));
    assert_int_equal(0, chdir(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(the_directory_is_made_for_the_user_alone),
        CACHE_TEST(nothing_is_made_before_the_first_store),
        CACHE_TEST(a_directory_that_others_may_write_to_is_refused),
        CACHE_TEST(a_directory_of_another_user_is_refused),
        CACHE_TEST(an_unusable_directory_is_one_warning),
        CACHE_TEST(a_directory_in_which_nothing_can_be_made_is_one_warning),
        CACHE_TEST(without_a_home_kernels_stay_in_memory),
        CACHE_TEST(no_directory_by_choice_is_no_warning),
        CACHE_TEST(a_directory_removed_meanwhile_is_made_again),
        CACHE_TEST(a_relative_directory_is_where_it_was_at_the_start),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
