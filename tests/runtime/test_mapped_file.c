/* Mapped files: what may be mapped, and what happens to one that changes meanwhile. */
#include "cli/mapped_file.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "cli/console.h"
#include "assertions.h"
#include "fake_directory.h"

enum { PAGES = 4, MANY = 20, MESSAGE_BYTES = 1024 };

static const char *directory;
static size_t page;

static int start(void **state)
{
    (void)state;
    directory = fake_directory_make();
    page = (size_t)sysconf(_SC_PAGESIZE);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    fake_directory_remove(directory);
    return 0;
}

/* PAGES whole pages and 100 bytes of 'x', last written to long ago. */
static const char *make(const char *name)
{
    const struct timespec times[2] = { { 1000000000, 0 }, { 1000000000, 0 } };
    const char *path = fake_directory_path(directory, name);
    size_t count = PAGES * page + 100;
    char *bytes = malloc(count);

    memset(bytes, 'x', count);
    fake_directory_write(path, bytes, count);
    assert_int_equal(0, utimensat(AT_FDCWD, path, times, 0));
    free(bytes);
    return path;
}

static void a_file_is_mapped_whole(void **state)
{
    flp_mapped_file file;

    (void)state;
    assert_succeeds(flp_mapped_file_open(make("a"), &file));
    assert_int_equal(PAGES * page + 100, file.count);
    for (size_t i = 0; i < file.count; i++)
        assert_int_equal('x', ((char *)file.bytes)[i]);
    assert_succeeds(flp_mapped_file_check(&file));
    flp_mapped_file_close(&file);
    assert_null(file.bytes);
    flp_mapped_file_close(&file);
}

static void what_cannot_be_mapped_is_refused_at_once(void **state)
{
    flp_mapped_file file;

    (void)state;
    fake_directory_write(fake_directory_path(directory, "empty"), "", 0);
    assert_fails(FLP_BAD_ARGUMENT, flp_mapped_file_open(fake_directory_path(directory, "empty"), &file), "the file is empty");
    assert_fails(FLP_IO_FAILED, flp_mapped_file_open(directory, &file), "a directory, wanted a regular file");
    assert_fails(FLP_IO_FAILED, flp_mapped_file_open("/dev/null", &file), "a device or socket, wanted");
    assert_int_equal(0, mkfifo(fake_directory_path(directory, "pipe"), 0600));
    alarm(20); /* a pipe without a writer must not hold it */
    assert_fails(FLP_IO_FAILED, flp_mapped_file_open(fake_directory_path(directory, "pipe"), &file), "a pipe, wanted a regular file");
    alarm(0);
    assert_null(file.bytes);
    assert_fails(FLP_IO_FAILED, flp_mapped_file_open(fake_directory_path(directory, "none"), &file), "No such file");
}

/* Inside the last page nothing else tells: the bytes behind the end read as 0. */
static void another_size_is_seen(void **state)
{
    const char *path = make("b");
    flp_mapped_file file;

    (void)state;
    assert_succeeds(flp_mapped_file_open(path, &file));
    assert_int_equal(0, truncate(path, (off_t)file.count - 1));
    assert_fails(FLP_IO_FAILED, flp_mapped_file_check(&file), "bytes when it was opened and has");
    flp_mapped_file_close(&file);
}

static void other_bytes_are_seen(void **state)
{
    const char *path = make("c");
    flp_mapped_file file;
    FILE *writer;

    (void)state;
    assert_succeeds(flp_mapped_file_open(path, &file));
    writer = fopen(path, "r+");
    assert_non_null(writer);
    assert_int_equal('y', fputc('y', writer));
    assert_int_equal(0, fclose(writer));
    assert_fails(FLP_IO_FAILED, flp_mapped_file_check(&file), "written to while it was read");
    flp_mapped_file_close(&file);
}

/* A file of the same name that takes its place is another one. */
static void a_renamed_file_is_still_the_one_that_was_opened(void **state)
{
    const char *path = make("d"), *other = make("e");
    flp_mapped_file file;

    (void)state;
    assert_succeeds(flp_mapped_file_open(path, &file));
    assert_int_equal(0, rename(other, path));
    assert_succeeds(flp_mapped_file_check(&file));
    flp_mapped_file_close(&file);
}

static void *read_byte(void *at)
{
    (void)*(volatile char *)at;
    return NULL;
}

/* In another process: maps a file `opened` times, cuts it short and reads its last page, with in_thread in a thread of the library. The wait status, and what
 * was said. */
static int read_cut_file(int opened, int in_thread, char *message)
{
    const char *path = make("cut"), *log = fake_directory_path(directory, "log");
    char *text;
    size_t count;
    int status;
    pid_t child = fork();

    if (child == 0) {
        flp_mapped_file files[MANY] = { 0 };
        pthread_t thread;
        char *last;

        if (!freopen(log, "w", stderr))
            abort();
        for (int i = 0; i < opened; i++)
            if (flp_mapped_file_open(path, &files[i]) != FLP_OK)
                abort();
        if (truncate(path, 10) != 0)
            abort();
        last = (char *)files[0].bytes + PAGES * page;
        if (!in_thread)
            read_byte(last);
        else if (flp_thread_start(&thread, NULL, read_byte, last) == 0)
            pthread_join(thread, NULL);
        _exit(0);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    text = fake_directory_read(log, &count);
    snprintf(message, MESSAGE_BYTES, "%s", text ? text : "");
    free(text);
    return status;
}

static void a_part_that_is_gone_ends_the_program_with_its_name(void **state)
{
    char message[MESSAGE_BYTES];
    int status;

    (void)state;
    for (int opened = 1; opened <= MANY; opened += MANY - 1)
        for (int in_thread = 0; in_thread < 2; in_thread++) {
            status = read_cut_file(opened, in_thread, message);
            assert_true(WIFEXITED(status));
            assert_int_equal(FLP_EXIT_FAILED, WEXITSTATUS(status));
            assert_contains(message, "cut: a part could not be read: the file was cut short");
        }
}

/* The guard is for the files alone: any other such fault is one of the program, and shows. */
static void another_fault_ends_as_before(void **state)
{
    const char *path = make("mine"), *own = make("own");
    int status;
    pid_t child = fork();

    (void)state;
    if (child == 0) {
        flp_mapped_file file;
        int descriptor = open(own, O_RDONLY);
        volatile char *bytes = mmap(NULL, PAGES * page, PROT_READ, MAP_PRIVATE, descriptor, 0);

        if (flp_mapped_file_open(path, &file) != FLP_OK || truncate(own, 0) != 0)
            abort();
        (void)bytes[0];
        _exit(0);
    }
    assert_int_equal(child, waitpid(child, &status, 0));
    assert_true(WIFSIGNALED(status));
    assert_int_equal(SIGBUS, WTERMSIG(status));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_file_is_mapped_whole, start, stop),
        cmocka_unit_test_setup_teardown(what_cannot_be_mapped_is_refused_at_once, start, stop),
        cmocka_unit_test_setup_teardown(another_size_is_seen, start, stop),
        cmocka_unit_test_setup_teardown(other_bytes_are_seen, start, stop),
        cmocka_unit_test_setup_teardown(a_renamed_file_is_still_the_one_that_was_opened, start, stop),
        cmocka_unit_test_setup_teardown(a_part_that_is_gone_ends_the_program_with_its_name, start, stop),
        cmocka_unit_test_setup_teardown(another_fault_ends_as_before, start, stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
