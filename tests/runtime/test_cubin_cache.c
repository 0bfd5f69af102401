/* The kernel cache on disk: what is found, what is a miss, and that nothing about a directory fails a call. */
#include "jit/cubin_cache.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/log.h"
#include "fake_cmocka.h"
#include "fake_directory.h"

static const char *root;
static char user[128];
static flp_cubin_cache *cache;
static int warnings;
static char last_warning[512];

static const flp_cubin_key key = { "source text", 11, "-std=c++17\n", "sm_90a", "aa11" };
static flp_cubin kernel = { "variant:one", "variant one\n", "\177ELF\0cubin", 11, NULL };

static void hear(void *user_data, flp_log_level level, const char *message)
{
    (void)user_data;
    if (level == FLP_LOG_WARNING) {
        warnings++;
        snprintf(last_warning, sizeof(last_warning), "%s", message);
    }
}

static void open_cache(const char *directory, const char *systems, int64_t bytes)
{
    const flp_cubin_cache_options options = { directory, systems, bytes };

    flp_cubin_cache_destroy(cache);
    assert_succeeds(flp_cubin_cache_create(&options, &cache));
}

static int make(void **state)
{
    (void)state;
    root = fake_directory_make();
    snprintf(user, sizeof(user), "%s/user", root);
    warnings = 0;
    flp_log_set_callback(hear, NULL);
    cache = NULL;
    open_cache(user, "", 0);
    return 0;
}

static int clean(void **state)
{
    (void)state;
    flp_cubin_cache_destroy(cache);
    cache = NULL;
    flp_log_set_callback(NULL, NULL);
    fake_directory_remove(root);
    return 0;
}

static int is_there(const flp_cubin_key *wanted)
{
    flp_cubin cubin;
    int found = 9;

    assert_succeeds(flp_cubin_cache_load(cache, wanted, &cubin, &found));
    flp_cubin_free(&cubin);
    return found;
}

static int take_name(void *data, const char *file, const char *variant, int64_t bytes)
{
    (void)variant;
    (void)bytes;
    snprintf(data, 256, "%s/%s", user, file);
    return 1;
}

/* The path of the first kernel in the user's directory. */
static const char *kernel_path(void)
{
    static char path[256];

    path[0] = 0;
    flp_cubin_cache_visit(cache, take_name, path);
    return path;
}

/* ---- found and missed ---- */

static void what_was_stored_is_loaded(void **state)
{
    flp_cubin cubin;
    int found;

    (void)state;
    assert_false(is_there(&key));
    kernel.ptx = "// PTX";
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    kernel.ptx = NULL;
    open_cache(user, "", 0);
    assert_succeeds(flp_cubin_cache_load(cache, &key, &cubin, &found));
    assert_true(found);
    assert_string_equal("variant:one", cubin.variant);
    assert_string_equal("variant one\n", cubin.manifest_text);
    assert_int_equal(11, cubin.cubin_bytes);
    assert_memory_equal(kernel.cubin, cubin.cubin, 11);
    assert_string_equal("// PTX", cubin.ptx);
    flp_cubin_free(&cubin);
    assert_int_equal(0, warnings);
}

static void absent_ptx_stays_absent(void **state)
{
    flp_cubin cubin;
    int found;

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_succeeds(flp_cubin_cache_load(cache, &key, &cubin, &found));
    assert_true(found);
    assert_null(cubin.ptx);
    flp_cubin_free(&cubin);
}

static void every_part_of_the_key_counts(void **state)
{
    const flp_cubin_key others[] = {
        { "source texT", 11, "-std=c++17\n", "sm_90a", "aa11" },
        { "source text", 10, "-std=c++17\n", "sm_90a", "aa11" },
        { "source text", 11, "-std=c++14\n", "sm_90a", "aa11" },
        { "source text", 11, "", "sm_90a", "aa11" },
        { "source text", 11, "-std=c++17\n", "sm_90", "aa11" },
        { "source text", 11, "-std=c++17\n", "sm_90a", "aa12" },
        { "source text", 11, "-std=c++17\nsm_90a", "", "aa11" },
    };

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        assert_false(is_there(&others[i]));
    assert_true(is_there(&key));
}

