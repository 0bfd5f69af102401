/* Keeps the device busy with one operation and meanwhile reads NVML's energy counter. */
#include "solo.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"
#include "cuda/nvml.h"

/* Two batches are in flight while the counter is read, which takes up to a millisecond. */
static const double batch_seconds = 4e-3;
enum { MOST_IN_BATCH = 4096 };

/* The counter's values, in mJ, when it first moved and when it last did. */
typedef struct {
    nvmlDevice_t handle; /* NULL: there is none */
    uint64_t now, first, last;
    double first_at, last_at; /* seconds; 0: it has not moved */
} counter;

static flp_status launch_batch(const flp_measured *measured, int operations)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < operations && status == FLP_OK; i++)
        status = measured->launch(measured->data);
    return status;
}

/* *batch: operations that take about batch_seconds. */
static flp_status warm_up(const flp_gpu *gpu, const flp_measured *measured, double seconds, int *batch)
{
    const double end = flp_clock_seconds() + seconds;
    double start, now = 0;
    flp_status status;

    *batch = 1;
    do {
        start = flp_clock_seconds();
        status = launch_batch(measured, *batch);
        if (status == FLP_OK)
            status = flp_gpu_synchronize(gpu);
        now = flp_clock_seconds();
        if (now - start < batch_seconds && *batch < MOST_IN_BATCH)
            *batch *= 2;
    } while (status == FLP_OK && now < end);
    return status;
}

/* FLP_NO_DRIVER: the counter cannot be read. */
static flp_status read_counter(counter *energy)
{
    const double at = flp_clock_seconds();
    const uint64_t before = energy->now;
    flp_status status = energy->handle ? flp_nvml_energy_mj(energy->handle, &energy->now) : FLP_OK;

    if (status != FLP_OK || energy->now == before)
        return status;
    if (energy->first_at == 0) {
        energy->first = energy->now;
        energy->first_at = at;
    }
    energy->last = energy->now;
    energy->last_at = at;
    return FLP_OK;
}

/* Launches batches for `seconds`, two of them in flight, and reads the counter after each. Adds to *operations how many operations were launched; the last
 * batch may still run on return. events: two. */
static flp_status run_for(const flp_gpu *gpu, CUstream stream, const flp_measured *measured, double seconds, int batch, CUevent *events, counter *energy,
                          int64_t *operations)
{
    const double end = flp_clock_seconds() + seconds;
    flp_status status = FLP_OK;

    for (int i = 0; status == FLP_OK && (i < 2 || flp_clock_seconds() < end); i++) {
        status = launch_batch(measured, batch);
        if (status == FLP_OK)
            status = flp_gpu_check(gpu, gpu->driver->event_record(events[i % 2], stream), "cuEventRecord");
        if (status == FLP_OK && i > 0)
            status = flp_gpu_check(gpu, gpu->driver->event_synchronize(events[(i + 1) % 2]), "cuEventSynchronize");
        if (status == FLP_OK && read_counter(energy) != FLP_OK)
            energy->handle = NULL;
        *operations += batch;
    }
    return status;
}

/* events: begin, end, and two for run_for. */
static flp_status time_alone(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, const flp_measured *measured, CUevent *events,
                             counter *energy, double *milliseconds)
{
    float all = 0;
    int64_t operations = 0;
    int batch;
    flp_status status = warm_up(gpu, measured, options->solo_ms / 4e3, &batch);

    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->event_record(events[0], stream), "cuEventRecord");
    if (status == FLP_OK)
        status = run_for(gpu, stream, measured, options->solo_ms / 1e3, batch, events + 2, energy, &operations);
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->event_record(events[1], stream), "cuEventRecord");
    if (status == FLP_OK)
        status = flp_gpu_synchronize(gpu);
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->event_elapsed(&all, events[0], events[1]), "cuEventElapsedTime");
    *milliseconds = status == FLP_OK ? all / (double)operations : 0;
    return status;
}

/* Opens the counter. why: the reason that there is none, else "". The thread's error message stays as it was. */
static void open_counter(const flp_gpu *gpu, counter *energy, char *why)
{
    char callers_message[FLP_STATUS_MESSAGE_BYTES];

    *energy = (counter){ 0 };
    *why = 0;
    flp_status_keep_message(callers_message);
    if (flp_nvml_find(gpu->device, &energy->handle) != FLP_OK || flp_nvml_energy_mj(energy->handle, &energy->now) != FLP_OK) {
        energy->handle = NULL;
        flp_status_keep_message(why);
    }
    flp_status_restore_message(callers_message);
}

flp_status flp_solo_measure(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, const flp_measured *measured, flp_solo *result, char *why)
{
    CUevent events[4] = { NULL };
    counter energy;
    flp_status status = FLP_OK;

    *result = (flp_solo){ 0 };
    open_counter(gpu, &energy, why);
    for (int i = 0; i < 4 && status == FLP_OK; i++)
        status = flp_gpu_check(gpu, gpu->driver->event_create(&events[i], 0), "cuEventCreate");
    if (status == FLP_OK)
        status = time_alone(gpu, stream, options, measured, events, &energy, &result->milliseconds);
    for (int i = 0; i < 4 && events[i]; i++)
        gpu->driver->event_destroy(events[i]);
    if (status != FLP_OK || *why)
        return status;
    if (energy.last_at > energy.first_at) {
        result->watts = (double)(energy.last - energy.first) / 1e3 / (energy.last_at - energy.first_at);
        result->joules = result->watts * result->milliseconds / 1e3;
    } else {
        snprintf(why, FLP_STATUS_MESSAGE_BYTES, "NVML's energy counter moved less than twice in %g ms", options->solo_ms);
    }
    return FLP_OK;
}
