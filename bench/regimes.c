/* Measures pairs in each regime and packs their statistics. */
#include "regimes.h"

#include <stdlib.h>

#include "base/status.h"
#include "statistics.h"

static json_t *pack(int repeats, double *ours_ms, double *baseline_ms)
{
    double *ratios = malloc((size_t)repeats * sizeof(*ratios));
    json_t *packed;

    if (!ratios)
        return NULL;
    for (int i = 0; i < repeats; i++)
        ratios[i] = baseline_ms[i] / ours_ms[i];
    packed = json_pack("{s:i, s:o, s:o, s:o}", "pairs", repeats, "ratio", flp_statistics_pack(ratios, repeats), "ours_ms",
                       flp_statistics_pack(ours_ms, repeats), "baseline_ms", flp_statistics_pack(baseline_ms, repeats));
    free(ratios);
    return packed;
}

static flp_status measure(const flp_gpu *gpu, CUstream stream, flp_measure_regime regime, const flp_measure_options *options, const flp_measured *ours,
                          const flp_measured *baseline, json_t *results)
{
    double *samples = malloc(2 * (size_t)options->repeats * sizeof(*samples));
    flp_status status;

    if (!samples)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for samples");
    status = flp_measure_pairs(gpu, stream, regime, options, ours, baseline, samples, samples + options->repeats);
    if (status == FLP_OK && json_object_set_new(results, flp_regime_name(regime), pack(options->repeats, samples, samples + options->repeats)) != 0)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
    free(samples);
    return status;
}

flp_status flp_regimes_measure(const flp_gpu *gpu, CUstream stream, unsigned regimes, const flp_measure_options *options, const flp_measured *ours,
                               const flp_measured *baseline, json_t *results)
{
    flp_status status = FLP_OK;

    for (int regime = 0; regime < FLP_REGIMES && status == FLP_OK; regime++)
        if (regimes >> regime & 1)
            status = measure(gpu, stream, regime, options, ours, baseline, results);
    return status;
}
