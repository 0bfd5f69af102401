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

static unsigned mode_of(const char *path)
{
    struct stat facts;

    assert_int_equal(0, stat(path, &facts));
    return facts.st_mode & 0777;
}

/* The directory, that of the kernel in it, and the kernel. */
static void assert_shared_modes(mode_t mask, unsigned directories, unsigned files)
{
    const flp_cubin_cache_options options = { .directory = fake_cache.user, .system_directories = "", .shared = 1 };
    mode_t before = umask(mask);
    char folder[512];

    fake_directory_remove(fake_cache.user);
    flp_cubin_cache_destroy(fake_cache.cache);
    assert_succeeds(flp_cubin_cache_create(&options, &fake_cache.cache));
    assert_succeeds(fake_cache_store());
    umask(before);
    snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(fake_cache.user) + 3), fake_cache_path());
    assert_int_equal(directories, mode_of(fake_cache.user));
    assert_int_equal(directories, mode_of(folder));
    assert_int_equal(files, mode_of(fake_cache_path()));
    assert_int_equal(files, mode_of(fake_directory_path(fake_cache.user, "builds")));
}

/* What a group might write to would be refused. */
static void a_shared_directory_follows_the_umask_but_is_never_writable_by_others(void **state)
{
    (void)state;
    assert_shared_modes(022, 0755, 0644);
    assert_shared_modes(002, 0755, 0644);
    assert_shared_modes(0, 0755, 0644);
    assert_shared_modes(027, 0750, 0640);
    assert_shared_modes(077, 0700, 0600);
    fake_cache_open("", fake_cache.user, 0);
    assert_true(fake_cache_has(&fake_cache_key));
}

static void open_user_directory(int shared)
{
    const flp_cubin_cache_options options = { .directory = fake_cache.user, .system_directories = "", .shared = shared };

    flp_cubin_cache_destroy(fake_cache.cache);
    assert_succeeds(flp_cubin_cache_create(&options, &fake_cache.cache));
}

static void assert_modes(unsigned directories, unsigned files)
{
    char folder[512];

    snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(fake_cache.user) + 3), fake_cache_path());
    assert_int_equal(directories, mode_of(fake_cache.user));
    assert_int_equal(directories, mode_of(folder));
    assert_int_equal(files, mode_of(fake_cache_path()));
    assert_int_equal(files, mode_of(fake_directory_path(fake_cache.user, "builds")));
}

static void what_was_stored_before_it_was_shared_is_shared_when_used(void **state)
{
    mode_t before = umask(022);

    (void)state;
    assert_succeeds(fake_cache_store());
    assert_modes(0700, 0600);
    umask(077);
    open_user_directory(1);
    assert_true(fake_cache_has(&fake_cache_key));
    assert_modes(0700, 0600);
    umask(022);
    assert_true(fake_cache_has(&fake_cache_key));
    umask(before);
    assert_modes(0755, 0644);
}

static void without_the_flag_only_this_user_can_read_what_is_stored(void **state)
{
    mode_t before = umask(0);
    char path[4096];

    (void)state;
    open_user_directory(1);
    assert_succeeds(fake_cache_store());
    assert_modes(0755, 0644);
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "x", "#error", 6, path));
    assert_int_equal(0644, mode_of(path));
    open_user_directory(0);
    assert_succeeds(fake_cache_store());
    assert_int_equal(0600, mode_of(fake_cache_path()));
    assert_succeeds(flp_cubin_cache_keep_source(fake_cache.cache, "x", "#error", 6, path));
    umask(before);
    assert_int_equal(0600, mode_of(path));
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

