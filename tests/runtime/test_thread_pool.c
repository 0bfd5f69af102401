/* The pool: every index once, thread numbers that are not shared, callers that take turns, a forked child. */
#include "cpu/thread_pool.h"
#include <fenv.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

enum { MOST_INDICES = 1000, MOST_POOL_THREADS = 8 };

typedef struct {
    int threads;
    atomic_int calls[MOST_INDICES];
    atomic_int inside[MOST_POOL_THREADS]; /* tasks that run under this number now */
    atomic_int wrong;                     /* a number out of range or used twice at once */
} record;

static void note(void *data, int64_t index, int thread)
{
    record *r = data;
    if (thread < 0 || thread >= r->threads) {
        atomic_fetch_add(&r->wrong, 1);
        return;
    }
    if (atomic_fetch_add(&r->inside[thread], 1) != 0)
        atomic_fetch_add(&r->wrong, 1);
    atomic_fetch_add(&r->calls[index], 1);
    atomic_fetch_sub(&r->inside[thread], 1);
}

static void expect_each_once(flp_thread_pool *pool, int64_t count)
{
    record *r = calloc(1, sizeof *r);
    r->threads = flp_thread_pool_threads(pool);
    flp_thread_pool_run(pool, count, note, r);
    for (int64_t i = 0; i < MOST_INDICES; i++)
        assert_int_equal(atomic_load(&r->calls[i]), i < count);
    assert_int_equal(atomic_load(&r->wrong), 0);
    free(r);
}

static void each_index_runs_once(void **state)
{
    (void)state;
    for (int threads = 1; threads <= MOST_POOL_THREADS; threads += 1) {
        flp_thread_pool *pool;
        assert_int_equal(flp_thread_pool_create(threads, &pool), FLP_OK);
        assert_int_equal(flp_thread_pool_threads(pool), threads);
        static const int64_t counts[] = { 0, 1, 2, 3, 7, MOST_INDICES };
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++)
            expect_each_once(pool, counts[i]);
        flp_thread_pool_destroy(pool);
    }
}

static void many_short_runs_end(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    assert_int_equal(flp_thread_pool_create(3, &pool), FLP_OK);
    for (int i = 0; i < 2000; i++)
        expect_each_once(pool, 3);
    flp_thread_pool_destroy(pool);
}

/* Two tasks that wait for each other, so that each of the two threads has one; and the rounding modes of both. */
typedef struct {
    pthread_barrier_t both;
    int modes[2];
} meeting;

static void meet(void *data, int64_t index, int thread)
{
    meeting *m = data;
    pthread_barrier_wait(&m->both);
    m->modes[thread] = fegetround();
    (void)index;
}

/* mode: the caller's rounding mode in the run. */
static meeting run_meeting(int mode)
{
    flp_thread_pool *pool;
    meeting m;
    pthread_barrier_init(&m.both, NULL, 2);
    assert_int_equal(flp_thread_pool_create(2, &pool), FLP_OK);
    assert_int_equal(fesetround(mode), 0);
    flp_thread_pool_run(pool, 2, meet, &m);
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    flp_thread_pool_destroy(pool);
    pthread_barrier_destroy(&m.both);
    return m;
}

/* The run ends: two threads were at work. */
static void tasks_run_side_by_side(void **state)
{
    (void)state;
    run_meeting(FE_TONEAREST);
}

/* A thread that starts has its creator's rounding mode, and keeps it. */
static void workers_round_to_nearest(void **state)
{
    (void)state;
    meeting m = run_meeting(FE_UPWARD);
    assert_int_equal(FE_UPWARD, m.modes[0]);
    assert_int_equal(FE_TONEAREST, m.modes[1]);
}

static void *call_many_times(void *pool)
{
    record *r = calloc(1, sizeof *r);
    r->threads = flp_thread_pool_threads(pool);
    for (int i = 0; i < 200; i++)
        flp_thread_pool_run(pool, 20, note, r);
    long wrong = atomic_load(&r->wrong);
    for (int i = 0; i < 20; i++)
        wrong += atomic_load(&r->calls[i]) != 200;
    free(r);
    return (void *)wrong;
}

