/* Compiles cases in a few threads, each of which takes the next case. */
#include "device/warm_up.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>

#include "device/device_test.h"

enum { MOST_THREADS = 32, SECONDS = 900 };

typedef struct {
    atomic_int next;
    int count;
    void (*make)(int index);
} queue;

static void *work(void *argument)
{
    queue *jobs = argument;
    const flp_gpu *gpu = &flp_device_test.gpu;
    int i;

    if (gpu->driver->context_set_current(gpu->context) != CUDA_SUCCESS)
        return NULL;
    while ((i = atomic_fetch_add(&jobs->next, 1)) < jobs->count)
        jobs->make(i);
    return NULL;
}

void flp_device_warm_up(int count, void (*make)(int index))
{
    queue jobs = { .count = count, .make = make };
    pthread_t threads[MOST_THREADS];
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int wanted = cores < 1 ? 1 : cores > MOST_THREADS ? MOST_THREADS : (int)cores;
    int started = 0;
    flp_counters counters;

    alarm(SECONDS);
    while (started < wanted && pthread_create(&threads[started], NULL, work, &jobs) == 0)
        started++;
    for (int i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    flp_context_counters(flp_device_test.context, &counters);
    fprintf(stderr, "# kernels: %lld compiled, %lld from the disk\n", (long long)counters.compiled, (long long)counters.disk_hits);
}