static void a_system_directory_that_is_refused_is_one_warning_each(void **state)
{
    char systems[1024], other[512];
    flp_cubin_cache_system_facts facts;

    (void)state;
    snprintf(other, sizeof(other), "%s/other", fake_cache.root);
    assert_int_equal(0, mkdir(other, 0755));
    assert_int_equal(0, chmod(other, 0777));
    assert_succeeds(fake_cache_store());
    assert_int_equal(0, chmod(fake_cache.user, 0775));
    snprintf(systems, sizeof(systems), "%s:/no/such/directory:%s", fake_cache.user, other);
    fake_cache_open("", systems, 0);
    for (int i = 0; i < 2; i++) {
        assert_false(fake_cache_has(&fake_cache_key));
        assert_int_equal(2, fake_cache.warnings);
    }
    assert_contains(fake_cache.last_warning, "kernels are not read from the system directory ");
    assert_contains(fake_cache.last_warning, "/other: group or others may write to it");
    assert_int_equal(0, chmod(other, 0755));
    assert_true(flp_cubin_cache_describe_system(fake_cache.cache, 0, &facts));
    assert_string_equal(fake_cache.user, facts.directory);
    assert_true(facts.there);
    assert_contains(facts.refusal, "group or others may write to it");
    assert_int_equal(0, facts.files);
    assert_true(flp_cubin_cache_describe_system(fake_cache.cache, 1, &facts));
    assert_string_equal("/no/such/directory", facts.directory);
    assert_false(facts.there);
    assert_true(flp_cubin_cache_describe_system(fake_cache.cache, 2, &facts));
    assert_string_equal("", facts.refusal);
    assert_false(flp_cubin_cache_describe_system(fake_cache.cache, 3, &facts));
    assert_int_equal(0, chmod(fake_cache.user, 0755));
    assert_true(fake_cache_has(&fake_cache_key));
    assert_true(flp_cubin_cache_describe_system(fake_cache.cache, 0, &facts));
    assert_int_equal(1, facts.files);
    assert_true(facts.bytes > 0);
    assert_int_equal(0, facts.refused);
}

static void what_is_refused_inside_is_counted(void **state)
{
    flp_cubin_cache_system_facts facts;
    flp_cubin_cache_facts own;
    char folder[512];

    (void)state;
    assert_succeeds(fake_cache_store());
    assert_int_equal(0, chmod(fake_cache_path(), 0666));
    flp_cubin_cache_describe(fake_cache.cache, &own);
    assert_int_equal(0, own.files);
    assert_int_equal(1, own.refused);
    snprintf(folder, sizeof(folder), "%.*s", (int)(strlen(fake_cache.user) + 3), fake_cache_path());
    assert_int_equal(0, chmod(folder, 0777));
    fake_cache_open("", fake_cache.user, 0);
    assert_true(flp_cubin_cache_describe_system(fake_cache.cache, 0, &facts));
    assert_int_equal(0, facts.files);
    assert_int_equal(1, facts.refused);
    assert_int_equal(0, chmod(folder, 0700));
}

static void the_environment_names_system_directories(void **state)
{
    flp_cubin_cache_system_facts facts;

    (void)state;
    assert_succeeds(fake_cache_store());
    setenv("FUSEDLOGP_SYSTEM_CACHE", fake_cache.user, 1);
    fake_cache_open("", NULL, 0);
    assert_true(fake_cache_has(&fake_cache_key));
    fake_cache_open("", "", 0);
    assert_false(fake_cache_has(&fake_cache_key));
    setenv("FUSEDLOGP_SYSTEM_CACHE", "", 1);
    fake_cache_open("", NULL, 0);
    assert_false(flp_cubin_cache_describe_system(fake_cache.cache, 0, &facts));
    unsetenv("FUSEDLOGP_SYSTEM_CACHE");
    fake_cache_open("", NULL, 0);
    if (flp_cubin_cache_describe_system(fake_cache.cache, 0, &facts)) /* as configured, which may be nothing */
        assert_true(facts.directory[0] == '/');
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
        CACHE_TEST(a_shared_directory_follows_the_umask_but_is_never_writable_by_others),
        CACHE_TEST(what_was_stored_before_it_was_shared_is_shared_when_used),
        CACHE_TEST(without_the_flag_only_this_user_can_read_what_is_stored),
        CACHE_TEST(nothing_is_made_before_the_first_store),
        CACHE_TEST(a_directory_that_others_may_write_to_is_refused),
        CACHE_TEST(a_system_directory_that_is_refused_is_one_warning_each),
        CACHE_TEST(what_is_refused_inside_is_counted),
        CACHE_TEST(the_environment_names_system_directories),
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
