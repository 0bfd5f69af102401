/* Reading whole files, appending, publishing, making directories. */
#include "base/file.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "assertions.h"
#include "fake_directory.h"

static const char *directory;

static int make_directory(void **state)
{
    (void)state;
    directory = fake_directory_make();
    return 0;
}

static int remove_directory(void **state)
{
    (void)state;
    fake_directory_remove(directory);
    return 0;
}

static void a_file_is_read_whole_with_a_zero_behind(void **state)
{
    char *bytes;
    size_t count;

    (void)state;
    fake_directory_write(fake_directory_path(directory, "f"), "a\0bc", 4);
    assert_succeeds(flp_file_read(AT_FDCWD, fake_directory_path(directory, "f"), &bytes, &count));
    assert_int_equal(4, count);
    assert_memory_equal("a\0bc", bytes, 5);
    free(bytes);
}

static void a_file_without_a_size_is_read_to_its_end(void **state)
{
    char *bytes;
    size_t count;

    (void)state;
    assert_succeeds(flp_file_read(AT_FDCWD, "/proc/self/status", &bytes, &count));
    assert_true(count > 100);
    assert_int_equal(0, strncmp(bytes, "Name:", 5));
    free(bytes);
}

static void an_empty_file_is_no_bytes(void **state)
{
    char *bytes;
    size_t count = 9;

    (void)state;
    fake_directory_write(fake_directory_path(directory, "empty"), "", 0);
    assert_succeeds(flp_file_read(AT_FDCWD, fake_directory_path(directory, "empty"), &bytes, &count));
    assert_int_equal(0, count);
    assert_string_equal("", bytes);
    free(bytes);
}

static void a_missing_file_is_named_and_errno_kept(void **state)
{
    char *bytes = (char *)1;
    size_t count;

    (void)state;
    assert_fails(FLP_IO_FAILED, flp_file_read(AT_FDCWD, fake_directory_path(directory, "none"), &bytes, &count), "none");
    assert_int_equal(ENOENT, errno);
    assert_contains(flp_error_message(), "No such file");
    assert_null(bytes);
}

static void a_directory_is_no_file(void **state)
{
    char *bytes;
    size_t count;

    (void)state;
    assert_fails(FLP_IO_FAILED, flp_file_read(AT_FDCWD, directory, &bytes, &count), "Is a directory");
    assert_int_equal(EISDIR, errno);
}

static void publishing_replaces_the_file_and_leaves_nothing_else(void **state)
{
    const char *path = fake_directory_path(directory, "kernel");
    char *bytes;
    size_t count;

    (void)state;
    assert_succeeds(flp_file_publish(AT_FDCWD, path, "first", 5));
    assert_succeeds(flp_file_publish(AT_FDCWD, path, "second one", 10));
    bytes = fake_directory_read(path, &count);
    assert_string_equal("second one", bytes);
    free(bytes);
    assert_int_equal(1, fake_directory_count(directory, ""));
}

static void publishing_works_below_a_descriptor(void **state)
{
    int descriptor = open(directory, O_RDONLY | O_DIRECTORY);
    char *bytes;
    size_t count;

    (void)state;
    assert_succeeds(flp_file_publish(descriptor, "x", "y", 1));
    assert_succeeds(flp_file_read(descriptor, "x", &bytes, &count));
    assert_string_equal("y", bytes);
    free(bytes);
    close(descriptor);
}

static void a_published_file_is_not_writable_by_others(void **state)
{
    mode_t before = umask(0);
    struct stat facts;

    (void)state;
    assert_succeeds(flp_file_publish(AT_FDCWD, fake_directory_path(directory, "m"), "y", 1));
    umask(before);
    assert_int_equal(0, stat(fake_directory_path(directory, "m"), &facts));
    assert_int_equal(0644, facts.st_mode & 0777);
}

static void publishing_into_a_missing_directory_fails(void **state)
{
    (void)state;
    assert_fails(FLP_IO_FAILED, flp_file_publish(AT_FDCWD, fake_directory_path(directory, "no/such"), "x", 1), "no/such");
    assert_int_equal(ENOENT, errno);
}

static void publishing_over_a_directory_fails_and_cleans_up(void **state)
{
    (void)state;
    assert_int_equal(0, mkdir(fake_directory_path(directory, "taken"), 0700));
    assert_fails(FLP_IO_FAILED, flp_file_publish(AT_FDCWD, fake_directory_path(directory, "taken"), "x", 1), "rename");
    assert_int_equal(0, fake_directory_count(directory, ""));
}

