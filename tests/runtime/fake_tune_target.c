/* Candidates whose times are known. */
#include "fake_tune_target.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/status.h"
#include "core/plan.h"
#include "core/tuned.h"

fake_tune_state fake_tune;

struct flp_tune_target {
    flp_context *context;
    simulated_device device;
    flp_tune_candidate candidates[SIMULATED_MOST];
    flp_record_identity identity;
    double of_base; /* the base's time to no tuning's */
};

void fake_tune_reset(void)
{
    fake_tune = (fake_tune_state){
        .tiles = 3, .combines = 2, .tile_factors = { 1.2, 0.9, 1.5 }, .combine_factors = { 0.95, 1.1 }, .joined_factor = 1, .added_factor = 1, .failure = FLP_OK
    };
}

static void append(flp_tune_target *target, const char *kind, int number, flp_role role, double factor)
{
    const int at = target->device.count++;
    char item[64];

    snprintf(item, sizeof(item), "%s=%d", kind, number);
    if (flp_tuning_text_join((const char *const[]){ target->candidates[0].tuning, item }, 2, target->candidates[at].tuning) != FLP_OK)
        abort();
    target->candidates[at].role = role;
    target->device.truth[at] = target->device.truth[0] * factor;
    target->candidates[at].predicted_seconds = target->device.truth[at];
    target->candidates[at].workspace_bytes = 1024;
}

flp_status flp_tune_target_create(flp_context *context, const flp_operator_calls *calls, const void *problem, const flp_tune_target_options *options,
                                  flp_tune_target **target)
{
    const double base = 1e-3;
    flp_problem_storage normal;
    flp_tune_target *made;

    *target = NULL;
    fake_tune.created++;
    fake_tune.options = *options;
    fake_tune.options.base = NULL;
    snprintf(fake_tune.base, sizeof(fake_tune.base), "%s", options->base ? options->base : "");
    if (fake_tune.failure != FLP_OK)
        return flp_status_fail(fake_tune.failure, "no target today");
    made = calloc(1, sizeof(*made));
    if (!made || flp_problem_normalize(calls->op, problem, &normal) != FLP_OK || flp_tuned_problem_text(calls->op, &normal, made->identity.problem) != FLP_OK)
        abort();
    made->context = context;
    simulated_device_set((uint64_t)fake_tune.created, &base, 1, &made->device);
    made->device.in_threads = 1;
    simulated_device_calm(&made->device);
    made->candidates[0] = (flp_tune_candidate){ .role = FLP_ROLES, .predicted_seconds = base, .workspace_bytes = 1024 };
    memcpy(made->candidates[0].tuning, fake_tune.base, FLP_TUNING_BYTES);
    made->of_base = fake_tune.factor ? fake_tune.factor(made->identity.problem, made->candidates[0].tuning) : 1;
    made->device.truth[0] *= made->of_base;
    if (fake_tune.advised_factor > 0) {
        append(made, "combine.w=9,tile.group", 9, FLP_ROLES, fake_tune.advised_factor);
        made->candidates[1].is_advised = 1;
    }
    for (int i = 0; !options->alone && i < fake_tune.tiles && (options->limit == 0 || i < options->limit); i++)
        append(made, "tile.group", i + 1, FLP_ROLE_TILE, fake_tune.tile_factors[i]);
    for (int i = 0; !options->alone && i < fake_tune.combines && (options->limit == 0 || i < options->limit); i++)
        append(made, "combine.w", i + 1, FLP_ROLE_COMBINE, fake_tune.combine_factors[i]);
    if (fake_tune.wrong)
        made->device.kinds[fake_tune.wrong] = SIMULATED_WRONG;
    strcpy(made->identity.arch, "sm_90a");
    strcpy(made->identity.numerics, "linear_logp.r3.bf16.s132");
    memset(made->identity.templates, 'a', sizeof(made->identity.templates) - 1);
    memset(made->identity.selection, 'b', sizeof(made->identity.selection) - 1);
    if (fake_tune.real_identity &&
        flp_tuned_identify(context, &(flp_wanted_kernels){ made->identity.problem, 90, "sm_90a", made->candidates[0].tuning }, &made->identity) != FLP_OK)
        abort();
    if (fake_tune.target_hangs && strstr(made->identity.problem, fake_tune.target_hangs))
        pause();
    *target = made;
    return FLP_OK;
}

void flp_tune_target_destroy(flp_tune_target *target)
{
    free(target);
}

int flp_tune_target_count(const flp_tune_target *target)
{
    return target->device.count;
}

const flp_tune_candidate *flp_tune_target_candidate(const flp_tune_target *target, int candidate)
{
    return &target->candidates[candidate];
}

