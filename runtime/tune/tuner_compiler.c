/* The queue between the threads that compile and the thread that times. */
#define _GNU_SOURCE /* gettid by its number */
#include "tune/tuner_compiler.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mutex.h"
#include "base/status.h"
#include "base/thread.h"

enum { MOST_JOBS = 256, NICENESS = 10, WAIT_NANOSECONDS = 100000000 };

struct flp_tuner_compiler {
    const flp_tuner_device *device;
    const int *order;
    int threads;
    pthread_t handles[MOST_JOBS];
    pthread_mutex_t mutex; /* guards what follows */
    pthread_cond_t done;
    int count, next;               /* of order: how many are to be compiled, and which is begun next */
    int finished, taken;           /* elements of `compiled` that are filled in, and that were taken */
    flp_tuner_compiled compiled[]; /* in the order in which they were done */
};

/* -1: none is left. The caller has the mutex. */
static int begin_next(flp_tuner_compiler *compiler)
{
    return compiler->next < compiler->count ? compiler->order[compiler->next++] : -1;
}

static flp_tuner_compiled compile(const flp_tuner_device *device, int candidate)
{
    flp_tuner_compiled compiled = { .candidate = candidate };

    compiled.status = device->compile(device->self, candidate);
    if (compiled.status != FLP_OK)
        snprintf(compiled.reason, sizeof(compiled.reason), "%s", flp_error_message());
    return compiled;
}

/* A thread that compiles. It has a lower priority than the thread that times: if that one had to wait for a core, the wait would count as the candidate's
 * time. */
static void *work(void *argument)
{
    flp_tuner_compiler *compiler = argument;
    int candidate;

    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), NICENESS);
    flp_mutex_lock(&compiler->mutex);
    while ((candidate = begin_next(compiler)) >= 0) {
        flp_tuner_compiled compiled;

        flp_mutex_unlock(&compiler->mutex);
        compiled = compile(compiler->device, candidate);
        flp_mutex_lock(&compiler->mutex);
        compiler->compiled[compiler->finished++] = compiled;
        pthread_cond_signal(&compiler->done);
    }
    flp_mutex_unlock(&compiler->mutex);
    return NULL;
}

flp_status flp_tuner_compiler_create(const flp_tuner_device *device, const int *order, int count, int jobs, flp_tuner_compiler **compiler)
{
    flp_tuner_compiler *made = calloc(1, sizeof(*made) + (size_t)count * sizeof(made->compiled[0]));

    *compiler = made;
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for %d candidates", count);
    made->device = device;
    made->order = order;
    made->count = count;
    pthread_mutex_init(&made->mutex, NULL);
    pthread_cond_init(&made->done, NULL);
    while (made->threads < jobs && made->threads < count && made->threads < MOST_JOBS && flp_thread_start(&made->handles[made->threads], NULL, work, made) == 0)
        made->threads++;
    return FLP_OK;
}

void flp_tuner_compiler_cease(flp_tuner_compiler *compiler)
{
    flp_mutex_lock(&compiler->mutex);
    compiler->count = compiler->next;
    flp_mutex_unlock(&compiler->mutex);
}

void flp_tuner_compiler_destroy(flp_tuner_compiler *compiler)
{
    if (!compiler)
        return;
    flp_tuner_compiler_cease(compiler);
    for (int i = 0; i < compiler->threads; i++)
        pthread_join(compiler->handles[i], NULL);
    pthread_cond_destroy(&compiler->done);
    pthread_mutex_destroy(&compiler->mutex);
    free(compiler);
}

int flp_tuner_compiler_busy(flp_tuner_compiler *compiler)
{
    int busy;

    flp_mutex_lock(&compiler->mutex);
    busy = compiler->taken < compiler->count;
    flp_mutex_unlock(&compiler->mutex);
    return busy;
}

static void wait_for_one(flp_tuner_compiler *compiler)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NANOSECONDS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_cond_timedwait(&compiler->done, &compiler->mutex, &until);
}

int flp_tuner_compiler_take(flp_tuner_compiler *compiler, int wait, flp_tuner_compiled *compiled)
{
    int candidate, found;

    flp_mutex_lock(&compiler->mutex);
    candidate = compiler->threads ? -1 : begin_next(compiler);
    if (candidate < 0 && wait && compiler->taken == compiler->finished)
        wait_for_one(compiler);
    found = compiler->taken < compiler->finished;
    if (found)
        *compiled = compiler->compiled[compiler->taken++];
    compiler->taken += candidate >= 0;
    flp_mutex_unlock(&compiler->mutex);
    if (candidate < 0)
        return found;
    *compiled = compile(compiler->device, candidate);
    return 1;
}