/* A limit on the size of files stands in for a full disk: write() fails half way. */
static void a_write_that_fails_half_way_leaves_nothing(void **state)
{
    static char many[8192];
    pid_t child = fork();
    int result;

    (void)state;
    if (child == 0) {
        const struct rlimit limit = { 4096, 4096 };

        signal(SIGXFSZ, SIG_IGN);
        if (setrlimit(RLIMIT_FSIZE, &limit) != 0)
            _exit(2);
        _exit(flp_file_publish(AT_FDCWD, fake_directory_path(directory, "big"), many, sizeof(many)) == FLP_IO_FAILED && errno == EFBIG ? 0 : 1);
    }
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_int_equal(0, result);
    assert_int_equal(0, fake_directory_count(directory, ""));
}

static void directories_are_made_with_their_parents(void **state)
{
    struct stat facts;

    (void)state;
    assert_succeeds(flp_file_make_directories(fake_directory_path(directory, "a/b//c/"), 0700));
    assert_succeeds(flp_file_make_directories(fake_directory_path(directory, "a/b/c"), 0700));
    assert_int_equal(0, stat(fake_directory_path(directory, "a/b/c"), &facts));
    assert_int_equal(0700, facts.st_mode & 0777);
}

static void a_file_in_the_way_of_a_directory_is_named(void **state)
{
    (void)state;
    fake_directory_write(fake_directory_path(directory, "file"), "", 0);
    assert_fails(FLP_IO_FAILED, flp_file_make_directories(fake_directory_path(directory, "file"), 0700), "Not a directory");
    assert_fails(FLP_IO_FAILED, flp_file_make_directories(fake_directory_path(directory, "file/below"), 0700), "/file");
    assert_int_equal(ENOTDIR, errno);
    assert_fails(FLP_IO_FAILED, flp_file_make_directories("", 0700), "make the directory");
}

static void a_file_that_may_be_missing_reads_as_an_empty_one(void **state)
{
    static const char *const missing[] = { "missing", "missing/below", "file/below" };
    char *bytes;
    size_t count;

    (void)state;
    fake_directory_write(fake_directory_path(directory, "file"), "text", 4);
    for (size_t i = 0; i < sizeof(missing) / sizeof(*missing); i++) {
        assert_succeeds(flp_file_read_if_any(AT_FDCWD, fake_directory_path(directory, missing[i]), &bytes, &count));
        assert_int_equal(0, count);
        assert_string_equal("", bytes);
        free(bytes);
    }
    assert_succeeds(flp_file_read_if_any(AT_FDCWD, fake_directory_path(directory, "file"), &bytes, &count));
    assert_string_equal("text", bytes);
    free(bytes);
    assert_fails(FLP_IO_FAILED, flp_file_read_if_any(AT_FDCWD, directory, &bytes, &count), "Is a directory");
}

static void appending_leaves_what_is_there(void **state)
{
    size_t count;
    char *text;

    (void)state;
    assert_succeeds(flp_file_append(AT_FDCWD, fake_directory_path(directory, "list"), 0644, "one\n", 4));
    assert_succeeds(flp_file_append(AT_FDCWD, fake_directory_path(directory, "list"), 0644, "two\n", 4));
    text = fake_directory_read(fake_directory_path(directory, "list"), &count);
    assert_int_equal(8, count);
    assert_memory_equal("one\ntwo\n", text, 8);
    free(text);
}

static void nothing_is_appended_through_a_link_or_to_a_full_disk(void **state)
{
    (void)state;
    assert_int_equal(0, symlink("elsewhere", fake_directory_path(directory, "link")));
    assert_fails(FLP_IO_FAILED, flp_file_append(AT_FDCWD, fake_directory_path(directory, "link"), 0644, "one\n", 4), "link: cannot open it");
    assert_fails(FLP_IO_FAILED, flp_file_append(AT_FDCWD, "/dev/full", 0644, "one\n", 4), "cannot write it: No space left on device");
}

int main(void)
{
#define FILE_TEST(name) cmocka_unit_test_setup_teardown(name, make_directory, remove_directory)
    const struct CMUnitTest tests[] = {
        FILE_TEST(a_file_is_read_whole_with_a_zero_behind),
        FILE_TEST(a_file_without_a_size_is_read_to_its_end),
        FILE_TEST(an_empty_file_is_no_bytes),
        FILE_TEST(a_missing_file_is_named_and_errno_kept),
        FILE_TEST(a_directory_is_no_file),
        FILE_TEST(publishing_replaces_the_file_and_leaves_nothing_else),
        FILE_TEST(publishing_works_below_a_descriptor),
        FILE_TEST(a_published_file_is_not_writable_by_others),
        FILE_TEST(publishing_into_a_missing_directory_fails),
        FILE_TEST(publishing_over_a_directory_fails_and_cleans_up),
        FILE_TEST(a_write_that_fails_half_way_leaves_nothing),
        FILE_TEST(directories_are_made_with_their_parents),
        FILE_TEST(a_file_in_the_way_of_a_directory_is_named),
        FILE_TEST(a_file_that_may_be_missing_reads_as_an_empty_one),
        FILE_TEST(appending_leaves_what_is_there),
        FILE_TEST(nothing_is_appended_through_a_link_or_to_a_full_disk),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