flp_status flp_tune_target_join(flp_tune_target *target, const int *candidates, int count, int *candidate)
{
    double factor = fake_tune.joined_factor;
    char text[FLP_TUNING_BYTES];
    size_t length = 0;

    *candidate = target->device.count;
    append(target, "", 0, FLP_ROLES, 1);
    for (int i = count; i-- > 0;) { /* combine stands before tile */
        factor *= target->device.truth[candidates[i]] / target->device.truth[0];
        length += (size_t)snprintf(text + length, sizeof(text) - length, "%s%s", length ? "," : "", target->candidates[candidates[i]].tuning);
    }
    memcpy(target->candidates[*candidate].tuning, text, sizeof(text));
    target->device.truth[*candidate] = target->device.truth[0] * factor;
    return FLP_OK;
}

flp_status flp_tune_target_add(flp_tune_target *target, const char *tuning, int *candidate)
{
    const double factor = fake_tune.factor ? fake_tune.factor(target->identity.problem, tuning) / target->of_base : fake_tune.added_factor;

    *candidate = target->device.count;
    append(target, "", 0, flp_tuning_text_role(tuning), fabs(factor));
    if (factor < 0)
        target->device.kinds[*candidate] = SIMULATED_WRONG;
    snprintf(target->candidates[*candidate].tuning, FLP_TUNING_BYTES, "%s", tuning);
    return FLP_OK;
}

flp_status flp_tune_target_follow(flp_tune_target *target, const char *tuning)
{
    int candidate = 0;

    while (candidate < target->device.count && strcmp(target->candidates[candidate].tuning, tuning) != 0)
        candidate++;
    if (candidate == target->device.count)
        flp_tune_target_add(target, tuning, &candidate);
    target->candidates[candidate].is_advised = candidate > 0;
    return FLP_OK;
}

int flp_tune_target_count_offers(const flp_tune_target *target)
{
    (void)target;
    return fake_tune.offers;
}

flp_status flp_tune_target_offer(flp_tune_target *target, int candidate, int *count)
{
    char item[64];

    for (*count = 0; *count < fake_tune.offers; ++*count) {
        const int at = target->device.count;

        append(target, "", 0, FLP_ROLES, fake_tune.offer_factors[*count] * target->device.truth[candidate] / target->device.truth[0]);
        snprintf(item, sizeof(item), "chunks.rows=%d", *count + 1);
        if (flp_tuning_text_join((const char *const[]){ target->candidates[candidate].tuning, item }, 2, target->candidates[at].tuning) != FLP_OK)
            abort();
    }
    return FLP_OK;
}

const char *flp_tune_target_problem(const flp_tune_target *target)
{
    return target->identity.problem;
}

const flp_record_identity *flp_tune_target_identity(const flp_tune_target *target)
{
    return &target->identity;
}

flp_status flp_tune_target_identify(const flp_tune_target *target, int candidate, flp_record_identity *identity)
{
    const flp_wanted_kernels wanted = { target->identity.problem, 90, "sm_90a", target->candidates[candidate].tuning };

    *identity = target->identity;
    if (fake_tune.templates && candidate)
        snprintf(identity->templates, sizeof(identity->templates), "%064d", fake_tune.templates);
    return fake_tune.real_identity ? flp_tuned_identify(target->context, &wanted, identity) : FLP_OK;
}

flp_status flp_tune_target_record(const flp_tune_target *target, flp_records *records, const flp_environment *environment, flp_record *record,
                                  flp_record_match *match)
{
    return flp_records_find(records, &target->identity, environment, record, match);
}

flp_status flp_tune_target_publish(const flp_tune_target *target, flp_records *records, const flp_record *record)
{
    const flp_wanted_kernels wanted = { target->identity.problem, 90, "sm_90a", "" };

    return fake_tune.real_identity ? flp_tuned_publish(target->context, records, &wanted, record) : flp_records_publish(records, record);
}

void flp_tune_target_sample(const flp_tune_target *target, int candidate, double seconds, flp_text *lines)
{
    flp_text_append(lines, "%lld auto %s %s\n", (long long)(seconds * 1e12), target->identity.problem, target->candidates[candidate].tuning);
}

flp_status flp_tune_target_prepare(flp_tune_target *target, int candidate)
{
    if (candidate && candidate == fake_tune.compilation_hangs)
        pause();
    if (fake_tune.slow_compilation_microseconds && (!fake_tune.slow_compilation || fake_tune.slow_compilation == candidate))
        usleep((useconds_t)fake_tune.slow_compilation_microseconds);
    return target->device.device.compile(&target->device, candidate);
}

flp_status flp_tune_target_check(flp_tune_target *target, int candidate)
{
    if (fake_tune.slow_check_microseconds)
        usleep((useconds_t)fake_tune.slow_check_microseconds);
    return target->device.device.check(&target->device, candidate);
}

flp_status flp_tune_target_time(flp_tune_target *target, int candidate, double *seconds)
{
    double clock_mhz;

    if (candidate ? candidate == fake_tune.hangs : fake_tune.default_hangs || (fake_tune.base_hangs && target->candidates[0].tuning[0]))
        pause();
    fake_tune.timed++;
    if (fake_tune.slow_microseconds)
        usleep((useconds_t)fake_tune.slow_microseconds);
    return target->device.device.time(&target->device, candidate, seconds, &clock_mhz);
}