static void the_name_does_not_depend_on_place_or_time(void **state)
{
    char first[256];

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(first, sizeof(first), "%s", kernel_path() + strlen(user));
    assert_int_equal(strlen("/ab/") + 64 + strlen(".flpk"), strlen(first));
    assert_int_equal(0, strncmp(first + 1, first + 4, 2));
    snprintf(user, sizeof(user), "%s/elsewhere", root);
    open_cache(user, "", 0);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_string_equal(first, kernel_path() + strlen(user));
}

static void an_evicted_kernel_is_gone(void **state)
{
    (void)state;
    flp_cubin_cache_evict(cache, &key);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    flp_cubin_cache_evict(cache, &key);
    assert_false(is_there(&key));
    assert_int_equal(0, fake_directory_count(user, ".flpk"));
}

static void a_system_directory_is_read_after_the_users(void **state)
{
    char systems[512];
    flp_cubin other = kernel, cubin;
    int found;

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(systems, sizeof(systems), "/no/such/directory::%s", user);
    open_cache(fake_directory_path(root, "mine"), systems, 0);
    assert_true(is_there(&key));
    other.variant = "mine";
    assert_succeeds(flp_cubin_cache_store(cache, &key, &other));
    assert_succeeds(flp_cubin_cache_load(cache, &key, &cubin, &found));
    assert_string_equal("mine", cubin.variant);
    flp_cubin_free(&cubin);
    open_cache("", user, 0);
    assert_true(is_there(&key));
    assert_int_equal(0, warnings);
}

static void without_nvrtc_every_build_that_published_is_tried(void **state)
{
    flp_cubin_key stored = key, unknown = key;
    size_t count;
    char *builds;

    (void)state;
    unknown.nvrtc_build = NULL;
    stored.source = "other text ";
    assert_succeeds(flp_cubin_cache_store(cache, &stored, &kernel));
    assert_false(is_there(&unknown));
    stored = key;
    stored.nvrtc_build = "bb22";
    assert_succeeds(flp_cubin_cache_store(cache, &stored, &kernel));
    assert_succeeds(flp_cubin_cache_store(cache, &stored, &kernel));
    assert_true(is_there(&unknown));
    builds = fake_directory_read(fake_directory_path(user, "builds"), &count);
    assert_string_equal("\naa11\n\nbb22\n", builds);
    free(builds);
    open_cache("", user, 0);
    assert_true(is_there(&unknown));
}

static void a_torn_line_of_builds_spoils_no_other(void **state)
{
    flp_cubin_key unknown = key;

    (void)state;
    unknown.nvrtc_build = NULL;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    fake_directory_write(fake_directory_path(user, "builds"), "with space\n\xff\naa", 15);
    assert_false(is_there(&unknown));
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_true(is_there(&unknown));
}

/* ---- damage ---- */

static void every_flipped_byte_is_a_miss_and_storing_heals(void **state)
{
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    bytes = fake_directory_read(kernel_path(), &count);
    for (size_t i = 0; i < count; i++) {
        bytes[i] ^= 1 << (i % 8);
        fake_directory_write(kernel_path(), bytes, count);
        assert_false(is_there(&key));
        bytes[i] ^= 1 << (i % 8);
    }
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_true(is_there(&key));
    assert_int_equal(0, warnings);
    free(bytes);
}

static void a_file_cut_or_extended_anywhere_is_a_miss(void **state)
{
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    bytes = fake_directory_read(kernel_path(), &count);
    for (size_t i = 0; i < count; i++) {
        fake_directory_write(kernel_path(), bytes, i);
        assert_false(is_there(&key));
    }
    fake_directory_write(kernel_path(), bytes, count + 1);
    assert_false(is_there(&key));
    free(bytes);
}

static void a_whole_file_under_another_keys_name_is_a_miss(void **state)
{
    flp_cubin_key other = key;
    char first[256], second[256];

    (void)state;
    other.arch = "sm_80";
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(first, sizeof(first), "%s", kernel_path());
    assert_int_equal(0, rename(first, fake_directory_path(root, "kept")));
    assert_succeeds(flp_cubin_cache_store(cache, &other, &kernel));
    snprintf(second, sizeof(second), "%s", kernel_path());
    assert_int_equal(0, rename(fake_directory_path(root, "kept"), second));
    assert_false(is_there(&other));
}

