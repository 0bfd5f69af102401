/* Single flight between threads and processes. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* syscall */
#endif
#include "fake_cache.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static int unlinks_first; /* before the next flock another process ends with its lock, and takes the file's name along */

/* In place of the C library's. */
int flock(int file, int operation)
{
    char command[512];

    if (unlinks_first) {
        unlinks_first = 0;
        snprintf(command, sizeof(command), "find '%s' -name '*.lock' -delete", fake_cache.user);
        assert_int_equal(0, system(command));
    }
    return (int)syscall(SYS_flock, file, operation);
}

static void a_lock_is_had_once_and_its_file_goes_with_it(void **state)
{
    int first, second;

    (void)state;
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &first);
    assert_true(first >= 0);
    assert_int_equal(1, fake_directory_count(fake_cache.user, ".lock"));
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0.05, &second);
    assert_int_equal(-1, second);
    flp_cubin_cache_unlock(fake_cache.cache, first);
    assert_int_equal(0, fake_directory_count(fake_cache.user, ".lock"));
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &second);
    assert_true(second >= 0);
    flp_cubin_cache_unlock(fake_cache.cache, second);
    flp_cubin_cache_unlock(fake_cache.cache, -1);
}

static void a_lock_on_a_file_without_a_name_is_none(void **state)
{
    int first, second;

    (void)state;
    unlinks_first = 1;
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 1, &first);
    assert_int_equal(0, unlinks_first);
    assert_true(first >= 0);
    assert_int_equal(1, fake_directory_count(fake_cache.user, ".lock"));
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &second);
    assert_int_equal(-1, second);
    flp_cubin_cache_unlock(fake_cache.cache, first);
}

static void a_lock_blocks_no_other_key(void **state)
{
    flp_cubin_key other = fake_cache_key;
    int first, second;

    (void)state;
    other.arch = "sm_80";
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &first);
    flp_cubin_cache_lock(fake_cache.cache, &other, 0, &second);
    assert_true(first >= 0 && second >= 0);
    flp_cubin_cache_unlock(fake_cache.cache, first);
    flp_cubin_cache_unlock(fake_cache.cache, second);
}

static void a_killed_holders_lock_is_free(void **state)
{
    pid_t child = fork();
    int result, lock;

    (void)state;
    if (child == 0) {
        flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &lock);
        raise(SIGKILL);
    }
    assert_int_equal(child, waitpid(child, &result, 0));
    assert_true(WIFSIGNALED(result));
    assert_int_equal(1, fake_directory_count(fake_cache.user, ".lock"));
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &lock);
    assert_true(lock >= 0);
    flp_cubin_cache_unlock(fake_cache.cache, lock);
    assert_int_equal(0, fake_directory_count(fake_cache.user, ".lock"));
}

static void a_child_forked_meanwhile_does_not_keep_the_lock(void **state)
{
    int lock, again, result;
    pid_t child;

    (void)state;
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &lock);
    child = fork();
    if (child == 0) {
        pause();
        _exit(0);
    }
    flp_cubin_cache_unlock(fake_cache.cache, lock);
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 0, &again);
    assert_true(again >= 0);
    flp_cubin_cache_unlock(fake_cache.cache, again);
    kill(child, SIGKILL);
    waitpid(child, &result, 0);
}

static atomic_int inside, most_inside;

static void *enter_and_leave(void *argument)
{
    (void)argument;
    for (int i = 0; i < 10; i++) {
        int lock, now;

        flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 20, &lock);
        if (lock < 0)
            return (void *)1;
        now = atomic_fetch_add(&inside, 1) + 1;
        if (now > atomic_load(&most_inside))
            atomic_store(&most_inside, now);
        atomic_fetch_sub(&inside, 1);
        flp_cubin_cache_unlock(fake_cache.cache, lock);
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
    fake_directory_write(fake_cache.user, "", 0);
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 5, &lock);
    assert_int_equal(-1, lock);
    fake_cache_open("", "", 0);
    flp_cubin_cache_lock(fake_cache.cache, &fake_cache_key, 5, &lock);
    assert_int_equal(-1, lock);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CACHE_TEST(a_lock_is_had_once_and_its_file_goes_with_it),
        CACHE_TEST(a_lock_on_a_file_without_a_name_is_none),
        CACHE_TEST(a_lock_blocks_no_other_key),
        CACHE_TEST(a_killed_holders_lock_is_free),
        CACHE_TEST(a_child_forked_meanwhile_does_not_keep_the_lock),
        CACHE_TEST(threads_enter_one_at_a_time),
        CACHE_TEST(where_no_lock_can_be_had_the_caller_goes_on),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
