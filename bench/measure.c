/* Measures pairs of operations, in the burst and in the sustained regime. */
#include "measure.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/status.h"
#include "cli/console.h"

const char *flp_regime_name(flp_measure_regime regime)
{
    static const char *const names[] = { [FLP_BURST] = "burst", [FLP_SUSTAINED] = "sustained", [FLP_SOLO] = "solo" };

    return names[regime];
}

static flp_status record(const flp_gpu *gpu, CUevent event, CUstream stream)
{
    return flp_gpu_check(gpu, gpu->driver->event_record(event, stream), "cuEventRecord");
}

static flp_status elapsed(const flp_gpu *gpu, CUevent start, CUevent end, double *milliseconds)
{
    float measured = 0;
    flp_status status = flp_gpu_check(gpu, gpu->driver->event_elapsed(&measured, start, end), "cuEventElapsedTime");

    *milliseconds = measured;
    return status;
}

static flp_status create_events(const flp_gpu *gpu, CUevent *events, int count)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < count && status == FLP_OK; i++)
        status = flp_gpu_check(gpu, gpu->driver->event_create(&events[i], 0), "cuEventCreate");
    return status;
}

static flp_status time_one(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, CUevent *events, const flp_measured *measured,
                           double *milliseconds)
{
    flp_status status = flp_gpu_synchronize(gpu);

    usleep((useconds_t)(options->idle_ms * 1000));
    if (status == FLP_OK)
        status = measured->launch(measured->data);
    if (status == FLP_OK)
        status = record(gpu, events[0], stream);
    if (status == FLP_OK)
        status = measured->launch(measured->data);
    if (status == FLP_OK)
        status = record(gpu, events[1], stream);
    if (status == FLP_OK)
        status = flp_gpu_check(gpu, gpu->driver->event_synchronize(events[1]), "cuEventSynchronize");
    return status == FLP_OK ? elapsed(gpu, events[0], events[1], milliseconds) : status;
}

static flp_status measure_burst(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, CUevent *events, const flp_measured *ours,
                                const flp_measured *baseline, double *ours_ms, double *baseline_ms)
{
    flp_status status = FLP_OK;

    for (int i = 0; i < options->repeats && status == FLP_OK; i++) {
        status = time_one(gpu, stream, options, events, ours, &ours_ms[i]);
        if (status == FLP_OK)
            status = time_one(gpu, stream, options, events, baseline, &baseline_ms[i]);
    }
    return status;
}

static flp_status warm_up(const flp_gpu *gpu, const flp_measure_options *options, const flp_measured *ours, const flp_measured *baseline)
{
    const double end = flp_clock_seconds() + options->warm_up_ms / 1000;
    flp_status status;

    do {
        status = ours->launch(ours->data);
        if (status == FLP_OK)
            status = baseline->launch(baseline->data);
        if (status == FLP_OK)
            status = flp_gpu_synchronize(gpu);
    } while (status == FLP_OK && flp_clock_seconds() < end);
    return status;
}

/* Records one event between any two operations; the host waits only after all have been enqueued. */
static flp_status measure_sustained(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, CUevent *events, const flp_measured *ours,
                                    const flp_measured *baseline, double *ours_ms, double *baseline_ms)
{
    const int count = 2 * options->repeats;
    flp_status status = warm_up(gpu, options, ours, baseline);

    if (status == FLP_OK)
        status = record(gpu, events[0], stream);
    for (int i = 0; i < count && status == FLP_OK; i++) {
        const flp_measured *next = i % 2 ? baseline : ours;
        status = next->launch(next->data);
        if (status == FLP_OK)
            status = record(gpu, events[i + 1], stream);
    }
    if (status == FLP_OK)
        status = flp_gpu_synchronize(gpu);
    for (int i = 0; i < count && status == FLP_OK; i++)
        status = elapsed(gpu, events[i], events[i + 1], i % 2 ? &baseline_ms[i / 2] : &ours_ms[i / 2]);
    return status;
}

flp_status flp_measure_pairs(const flp_gpu *gpu, CUstream stream, flp_measure_regime regime, const flp_measure_options *options, const flp_measured *ours,
                             const flp_measured *baseline, double *ours_ms, double *baseline_ms)
{
    const int count = 2 * options->repeats + 1;
    CUevent *events = calloc((size_t)count, sizeof(*events));
    flp_status status;

    if (!events)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for events");
    status = create_events(gpu, events, count);
    if (status == FLP_OK)
        status = (regime == FLP_BURST ? measure_burst : measure_sustained)(gpu, stream, options, events, ours, baseline, ours_ms, baseline_ms);
    for (int i = 0; i < count && events[i]; i++)
        gpu->driver->event_destroy(events[i]);
    free(events);
    return status;
}