static void a_symbolic_link_or_a_fifo_is_a_miss(void **state)
{
    char path[256];

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(path, sizeof(path), "%s", kernel_path());
    assert_int_equal(0, rename(path, fake_directory_path(root, "kept")));
    assert_int_equal(0, symlink(fake_directory_path(root, "kept"), path));
    assert_false(is_there(&key));
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, mkfifo(path, 0600));
    assert_false(is_there(&key));
    assert_int_equal(0, unlink(path));
    assert_int_equal(0, rename(fake_directory_path(root, "kept"), path));
    assert_true(is_there(&key));
    assert_int_equal(0, chmod(path, 0666));
    assert_false(is_there(&key));
}

static void a_linked_subdirectory_is_a_miss(void **state)
{
    char path[256];

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(path, sizeof(path), "%.*s", (int)(strlen(user) + 3), kernel_path());
    assert_int_equal(0, rename(path, fake_directory_path(root, "kept")));
    assert_int_equal(0, symlink(fake_directory_path(root, "kept"), path));
    assert_false(is_there(&key));
    assert_int_equal(FLP_IO_FAILED, flp_cubin_cache_store(cache, &key, &kernel));
}

/* ---- directories that cannot be used ---- */

static void the_directory_is_made_for_the_user_alone(void **state)
{
    struct stat facts;
    mode_t before = umask(0);

    (void)state;
    open_cache(fake_directory_path(root, "new/cache"), "", 0);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    umask(before);
    assert_int_equal(0, stat(fake_directory_path(root, "new/cache"), &facts));
    assert_int_equal(0700, facts.st_mode & 0777);
}

static void nothing_is_made_before_the_first_store(void **state)
{
    (void)state;
    assert_false(is_there(&key));
    assert_int_equal(-1, access(user, F_OK));
    assert_int_equal(0, warnings);
}

