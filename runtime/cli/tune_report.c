/* Reports a result of fusedlogp tune, as JSON and as a plot. */
#include <time.h>
#include "cli/console.h"
#include "cli/plot.h"
#include "cli/tune.h"

static json_t *pack_candidate(const flp_tune_target *target, int number, const flp_tuner_figures *figures)
{
    static const char *const fates[] = { "untried", "rejected", "dropped", "left" };
    const flp_tune_candidate *candidate = flp_tune_target_candidate(target, number);
    json_t *packed = json_pack("{s:s, s:f, s:I, s:s}", "tuning", candidate->tuning, "predicted_seconds", candidate->predicted_seconds, "workspace_bytes",
                               (json_int_t)candidate->workspace_bytes, "fate", fates[figures->fate]);
    if (figures->rounds)
        json_object_update_new(packed, json_pack("{s:f, s:f, s:f, s:f, s:i}", "seconds", figures->seconds, "ratio", figures->ratio, "ratio_low",
                                                 figures->ratio_low, "ratio_high", figures->ratio_high, "rounds", figures->rounds));
    if (figures->fate == FLP_CANDIDATE_REJECTED)
        json_object_set_new(packed, "reason", flp_console_json_string(figures->reason));
    return packed;
}

json_t *flp_tune_report_pack(const flp_tune_target *target, const flp_tuner_result *result, const flp_tune_bench *bench)
{
    const flp_tuner_figures *winner = &result->figures[result->winner];
    json_t *candidates = json_array();
    for (int i = 0; i < flp_tune_target_count(target); i++)
        json_array_append_new(candidates, pack_candidate(target, i, &result->figures[i]));
    return json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:s, s:i, s:i, s:f, s:o}", "problem", flp_tune_target_problem(target), "arch",
                     flp_tune_target_identity(target)->arch, "device", bench->environment.device, "regime", flp_regime_names[bench->command->regime], "tuning",
                     flp_tune_target_candidate(target, result->winner)->tuning, "seconds", winner->seconds, "default_seconds", result->figures[0].seconds,
                     "ratio", winner->ratio, "ratio_low", winner->ratio_low, "ratio_high", winner->ratio_high, "ended", flp_tuning_end_names[result->ended],
                     "rounds", result->rounds, "repeated", result->repeated, "spent_seconds", result->spent_seconds, "candidates", candidates);
}

/* A case for flp_plot_ratios. It has speeds, the inverses of the ratios of times, so that the interval's ends are exchanged. */
static json_t *pack_case(json_t *result)
{
    const double ratio = json_number_value(json_object_get(result, "ratio")), low = json_number_value(json_object_get(result, "ratio_low"));
    const double high = json_number_value(json_object_get(result, "ratio_high"));
    if (!(ratio > 0 && low > 0 && high > 0))
        return NULL;
    return json_pack("{s:O, s:s, s:{s:{s:{s:f, s:f, s:f}}}}", "problem", json_object_get(result, "problem"), "baseline", "the default", "regimes",
                     json_string_value(json_object_get(result, "regime")), "ratio", "median", 1 / ratio, "p10", 1 / high, "p90", 1 / low);
}

flp_status flp_tune_report_plot(json_t *results, const char *path)
{
    const time_t now = time(NULL);
    struct tm parts;
    char date[16];
    json_t *cases = json_array(), *result, *device = NULL;
    size_t i;
    strftime(date, sizeof date, "%Y-%m-%d", gmtime_r(&now, &parts));
    json_array_foreach (results, i, result) {
        json_t *packed = pack_case(result);
        if (!packed)
            continue;
        json_array_append_new(cases, packed);
        device = json_object_get(result, "device");
    }
    json_t *report = json_pack("{s:{s:O*}, s:s, s:o}", "device", "name", device, "date", date, "cases", cases);
    flp_status status = flp_plot_ratios(report, "speed of the tuning beside the default: median and interval of the rounds", path);
    json_decref(report);
    return status;
}