static void callers_take_turns(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    pthread_t callers[3];
    assert_int_equal(flp_thread_pool_create(3, &pool), FLP_OK);
    for (int i = 0; i < 3; i++)
        assert_int_equal(pthread_create(&callers[i], NULL, call_many_times, pool), 0);
    for (int i = 0; i < 3; i++) {
        void *wrong;
        pthread_join(callers[i], &wrong);
        assert_null(wrong);
    }
    flp_thread_pool_destroy(pool);
}

static void a_forked_child_works_alone(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    assert_int_equal(flp_thread_pool_create(2, &pool), FLP_OK);
    expect_each_once(pool, 50); /* the threads run */
    pid_t child = fork();
    if (child == 0) {
        record *r = calloc(1, sizeof *r);
        r->threads = 1; /* the caller's own number only */
        flp_thread_pool_run(pool, 50, note, r);
        int wrong = atomic_load(&r->wrong);
        for (int i = 0; i < 50; i++)
            wrong += atomic_load(&r->calls[i]) != 1;
        free(r);
        flp_thread_pool_destroy(pool);
        _exit(wrong != 0);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    flp_thread_pool_destroy(pool);
}

static atomic_int running, ends;

static void wait_for_the_end(void *unused, int64_t index, int thread)
{
    (void)unused;
    (void)index;
    (void)thread;
    atomic_fetch_add(&running, 1);
    while (!atomic_load(&ends))
        sched_yield();
}

static void *run_until_the_end(void *pool)
{
    flp_thread_pool_run(pool, 2, wait_for_the_end, NULL);
    return NULL;
}

/* Its copy of the pool says for ever that a run is going on. */
static void a_child_forked_during_a_run_works_alone(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    pthread_t caller;
    int status;
    assert_int_equal(flp_thread_pool_create(2, &pool), FLP_OK);
    atomic_store(&running, 0);
    atomic_store(&ends, 0);
    assert_int_equal(pthread_create(&caller, NULL, run_until_the_end, pool), 0);
    while (atomic_load(&running) < 2)
        sched_yield();
    pid_t child = fork();
    if (child == 0) {
        record *r = calloc(1, sizeof *r);
        alarm(20); /* instead of waiting for ever */
        r->threads = 1;
        flp_thread_pool_run(pool, 50, note, r);
        _exit(atomic_load(&r->wrong) != 0);
    }
    atomic_store(&ends, 1);
    pthread_join(caller, NULL);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    flp_thread_pool_destroy(pool);
}

static void zero_means_the_available_cores(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    assert_int_equal(flp_thread_pool_create(0, &pool), FLP_OK);
    assert_in_range(flp_thread_pool_threads(pool), 1, sysconf(_SC_NPROCESSORS_CONF));
    flp_thread_pool_destroy(pool);
}

static void a_bad_number_of_threads_is_refused(void **state)
{
    (void)state;
    flp_thread_pool *pool;
    assert_int_equal(flp_thread_pool_create(-1, &pool), FLP_BAD_ARGUMENT);
    assert_non_null(strstr(flp_error_message(), "cpu_threads: got -1"));
    assert_int_equal(flp_thread_pool_create(1000000, &pool), FLP_BAD_ARGUMENT);
}

static void null_may_be_destroyed(void **state)
{
    (void)state;
    flp_thread_pool_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_index_runs_once),
        cmocka_unit_test(many_short_runs_end),
        cmocka_unit_test(workers_round_to_nearest),
        cmocka_unit_test(tasks_run_side_by_side),
        cmocka_unit_test(callers_take_turns),
        cmocka_unit_test(a_forked_child_works_alone),
        cmocka_unit_test(a_child_forked_during_a_run_works_alone),
        cmocka_unit_test(zero_means_the_available_cores),
        cmocka_unit_test(a_bad_number_of_threads_is_refused),
        cmocka_unit_test(null_may_be_destroyed),
    };
    alarm(120); /* a pool that hangs fails rather than blocking everything */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
