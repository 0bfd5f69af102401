/* Times two operations in interleaved pairs: ours, baseline, ours, baseline, ... */
#ifndef FLP_BENCH_MEASURE_H
#define FLP_BENCH_MEASURE_H
#include "device/gpu.h"

/* Enqueues one operation on the stream that is measured. */
typedef struct {
    flp_status (*launch)(void *data);
    void *data;
} flp_measured;

typedef enum {
    FLP_BURST,     /* the device idles before each operation: clocks are high */
    FLP_SUSTAINED, /* back to back, after a warm-up of the same pairs: the device is at its power cap */
    FLP_SOLO,      /* each operation alone, back to back (solo.h): no pairs */
    FLP_REGIMES
} flp_measure_regime;

const char *flp_regime_name(flp_measure_regime regime); /* "burst", "sustained", "solo" */

typedef struct {
    int repeats;       /* pairs */
    double idle_ms;    /* burst: before each operation, which then runs once untimed and once timed */
    double warm_up_ms; /* sustained: how long pairs run before the first timed one */
    double solo_ms;    /* solo: how long each operation runs */
} flp_measure_options;

/* regime: burst or sustained. ours_ms, baseline_ms [repeats]: by events around each operation. */
flp_status flp_measure_pairs(const flp_gpu *gpu, CUstream stream, flp_measure_regime regime, const flp_measure_options *options, const flp_measured *ours,
                             const flp_measured *baseline, double *ours_ms, double *baseline_ms);
#endif
