/* Measures an operation beside its baseline in each requested regime, for the results file. */
#ifndef FLP_BENCH_REGIMES_H
#define FLP_BENCH_REGIMES_H
#include <jansson.h>

#include "measure.h"

/* regimes: bits 1 << flp_measure_regime. results: an object, which gets a member for each regime, {"pairs", "ratio", "ours_ms", "baseline_ms"}; ratio is
 * baseline_ms / ours_ms of a pair. The member of FLP_SOLO has one pair, whose operations ran alone, and in addition "ours_joules", "baseline_joules",
 * "ours_watts", "baseline_watts" and "energy_ratio", baseline_joules / ours_joules; or else "no_joules", why there are none. */
flp_status flp_regimes_measure(const flp_gpu *gpu, CUstream stream, unsigned regimes, const flp_measure_options *options, const flp_measured *ours,
                               const flp_measured *baseline, json_t *results);
#endif
