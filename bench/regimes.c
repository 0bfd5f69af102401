/* Measures in each requested regime and packs the results. */
#include "regimes.h"

#include <stdlib.h>

#include "base/status.h"
#include "solo.h"
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

static void add_energy(json_t *packed, const flp_solo *ours, const flp_solo *baseline)
{
    json_object_set_new(packed, "ours_joules", json_real(ours->joules));
    json_object_set_new(packed, "baseline_joules", json_real(baseline->joules));
    json_object_set_new(packed, "ours_watts", json_real(ours->watts));
    json_object_set_new(packed, "baseline_watts", json_real(baseline->watts));
    json_object_set_new(packed, "energy_ratio", json_real(baseline->joules / ours->joules));
}

static flp_status measure_solo(const flp_gpu *gpu, CUstream stream, const flp_measure_options *options, const flp_measured *ours, const flp_measured *baseline,
                               json_t *results)
{
    char why[FLP_STATUS_MESSAGE_BYTES], why_baseline[FLP_STATUS_MESSAGE_BYTES];
    flp_solo own, others;
    json_t *packed;
    flp_status status = flp_solo_measure(gpu, stream, options, ours, &own, why);

    if (status == FLP_OK)
        status = flp_solo_measure(gpu, stream, options, baseline, &others, why_baseline);
    if (status != FLP_OK)
        return status;
    packed = pack(1, &own.milliseconds, &others.milliseconds);
    if (packed && !*why && !*why_baseline)
        add_energy(packed, &own, &others);
    else if (packed)
        json_object_set_new(packed, "no_joules", json_string(*why ? why : why_baseline));
    return json_object_set_new(results, flp_regime_name(FLP_SOLO), packed) == 0 ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a result");
}

flp_status flp_regimes_measure(const flp_gpu *gpu, CUstream stream, unsigned regimes, const flp_measure_options *options, const flp_measured *ours,
                               const flp_measured *baseline, json_t *results)
{
    flp_status status = FLP_OK;

    for (int regime = 0; regime < FLP_SOLO && status == FLP_OK; regime++)
        if (regimes >> regime & 1)
            status = measure(gpu, stream, regime, options, ours, baseline, results);
    if (status == FLP_OK && regimes >> FLP_SOLO & 1)
        status = measure_solo(gpu, stream, options, ours, baseline, results);
    return status;
}