static void assert_memory_only(const char *warning)
{
    assert_false(is_there(&key));
    assert_int_equal(FLP_IO_FAILED, flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(FLP_IO_FAILED, flp_cubin_cache_store(cache, &key, &kernel));
    assert_false(is_there(&key));
    assert_int_equal(1, warnings);
    assert_contains(last_warning, warning);
    flp_cubin_cache_evict(cache, &key);
    assert_int_equal(0, flp_cubin_cache_clear(cache));
}

static void a_directory_that_others_may_write_to_is_refused(void **state)
{
    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(0, chmod(user, 0770));
    assert_memory_only("group or others may write to it");
    assert_int_equal(0, chmod(user, 0755));
    assert_true(is_there(&key));
    open_cache("", user, 0);
    assert_true(is_there(&key));
    assert_int_equal(0, chmod(user, 0757));
    assert_false(is_there(&key));
}

static void a_directory_of_another_user_is_refused(void **state)
{
    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    if (chown(user, 12345, 12345) != 0)
        skip(); /* only root may give a directory away */
    assert_memory_only("belongs to another user");
    open_cache("", user, 0);
    assert_false(is_there(&key));
}

/* A file in the place of the directory, and a place where nobody can make one: these also stop root. */
static void an_unusable_directory_is_one_warning(void **state)
{
    (void)state;
    fake_directory_write(user, "", 0);
    assert_memory_only("Not a directory");
    warnings = 0;
    open_cache("/proc/fusedlogp", "", 0);
    assert_memory_only("/proc/fusedlogp");
}

static void a_directory_that_cannot_be_extended_still_serves(void **state)
{
    (void)state;
    open_cache("/proc/self/fdinfo", "", 0);
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
    open_cache(NULL, "", 0);
    assert_memory_only("HOME");
    warnings = 0;
    setenv("HOME", root, 1);
    open_cache(NULL, "", 0);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(1, fake_directory_count(fake_directory_path(root, ".cache/fusedlogp"), ".flpk"));
    setenv("XDG_CACHE_HOME", fake_directory_path(root, "xdg"), 1);
    open_cache(NULL, "", 0);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(1, fake_directory_count(fake_directory_path(root, "xdg/fusedlogp"), ".flpk"));
    setenv("FUSEDLOGP_CACHE_DIR", fake_directory_path(root, "named"), 1);
    open_cache(NULL, "", 0);
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(1, fake_directory_count(fake_directory_path(root, "named"), ".flpk"));
    for (int i = 0; i < 3; i++) {
        if (values[i])
            setenv(names[i], values[i], 1);
        else
            unsetenv(names[i]);
        free(values[i]);
    }
    assert_int_equal(0, warnings);
}

static void no_directory_by_choice_is_no_warning(void **state)
{
    (void)state;
    open_cache("", "", 0);
    assert_false(is_there(&key));
    assert_int_equal(FLP_IO_FAILED, flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(0, warnings);
}

static void a_directory_removed_meanwhile_is_made_again(void **state)
{
    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    fake_directory_remove(user);
    assert_false(is_there(&key));
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_true(is_there(&key));
    assert_int_equal(0, warnings);
}

static void a_relative_directory_is_where_it_was_at_the_start(void **state)
{
    char before[4096];

    (void)state;
    assert_non_null(getcwd(before, sizeof(before)));
    assert_int_equal(0, chdir(root));
    open_cache("user", "", 0);
    assert_int_equal(0, chdir("/"));
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    assert_int_equal(1, fake_directory_count(user, ".flpk"));
    assert_int_equal(0, chdir(before));
}

/* ---- size and age ---- */

typedef struct {
    char variant[16], path[256];
    int64_t bytes;
} wanted_file;

static int take_variant(void *data, const char *file, const char *variant, int64_t bytes)
{
    wanted_file *wanted = data;

    if (!variant || strcmp(variant, wanted->variant) != 0)
        return 0;
    snprintf(wanted->path, sizeof(wanted->path), "%s/%s", user, file);
    wanted->bytes = bytes;
    return 1;
}

static wanted_file find_numbered(int number)
{
    wanted_file wanted = { 0 };

    snprintf(wanted.variant, sizeof(wanted.variant), "v%02d", number);
    flp_cubin_cache_visit(cache, take_variant, &wanted);
    return wanted;
}

static int has_numbered(int number)
{
    return find_numbered(number).path[0] != 0;
}

static flp_cubin_key numbered_key(char source[16], int number)
{
    flp_cubin_key numbered = key;

    numbered.source_bytes = (size_t)snprintf(source, 16, "source %02d", number);
    numbered.source = source;
    return numbered;
}

/* Stores kernel `number` and makes its file that old. */
static void store_numbered(int number, int seconds_old)
{
    struct timespec times[2] = { { time(NULL) - seconds_old, 0 }, { time(NULL) - seconds_old, 0 } };
    char source[16], variant[16];
    flp_cubin_key numbered = numbered_key(source, number);
    flp_cubin numbered_kernel = kernel;

    snprintf(variant, sizeof(variant), "v%02d", number);
    numbered_kernel.variant = variant;
    assert_succeeds(flp_cubin_cache_store(cache, &numbered, &numbered_kernel));
    if (seconds_old)
        assert_int_equal(0, utimensat(AT_FDCWD, find_numbered(number).path, times, 0));
}

static void the_least_recently_used_go_first(void **state)
{
    int64_t bytes;

    (void)state;
    store_numbered(0, 50000);
    bytes = find_numbered(0).bytes;
    open_cache(user, "", 3 * bytes);
    store_numbered(1, 90000);
    store_numbered(2, 70000);
    assert_true(has_numbered(0) && has_numbered(1) && has_numbered(2));
    store_numbered(3, 0);
    assert_true(has_numbered(0) && !has_numbered(1) && has_numbered(2) && has_numbered(3));
    store_numbered(4, 0);
    assert_true(has_numbered(0) && !has_numbered(2) && has_numbered(3) && has_numbered(4));
}

static void files_of_one_age_go_in_name_order(void **state)
{
    char first[256];

    (void)state;
    for (int i = 0; i < 4; i++)
        store_numbered(i, 50000);
    snprintf(first, sizeof(first), "%s", kernel_path());
    open_cache(user, "", 4 * find_numbered(0).bytes);
    store_numbered(4, 0);
    assert_int_equal(4, fake_directory_count(user, ".flpk"));
    assert_int_equal(-1, access(first, F_OK));
}

static void a_hit_makes_an_old_file_young(void **state)
{
    char source[16];
    flp_cubin_key numbered = numbered_key(source, 1);
    struct stat facts;

    (void)state;
    store_numbered(1, 7200);
    assert_true(is_there(&numbered));
    assert_int_equal(0, stat(find_numbered(1).path, &facts));
    assert_true(time(NULL) - facts.st_mtim.tv_sec < 60);
    store_numbered(1, 1800);
    assert_true(is_there(&numbered));
    assert_int_equal(0, stat(find_numbered(1).path, &facts));
    assert_true(time(NULL) - facts.st_mtim.tv_sec >= 1800);
}

static void what_killed_processes_left_is_removed_when_old(void **state)
{
    struct timespec old[2] = { { time(NULL) - 7200, 0 }, { time(NULL) - 7200, 0 } };
    char directory[256], names[4][300];

    (void)state;
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    snprintf(directory, sizeof(directory), "%.*s", (int)(strlen(user) + 3), kernel_path());
    for (int i = 0; i < 4; i++) {
        snprintf(names[i], sizeof(names[i]), "%s/x%d%s", directory, i, i < 2 ? ".flpk.writing-0123456789abcdef" : ".lock");
        fake_directory_write(names[i], "", 0);
        if (i % 2 == 0)
            assert_int_equal(0, utimensat(AT_FDCWD, names[i], old, 0));
    }
    assert_succeeds(flp_cubin_cache_store(cache, &key, &kernel));
    for (int i = 0; i < 4; i++)
        assert_int_equal(i % 2 ? 0 : -1, access(names[i], F_OK));
}

/* ---- locks ---- */

static void a_lock_is_had_once_and_its_file_goes_with_it(void **state)
{
    int first, second;

    (void)state;
    flp_cubin_cache_lock(cache, &key, 0, &first);
    assert_true(first >= 0);
    assert_int_equal(1, fake_directory_count(user, ".lock"));
    flp_cubin_cache_lock(cache, &key, 0.05, &second);
    assert_int_equal(-1, second);
    flp_cubin_cache_unlock(cache, first);
    assert_int_equal(0, fake_directory_count(user, ".lock"));
    flp_cubin_cache_lock(cache, &key, 0, &second);
    assert_true(second >= 0);
    flp_cubin_cache_unlock(cache, second);
    flp_cubin_cache_unlock(cache, -1);
}

static void a_lock_blocks_no_other_key(void **state)
{
    flp_cubin_key other = key;
    int first, second;

    (void)state;
    other.arch = "sm_80";
    flp_cubin_cache_lock(cache, &key, 0, &first);
    flp_cubin_cache_lock(cache, &other, 0, &second);
    assert_true(first >= 0 && second >= 0);
    flp_cubin_cache_unlock(cache, first);
    flp_cubin_cache_unlock(cache, second);
}

static void a_killed_holders_lock_is_free(void **state)
{
    pid_t child = fork();
    int result, lock;

    (void)state;
    if (child == 0) {
        flp_cubin_cache_lock(cache, &key, 0, &lock);
        raise(SIGKILL);
    }
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_true(WIFSIGNALED(result));
    assert_int_equal(1, fake_directory_count(user, ".lock"));
    flp_cubin_cache_lock(cache, &key, 0, &lock);
    assert_true(lock >= 0);
    flp_cubin_cache_unlock(cache, lock);
    assert_int_equal(0, fake_directory_count(user, ".lock"));
}

static void a_child_forked_meanwhile_does_not_keep_the_lock(void **state)
{
    int lock, again, result;
    pid_t child;

    (void)state;
    flp_cubin_cache_lock(cache, &key, 0, &lock);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    flp_cubin_cache_unlock(cache, lock);
    flp_cubin_cache_lock(cache, &key, 0, &again);
    assert_true(again >= 0);
    flp_cubin_cache_unlock(cache, again);
    kill(child, SIGKILL);
    waitpid(child, &result, 0);
}

static atomic_int inside, most_inside;

static void *enter_and_leave(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10; i++) {
        int lock, now;

        flp_cubin_cache_lock(cache, &key, 20, &lock);
        if (lock < 0)
            return (void *)1;
        now = atomic_fetch_add(&inside, 1) + 1;
        if (now > atomic_load(&most_inside))
            atomic_store(&most_inside, now);
        atomic_fetch_sub(&inside, 1);
        flp_cubin_cache_unlock(cache, lock);
    }
    return NULL;
}

static void threads_enter_one_at_a_time(void **state)
{
    pthread_t threads[4];

    (void)state;
    atomic_store(&inside, 0);
    atomic_store(&most_inside, 0);
    for (int i = 0; i < 4; i++)
        assert_int_equal(0, pthread_create(&threads[i], NULL, enter_and_leave, NULL));
    for (int i = 0; i < 4; i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    assert_int_equal(1, most_inside);
}

static void where_no_lock_can_be_had_the_caller_goes_on(void **state)
{
    int lock = 9;

    (void)state;
    fake_directory_write(user, "", 0);
    flp_cubin_cache_lock(cache, &key, 5, &lock);
    assert_int_equal(-1, lock);
    open_cache("", "", 0);
    flp_cubin_cache_lock(cache, &key, 5, &lock);
    assert_int_equal(-1, lock);
}

/* ---- what people ask ---- */

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
    store_numbered(1, 0);
    store_numbered(2, 0);
    bytes = fake_directory_read(find_numbered(1).path, &count);
    bytes[count / 2] ^= 1;
    fake_directory_write(find_numbered(1).path, bytes, count);
    free(bytes);
    flp_cubin_cache_visit(cache, append_line, list);
    assert_contains(list, "v02 ");
    assert_contains(list, "damaged ");
    assert_int_equal(strlen("v02 damaged "), strlen(list));
}

static void the_facts_count_and_clearing_empties(void **state)
{
    flp_cubin_cache_facts facts;

    (void)state;
    flp_cubin_cache_describe(cache, &facts);
    assert_string_equal(user, facts.directory);
    assert_true(facts.files == 0 && facts.bytes == 0 && facts.writable == 1);
    store_numbered(1, 0);
    store_numbered(2, 0);
    flp_cubin_cache_describe(cache, &facts);
    assert_int_equal(2, facts.files);
    assert_int_equal(2 * find_numbered(1).bytes, facts.bytes);
    assert_int_equal(1, facts.writable);
    assert_int_equal(2, flp_cubin_cache_clear(cache));
    flp_cubin_cache_describe(cache, &facts);
    assert_int_equal(0, facts.files);
    assert_int_equal(0, fake_directory_count(user, ""));
    open_cache("/proc/fusedlogp/cache", "", 0);
    flp_cubin_cache_describe(cache, &facts);
    assert_int_equal(0, facts.writable);
    open_cache("", "", 0);
    flp_cubin_cache_describe(cache, &facts);
    assert_string_equal("", facts.directory);
    assert_int_equal(0, facts.writable);
}

static void a_failed_source_is_kept_under_its_variants_name(void **state)
{
    char path[4096];
    size_t count;
    char *bytes;

    (void)state;
    assert_succeeds(flp_cubin_cache_keep_source(cache, "tile:bf16/../x", "#error", 6, path));
    assert_string_equal(fake_directory_path(user, "failed/tile:bf16_.._x.cu"), path);
    bytes = fake_directory_read(path, &count);
    assert_string_equal("#error", bytes);
    free(bytes);
    open_cache("", "", 0);
    assert_fails(FLP_IO_FAILED, flp_cubin_cache_keep_source(cache, "x", "#error", 6, path), "none is configured");
    open_cache("/proc/fusedlogp", "", 0);
    assert_fails(FLP_IO_FAILED, flp_cubin_cache_keep_source(cache, "x", "#error", 6, path), "/proc/fusedlogp");
}

int main(void)
{
#define CACHE_TEST(name) cmocka_unit_test_setup_teardown(name, make, clean)
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
        CACHE_TEST(the_directory_is_made_for_the_user_alone),
        CACHE_TEST(nothing_is_made_before_the_first_store),
        CACHE_TEST(a_directory_that_others_may_write_to_is_refused),
        CACHE_TEST(a_directory_of_another_user_is_refused),
        CACHE_TEST(an_unusable_directory_is_one_warning),
        CACHE_TEST(a_directory_that_cannot_be_extended_still_serves),
        CACHE_TEST(without_a_home_kernels_stay_in_memory),
        CACHE_TEST(no_directory_by_choice_is_no_warning),
        CACHE_TEST(a_directory_removed_meanwhile_is_made_again),
        CACHE_TEST(a_relative_directory_is_where_it_was_at_the_start),
        CACHE_TEST(the_least_recently_used_go_first),
        CACHE_TEST(files_of_one_age_go_in_name_order),
        CACHE_TEST(a_hit_makes_an_old_file_young),
        CACHE_TEST(what_killed_processes_left_is_removed_when_old),
        CACHE_TEST(a_lock_is_had_once_and_its_file_goes_with_it),
        CACHE_TEST(a_lock_blocks_no_other_key),
        CACHE_TEST(a_killed_holders_lock_is_free),
        CACHE_TEST(a_child_forked_meanwhile_does_not_keep_the_lock),
        CACHE_TEST(threads_enter_one_at_a_time),
        CACHE_TEST(where_no_lock_can_be_had_the_caller_goes_on),
        CACHE_TEST(the_list_shows_variants_and_damage),
        CACHE_TEST(the_facts_count_and_clearing_empties),
        CACHE_TEST(a_failed_source_is_kept_under_its_variants_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
