/* A device of which the true times are known, and which measures them as an H200 at its power cap does: rates drift by 10 to 20 % within a minute, runs
 * scatter by 0.3 to 1 % around that, one in fifty is an outlier, and for some seconds at a time the clock is throttled. */
#ifndef FLP_TESTS_SIMULATED_DEVICE_H
#define FLP_TESTS_SIMULATED_DEVICE_H
#include <stdatomic.h>

#include "tune/tuner.h"

enum { SIMULATED_MOST = 64 };

typedef enum {
    SIMULATED_SOUND,
    SIMULATED_UNCOMPILABLE,
    SIMULATED_WRONG, /* its check fails; it is faster than all others */
    SIMULATED_FLAKY  /* its check fails from the second time on; it is faster than all others */
} simulated_kind;

typedef struct {
    flp_tuner_candidate candidates[SIMULATED_MOST];
    char tunings[SIMULATED_MOST][32];
    simulated_kind kinds[SIMULATED_MOST];
    double truth[SIMULATED_MOST]; /* seconds, undisturbed */
    int count, standard, best;    /* best: the fastest sound one */
    flp_tuner_device device;

    double noise;                                   /* of a run, as a part */
    double outlier_chance;                          /* of a run that takes up to half as long again */
    double drift_size;                              /* standard deviation of the rate's logarithm */
    double idle_seconds, compile_seconds;           /* before each run; of a compilation, on the device's clock where the calling thread compiles */
    int knows_clock, in_threads;                    /* in_threads: compilations come from others, and take their time of the day */
    double seconds;                                 /* now */
    double longest;                                 /* of anything that was done */
    double drift;                                   /* logarithm of the rate */
    double throttle, throttled_until, throttled_at; /* the clock's part, until when, and when next */
    uint64_t random;
    int checks[SIMULATED_MOST], runs[SIMULATED_MOST];
    atomic_int compilations, compiling, most_compiling;
    int fails_at; /* the run of the default that fails; 0: none */
} simulated_device;

/* The seed's device: 4 to 64 candidates, among them sound ones close to the best, and in some of them such as fail. */
void simulated_device_draw(uint64_t seed, simulated_device *device);

/* So many sound candidates, of which number 0 is the default, with these true times and the same workspace. */
void simulated_device_set(uint64_t seed, const double *truth, int count, simulated_device *device);

/* Measures the true times from now on. Where compilations take their time of the day, how many rounds there are is not the same twice, nor would what
 * is drawn be. */
void simulated_device_calm(simulated_device *device);

double simulated_device_uniform(simulated_device *device); /* in [0, 1) */

/* What a winner costs beside the best, and beside the default: 0.01 is 1 %. */
double simulated_device_loss(const simulated_device *device, int winner);
double simulated_device_loss_to_default(const simulated_device *device, int winner);
#endif
