/* Drift, noise, outliers and throttling of a device that does not exist. */
#include "simulated_device.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"

static const double drift_seconds = 15, clock_mhz = 1980, throttle_every_seconds = 60, throttle_seconds = 3, check_seconds = 0.02;

static uint64_t draw(simulated_device *device)
{
    uint64_t z = device->random += UINT64_C(0x9e3779b97f4a7c15);

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

double simulated_device_uniform(simulated_device *device)
{
    return (double)(draw(device) >> 11) * 0x1p-53;
}

static double between(simulated_device *device, double low, double high)
{
    return low + (high - low) * simulated_device_uniform(device);
}

static double normal(simulated_device *device)
{
    return sqrt(-2 * log(1 - simulated_device_uniform(device))) * cos(6.283185307179586 * simulated_device_uniform(device));
}

static double exponential(simulated_device *device, double mean)
{
    return -mean * log(1 - simulated_device_uniform(device));
}

/* Lets time pass: the drift is an Ornstein-Uhlenbeck process, throttling comes and goes. */
static void pass(simulated_device *device, double seconds)
{
    const double kept = exp(-seconds / drift_seconds);

    device->drift = kept * device->drift + sqrt(1 - kept * kept) * device->drift_size * normal(device);
    device->seconds += seconds;
    device->longest = fmax(device->longest, seconds);
    if (device->seconds < device->throttled_at)
        return;
    device->throttled_until = device->seconds + exponential(device, throttle_seconds);
    device->throttled_at = device->throttled_until + exponential(device, throttle_every_seconds);
    device->throttle = between(device, 0.5, 0.75);
}

static flp_status compile(void *self, int candidate)
{
    simulated_device *device = self;
    int now = atomic_fetch_add(&device->compiling, 1) + 1, most = atomic_load(&device->most_compiling);

    while (now > most && !atomic_compare_exchange_weak(&device->most_compiling, &most, now))
        continue;
    atomic_fetch_add(&device->compilations, 1);
    if (device->in_threads)
        usleep(2000);
    else
        pass(device, device->compile_seconds);
    atomic_fetch_sub(&device->compiling, 1);
    return device->kinds[candidate] == SIMULATED_UNCOMPILABLE ? flp_status_fail(FLP_COMPILE_FAILED, "candidate %d does not compile", candidate) : FLP_OK;
}

static flp_status check(void *self, int candidate)
{
    simulated_device *device = self;
    const simulated_kind kind = device->kinds[candidate];

    pass(device, check_seconds);
    device->checks[candidate]++;
    if (kind == SIMULATED_WRONG || (kind == SIMULATED_FLAKY && device->checks[candidate] > 1))
        return flp_status_fail(FLP_INTERNAL, "candidate %d: row 0 is wrong", candidate);
    return FLP_OK;
}

static flp_status time_run(void *self, int candidate, double *seconds, double *clock)
{
    simulated_device *device = self;
    double rate, outlier;

    pass(device, device->idle_seconds);
    if (++device->runs[candidate] == device->fails_at && candidate == device->standard)
        return flp_status_fail(FLP_CUDA_FAILED, "the device is lost");
    rate = exp(device->drift) * (device->seconds < device->throttled_until ? device->throttle : 1);
    outlier = simulated_device_uniform(device) < device->outlier_chance ? between(device, 1.02, 1.5) : 1;
    *seconds = device->truth[candidate] / rate * outlier * exp(device->noise * normal(device));
    *clock = device->knows_clock ? clock_mhz * rate * exp(0.01 * normal(device)) : 0;
    pass(device, *seconds);
    return FLP_OK;
}

static double read_clock(void *self)
{
    return ((const simulated_device *)self)->seconds;
}

static void begin(uint64_t seed, int count, simulated_device *device)
{
    memset(device, 0, sizeof(*device));
    device->random = seed * UINT64_C(0x2545f4914f6cdd1d) + 1;
    device->count = count;
    device->knows_clock = 1;
    device->noise = 0.005;
    device->outlier_chance = 0.02;
    device->drift_size = 0.05;
    device->idle_seconds = 0.001;
    device->compile_seconds = 0.7;
    device->throttle = 1;
    device->throttled_at = exponential(device, throttle_every_seconds);
    device->drift = device->drift_size * normal(device);
    device->device = (flp_tuner_device){ device, compile, check, time_run, read_clock };
}

/* Names, workspaces and predictions of what has its kinds and times. */
static void finish(simulated_device *device, int same_workspace)
{
    device->best = device->standard;
    for (int i = 0; i < device->count; i++) {
        if (i != device->standard)
            snprintf(device->tunings[i], sizeof(device->tunings[i]), "tile.group=%d", (int)(draw(device) % 1000) * SIMULATED_MOST + i + 1);
        device->candidates[i] = (flp_tuner_candidate){
            .tuning = device->tunings[i],
            .predicted_seconds = device->truth[i] * exp(0.1 * normal(device)),
            .workspace_bytes = same_workspace ? 1024 : (int64_t)(draw(device) % 4) << 20,
        };
        if (device->kinds[i] == SIMULATED_SOUND && device->truth[i] < device->truth[device->best])
            device->best = i;
    }
}

void simulated_device_set(uint64_t seed, const double *truth, int count, simulated_device *device)
{
    begin(seed, count, device);
    memcpy(device->truth, truth, (size_t)count * sizeof(*truth));
    finish(device, 1);
}

void simulated_device_calm(simulated_device *device)
{
    device->noise = device->outlier_chance = device->drift_size = device->drift = 0;
    device->throttle = 1;
    device->throttled_until = 0;
    device->throttled_at = INFINITY;
}

/* A third close to the best, the others up to three times as slow; those that fail would win. */
static double draw_factor(simulated_device *device, simulated_kind kind)
{
    if (kind == SIMULATED_WRONG || kind == SIMULATED_FLAKY)
        return between(device, 0.6, 0.98);
    return exp(simulated_device_uniform(device) < 1.0 / 3 ? fabs(0.03 * normal(device)) : between(device, 0, 1.1));
}

void simulated_device_draw(uint64_t seed, simulated_device *device)
{
    double base;

    begin(seed, 0, device);
    device->count = 4 + (int)(draw(device) % (SIMULATED_MOST - 3));
    device->standard = (int)(draw(device) % (uint64_t)device->count);
    device->noise = between(device, 0.003, 0.01);
    device->drift_size = between(device, 0.03, 0.06);
    device->idle_seconds = simulated_device_uniform(device) < 0.5 ? 0.04 : 0.0005; /* burst, sustained */
    device->knows_clock = simulated_device_uniform(device) < 0.9;
    base = exp(between(device, log(20e-6), log(5e-3)));
    for (int i = 0; i < device->count; i++) {
        const double chance = simulated_device_uniform(device);

        if (i != device->standard)
            device->kinds[i] = chance < 0.04 ? SIMULATED_UNCOMPILABLE : chance < 0.07 ? SIMULATED_WRONG : chance < 0.08 ? SIMULATED_FLAKY : SIMULATED_SOUND;
        device->truth[i] = base * draw_factor(device, device->kinds[i]);
    }
    /* The default is a good choice, often the best. */
    device->truth[device->standard] = base * (simulated_device_uniform(device) < 0.3 ? 1 : exp(between(device, 0, 0.15)));
    finish(device, 0);
}

double simulated_device_loss(const simulated_device *device, int winner)
{
    return device->truth[winner] / device->truth[device->best] - 1;
}

double simulated_device_loss_to_default(const simulated_device *device, int winner)
{
    return device->truth[winner] / device->truth[device->standard] - 1;
}
