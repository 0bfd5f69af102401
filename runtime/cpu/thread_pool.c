/* A pool of threads for the CPU path: the caller works too, so a pool whose threads cannot start still finishes. */
#define _GNU_SOURCE
#include "cpu/thread_pool.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"
#include <fenv.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct {
    flp_thread_pool *pool;
    int thread; /* 1 .. threads - 1; the caller of a run is 0 */
    pthread_t handle;
} worker;

struct flp_thread_pool {
    int threads;
    int started;          /* workers that were started; written while `turn` is held, as is the next */
    int has_warned;       /* 1: it has been said that one could not be started */
    pid_t process;        /* the process that created the pool: a forked child has no workers */
    pthread_mutex_t turn; /* held by the caller of flp_thread_pool_run for the whole run */
    pthread_mutex_t lock; /* guards the fields below, except next */
    pthread_cond_t work, done;
    uint64_t generation; /* counts runs; a worker joins each at most once */
    int active;          /* workers that run tasks of the current run */
    int stopping;
    int64_t count;
    void (*task)(void *data, int64_t index, int thread);
    void *data;
    atomic_llong next; /* the index that is handed out next */
    worker workers[];
};

int flp_thread_pool_cores(void)
{
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0)
        return CPU_COUNT(&set);
    long online = sysconf(_SC_NPROCESSORS_ONLN); /* more cores than cpu_set_t holds */
    return online < 1 ? 1 : online > FLP_THREAD_POOL_MOST ? FLP_THREAD_POOL_MOST : (int)online;
}

flp_status flp_thread_pool_create(int threads, flp_thread_pool **pool)
{
    if (threads < 0 || threads > FLP_THREAD_POOL_MOST)
        return flp_status_fail(FLP_BAD_ARGUMENT, "cpu_threads: got %d, wanted 0 .. %d", threads, FLP_THREAD_POOL_MOST);
    if (threads == 0)
        threads = flp_thread_pool_cores();
    flp_thread_pool *created = calloc(1, sizeof *created + (size_t)threads * sizeof(worker));
    if (created == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a pool of %d threads", threads);
    created->threads = threads;
    created->process = getpid();
    pthread_mutex_init(&created->turn, NULL);
    pthread_mutex_init(&created->lock, NULL);
    pthread_cond_init(&created->work, NULL);
    pthread_cond_init(&created->done, NULL);
    *pool = created;
    return FLP_OK;
}

int flp_thread_pool_threads(const flp_thread_pool *pool)
{
    return pool->threads;
}

static void take_tasks(flp_thread_pool *pool, int thread)
{
    for (;;) {
        int64_t index = atomic_fetch_add(&pool->next, 1);
        if (index >= pool->count)
            return;
        pool->task(pool->data, index, thread);
    }
}

static void *worker_main(void *argument)
{
    worker *self = argument;
    flp_thread_pool *pool = self->pool;
    uint64_t seen = 0;
    fesetenv(FE_DFL_ENV); /* not that of the thread whose call started this one */
    flp_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->stopping && pool->generation == seen)
            pthread_cond_wait(&pool->work, &pool->lock);
        if (pool->stopping)
            break;
        seen = pool->generation;
        /* This worker woke after the run had ended: the task's data may no longer exist. */
        if (pool->task == NULL)
            continue;
        pool->active++;
        flp_mutex_unlock(&pool->lock);
        take_tasks(pool, self->thread);
        flp_mutex_lock(&pool->lock);
        if (--pool->active == 0)
            pthread_cond_signal(&pool->done);
    }
    flp_mutex_unlock(&pool->lock);
    return NULL;
}

static void start_workers(flp_thread_pool *pool, int wanted)
{
    if (pool->started >= wanted)
        return;
    while (pool->started < wanted) {
        worker *next = &pool->workers[pool->started];
        next->pool = pool;
        next->thread = pool->started + 1;
        int error = flp_thread_start(&next->handle, NULL, worker_main, next);
        if (error != 0) {
            if (!pool->has_warned)
                flp_log_warning("thread %d of %d did not start: %s", next->thread, pool->threads, strerror(error));
            pool->has_warned = 1;
            break;
        }
        pool->started++;
    }
}

void flp_thread_pool_run(flp_thread_pool *pool, int64_t count, void (*task)(void *data, int64_t index, int thread), void *data)
{
    /* One task needs no other thread; a forked child has none, and its locks may be held by threads that are gone. */
    if (count <= 1 || pool->threads == 1 || pool->process != getpid()) {
        for (int64_t index = 0; index < count; index++)
            task(data, index, 0);
        return;
    }
    flp_mutex_lock(&pool->turn);
    start_workers(pool, count < pool->threads ? (int)count - 1 : pool->threads - 1);
    flp_mutex_lock(&pool->lock);
    pool->count = count;
    pool->task = task;
    pool->data = data;
    atomic_store(&pool->next, 0);
    pool->generation++;
    pthread_cond_broadcast(&pool->work);
    flp_mutex_unlock(&pool->lock);

    take_tasks(pool, 0);

    flp_mutex_lock(&pool->lock);
    while (pool->active > 0)
        pthread_cond_wait(&pool->done, &pool->lock);
    pool->task = NULL;
    flp_mutex_unlock(&pool->lock);
    flp_mutex_unlock(&pool->turn);
}

void flp_thread_pool_destroy(flp_thread_pool *pool)
{
    if (pool == NULL)
        return;
    if (pool->process == getpid()) {
        flp_mutex_lock(&pool->lock);
        pool->stopping = 1;
        pthread_cond_broadcast(&pool->work);
        flp_mutex_unlock(&pool->lock);
        for (int i = 0; i < pool->started; i++)
            pthread_join(pool->workers[i].handle, NULL);
        pthread_cond_destroy(&pool->work);
        pthread_cond_destroy(&pool->done);
        pthread_mutex_destroy(&pool->lock);
        pthread_mutex_destroy(&pool->turn);
    }
    free(pool);
}
