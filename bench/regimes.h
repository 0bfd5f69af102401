/* An operation beside its baseline, in each of the regimes that are asked for, as the results file has it. */
#ifndef FLP_BENCH_REGIMES_H
#define FLP_BENCH_REGIMES_H
#include <jansson.h>

#include "measure.h"

/* regimes: bits 1 << flp_measure_regime. results: an object, which gets a member for each, {"pairs", "ratio", "ours_ms", "baseline_ms"}; ratio:
 * baseline_ms / ours_ms of a pair. That of FLP_SOLO has one pair, one after the other, and beside these "ours_joules", "baseline_joules", "ours_watts",
 * "baseline_watts" and "energy_ratio", baseline_joules / ours_joules; or "no_joules", why there are none. */
flp_status flp_regimes_measure(const flp_gpu *gpu, CUstream stream, unsigned regimes, const flp_measure_options *options, const flp_measured *ours,
                               const flp_measured *baseline, json_t *results);
#endif
