/* Runs the tuner over the candidates of a problem. */
#include "core/tune_run.h"

#include <math.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/status.h"

int flp_tune_has_hung(const flp_tune_target *target, int candidate, const flp_text *lines)
{
    flp_record_identity identity;

    return lines->length > 0 && flp_tune_target_identify(target, candidate, &identity) == FLP_OK &&
           flp_hung_has(lines, &identity, flp_tune_target_candidate(target, candidate)->tuning);
}

/* The part of the time for kernels, where launches are tuned too. */
static const double kernels_share = 0.75;
/* When the time is divided, a candidate that changes several roles counts as this many: a kernel of each role has to be compiled for it. */
static const double several_roles_weight = 4;

/* Stands for the predicted time of what a plan takes without a record. It is compiled first, because without its times nothing is recorded. */
static const double first_seconds = 1e-12;

/* A heat is a run of the tuner among the default, its number 0, and some other candidates. */
typedef struct {
    flp_tune_target *target;
    nvmlDevice_t clock;
    const flp_tuner_options *options;
    flp_tuner_result *result; /* of all heats together, by the target's numbers */
    double begun;
    double share;                    /* the part of the budget by whose end the current heats must be done */
    atomic_int compiled;             /* how many candidates; a winner is compiled in two heats, and counts once */
    atomic_bool *is_compiled;        /* by the target's numbers */
    int count;                       /* of this heat */
    int *numbers;                    /* [count]: the target's */
    flp_tuner_candidate *candidates; /* [count] */
} tuning;

static flp_status prepare(tuning *t, int candidate)
{
    const flp_tuner_options *options = t->options;
    flp_status status;

    if (options->has_hung && options->has_hung(options->data, t->numbers[candidate]))
        return flp_status_fail(FLP_NO_VARIANT, "it hung in an earlier tuning");
    if (options->compiling)
        options->compiling(options->data, t->numbers[candidate], 1);
    status = flp_tune_target_prepare(t->target, t->numbers[candidate]);
    if (options->compiling)
        options->compiling(options->data, t->numbers[candidate], 0);
    if (status == FLP_OK)
        t->candidates[candidate].workspace_bytes = flp_tune_target_candidate(t->target, t->numbers[candidate])->workspace_bytes;
    return status;
}

static flp_status compile(void *self, int candidate)
{
    tuning *t = self;
    flp_status status = prepare(t, candidate);

    if (!atomic_exchange(&t->is_compiled[t->numbers[candidate]], 1))
        t->compiled++;
    return status;
}

static flp_status check(void *self, int candidate)
{
    tuning *t = self;

    return flp_tune_target_check(t->target, t->numbers[candidate]);
}

static flp_status time_run(void *self, int candidate, double *seconds, double *clock_mhz)
{
    tuning *t = self;
    flp_status status = flp_tune_target_time(t->target, t->numbers[candidate], seconds);

    *clock_mhz = flp_nvml_clock_mhz(t->clock);
    return status;
}

static double now(void *self)
{
    (void)self;
    return flp_clock_seconds();
}

/* Reports the progress of a heat as progress of the whole tuning. */
static int pass_progress(void *data, const flp_tuner_progress *heat)
{
    const tuning *t = data;
    const double budget = t->options->budget_seconds;
    flp_tuner_progress progress = *heat;

    if (!t->options->progress)
        return 0;
    progress.candidates = flp_tune_target_count(t->target);
    progress.compiled = t->compiled;
    progress.best = t->numbers[heat->best];
    if (budget > 0)
        progress.seconds_left = fmax(0, budget - (now(NULL) - t->begun));
    return t->options->progress(t->options->data, &progress);
}

static void pass_running(void *data, int candidate)
{
    const tuning *t = data;

    if (t->options->running)
        t->options->running(t->options->data, candidate < 0 ? -1 : t->numbers[candidate]);
}

static flp_status take_candidates(tuning *t, const int *numbers, int count)
{
    t->count = count + 1;
    free(t->numbers);
    free(t->candidates);
    t->numbers = calloc((size_t)t->count, sizeof(*t->numbers));
    t->candidates = calloc((size_t)t->count, sizeof(*t->candidates));
    if (!t->numbers || !t->candidates)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for %d candidates", t->count);
    for (int i = 0; i < t->count; i++) {
        const flp_tune_candidate *candidate = flp_tune_target_candidate(t->target, i ? numbers[i - 1] : 0);

        t->numbers[i] = i ? numbers[i - 1] : 0;
        /* For the tuner, the default is the candidate "". Here that is the target's base, and the empty tuning is a candidate like others, "default". */
        t->candidates[i] = (flp_tuner_candidate){ !i                     ? ""
                                                  : candidate->tuning[0] ? candidate->tuning
                                                                         : "default",
                                                  candidate->is_advised ? first_seconds : candidate->predicted_seconds, candidate->workspace_bytes };
    }
    return FLP_OK;
}

/* Merges a heat into the result. The heat's winner becomes the result's if nothing was timed before; if this is the last heat, unless its time was over before
 * it had a winner; or if it is faster than the winner so far. */
static void take_heat(tuning *t, const flp_tuner_result *heat, int is_last)
{
    flp_tuner_result *result = t->result;
    const flp_tuner_figures *winner = &heat->figures[heat->winner];
    const int wins = result->figures[0].rounds == 0 || (is_last && (heat->winner || heat->ended < FLP_TUNING_BUDGET)) ||
                     (winner->rounds && winner->ratio < result->figures[result->winner].ratio);

    for (int i = 1; i < t->count; i++)
        if (wins || !result->figures[t->numbers[i]].rounds)
            result->figures[t->numbers[i]] = heat->figures[i];
    if (wins) {
        result->winner = t->numbers[heat->winner];
        result->figures[0] = heat->figures[0]; /* the default as it was timed beside the winner */
        result->rounds = heat->rounds;
    }
    result->ended = heat->ended > result->ended ? heat->ended : result->ended;
    result->repeated += heat->repeated;
}

/* share: of the time that is left. *winner: the target's number. */
static flp_status run_heat(tuning *t, const int *numbers, int count, double share, int is_last, int *winner)
{
    const flp_tuner_device device = { t, compile, check, time_run, now };
    flp_tuner_options options = *t->options;
    flp_tuner_result heat = { 0 };
    flp_status status = take_candidates(t, numbers, count);

    options.progress = pass_progress;
    options.running = pass_running;
    options.data = t;
    if (options.budget_seconds > 0)
        options.budget_seconds = fmax(1e-9, share * (t->share * options.budget_seconds - (now(NULL) - t->begun)));
    if (status == FLP_OK)
        status = flp_tuner_run(t->candidates, t->count, &device, &options, &heat);
    if (status == FLP_OK) {
        *winner = t->numbers[heat.winner];
        take_heat(t, &heat, is_last);
    }
    flp_tuner_result_free(&heat);
    return status;
}

/* Writes the candidates from number `from` on that change a role to numbers, and returns how many they are. */
static int find_of_role(const flp_tune_target *target, flp_role role, int from, int *numbers)
{
    int count = 0;

    for (int i = from; i < flp_tune_target_count(target); i++)
        if (flp_tune_target_candidate(target, i)->role == role)
            numbers[count++] = i;
    return count;
}

/* Runs a heat of the candidates that change several roles, then one for each role. Candidates for a kernel that takes little of the time would lose to those of
 * other kernels in a common heat. winners: receives those of the heats' winners that are not the default. */
static flp_status run_roles(tuning *t, int *numbers, int *winners, int *won)
{
    const int candidates = flp_tune_target_count(t->target) - 1;
    double left = candidates + (several_roles_weight - 1) * find_of_role(t->target, FLP_ROLES, 1, numbers);
    const double total = left;
    flp_status status = FLP_OK;

    *won = 0;
    for (int i = 0; i <= FLP_ROLES && status == FLP_OK && t->result->ended < FLP_TUNING_INTERRUPTED; i++) {
        const flp_role role = (flp_role)(i ? i - 1 : FLP_ROLES);
        const int count = find_of_role(t->target, role, 1, numbers);
        const double weight = count * (i ? 1 : several_roles_weight);
        int winner = 0;

        if (!count)
            continue;
        /* A tenth of the time is kept for the winners together. */
        status = run_heat(t, numbers, count, count == candidates ? 1 : weight / (left + 0.1 * total), 0, &winner);
        left -= weight;
        if (winner)
            winners[(*won)++] = winner;
    }
    return status;
}

static flp_status begin(tuning *t)
{
    const size_t most = (size_t)flp_tune_target_count(t->target) + 1 + FLP_TUNE_TARGET_OFFERS;

    *t->result = (flp_tuner_result){ 0 };
    t->begun = now(NULL);
    t->share = 1;
    t->result->figures = calloc(most, sizeof(*t->result->figures));
    t->is_compiled = calloc(most, sizeof(*t->is_compiled));
    return t->result->figures && t->is_compiled ? FLP_OK : flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for its result");
}

static flp_status end(tuning *t, flp_status status)
{
    t->result->spent_seconds = now(NULL) - t->begun;
    t->result->compiled = t->compiled;
    free(t->is_compiled);
    free(t->numbers);
    free(t->candidates);
    return status;
}

flp_status flp_tune_run_among(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, const int *candidates, int count,
                              flp_tuner_result *result)
{
    tuning t = { .target = target, .clock = clock, .options = options, .result = result };
    flp_status status = begin(&t);
    int winner;

    if (status == FLP_OK)
        status = run_heat(&t, candidates, count, 1, 1, &winner);
    return end(&t, status);
}

/* Runs a heat of the winners: those of single roles, a candidate that joins all of these, and the winner of several roles, which is not joined because it may
 * change the same fields. There is no such heat if the joined text is longer than a tuning can be. */
static flp_status run_together(tuning *t, int *winners, int won)
{
    const int of_several = flp_tune_target_candidate(t->target, winners[0])->role == FLP_ROLES, of_one = won - of_several;
    int winner;
    flp_status status = of_one > 1 ? flp_tune_target_join(t->target, winners + of_several, of_one, &winners[won]) : FLP_OK;

    if (status == FLP_BAD_ARGUMENT)
        return FLP_OK;
    return status == FLP_OK ? run_heat(t, winners, won + (of_one > 1), 1, 1, &winner) : status;
}

/* Runs a heat of the tunings of launches (chunks), each with the best kernels: as the kernels are the same, nothing is compiled and only launches make a
 * difference. */
static flp_status run_offers(tuning *t)
{
    int numbers[FLP_TUNE_TARGET_OFFERS + 1], count, with_winner = 0, winner;
    flp_status status = flp_tune_target_offer(t->target, t->result->winner, &count);

    if (status == FLP_BAD_ARGUMENT)
        return FLP_OK;
    if (status != FLP_OK || !count)
        return status;
    if (t->result->winner)
        numbers[with_winner++] = t->result->winner;
    for (int i = 0; i < count; i++)
        numbers[with_winner + i] = flp_tune_target_count(t->target) - count + i;
    return run_heat(t, numbers, with_winner + count, 1, 1, &winner);
}

/* 1: it is not known whether what a plan takes without a record is faster than what was found. One that was dropped is slower, by however few rounds. */
static int is_untold(const flp_tuner_figures *advised)
{
    return advised->rounds < FLP_TUNER_LEAST_TO_WIN && advised->fate != FLP_CANDIDATE_REJECTED && advised->fate != FLP_CANDIDATE_DROPPED;
}

/* A record replaces what a plan takes without one. If that was timed too few times, nothing is known to be better; nor if the time was over before any
 * candidate could have won. There is no winner to record then. */
static void forget_what_says_nothing(tuning *t)
{
    const flp_tune_target *target = t->target;
    flp_tuner_result *result = t->result;
    const int is_short = result->ended == FLP_TUNING_BUDGET && result->figures[0].rounds < FLP_TUNER_LEAST_TO_WIN;
    int says_nothing = is_short && !result->winner && flp_tune_target_count(target) > 1;

    for (int i = 1; i < flp_tune_target_count(target); i++)
        says_nothing |= flp_tune_target_candidate(target, i)->is_advised && is_untold(&result->figures[i]);
    if (!says_nothing)
        return;
    result->winner = 0;
    result->figures[0].rounds = 0;
}

flp_status flp_tune_run(flp_tune_target *target, nvmlDevice_t clock, const flp_tuner_options *options, flp_tuner_result *result)
{
    tuning t = { .target = target, .clock = clock, .options = options, .result = result };
    int *numbers = calloc((size_t)flp_tune_target_count(target), sizeof(*numbers)), winners[FLP_ROLES + 2], won = 0, winner;
    const int offers = flp_tune_target_count_offers(target);
    flp_status status = begin(&t);

    if (status == FLP_OK && !numbers)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "tuning: no memory for its candidates");
    if (offers > 0 && flp_tune_target_count(target) > 1)
        t.share = kernels_share;
    if (status == FLP_OK && flp_tune_target_count(target) == 1 && !offers)
        status = run_heat(&t, NULL, 0, 1, 1, &winner);
    else if (status == FLP_OK)
        status = run_roles(&t, numbers, winners, &won);
    if (status == FLP_OK && won > 1 && result->ended < FLP_TUNING_INTERRUPTED)
        status = run_together(&t, winners, won);
    t.share = 1;
    if (status == FLP_OK && offers > 0 && result->ended < FLP_TUNING_INTERRUPTED)
        status = run_offers(&t);
    if (status == FLP_OK)
        forget_what_says_nothing(&t);
    free(numbers);
    return end(&t, status);
}

flp_status flp_tune_check_tool(void)
{
    char tool[FLP_ENVIRONMENT_TOOL_BYTES];

    flp_environment_tool(tool);
    return tool[0] ? flp_status_fail(FLP_BAD_ARGUMENT, "times that a tool distorts make no record: %s; tune without it", tool) : FLP_OK;
}

_Static_assert((int)FLP_RECORD_TUNING_BYTES >= (int)FLP_TUNING_BYTES, "a record cuts off a tuning");
_Static_assert((int)FLP_RECORD_PROBLEM_BYTES >= (int)FLP_PROBLEM_TEXT_BYTES, "a record cuts off a problem");
flp_status flp_tune_record(const flp_tune_target *target, const flp_tuner_result *result, flp_regime regime, const flp_environment *environment,
                           flp_record *record)
{
    const flp_tune_candidate *winner = flp_tune_target_candidate(target, result->winner);
    const flp_tuner_figures *figures = &result->figures[result->winner];
    const time_t today = time(NULL);
    struct tm parts;

    if (!figures->rounds)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: nothing was timed", flp_tune_target_problem(target));
    if (flp_tune_check_tool() != FLP_OK) /* a tool may have come meanwhile, such as a debugger that was attached */
        return flp_status_prefix(FLP_BAD_ARGUMENT, "%s", flp_tune_target_problem(target));
    *record = (flp_record){
        .environment = *environment,
        .regime = regime,
        .seconds = figures->seconds,
        .default_seconds = result->figures[0].seconds,
        .ratio = figures->ratio,
        .ratio_low = figures->ratio_low,
        .ratio_high = figures->ratio_high,
        .predicted_seconds = winner->predicted_seconds,
        .workspace_bytes = winner->workspace_bytes,
        .rounds = figures->rounds,
        .ended = result->ended,
    };
    snprintf(record->tuning, sizeof(record->tuning), "%s", winner->tuning);
    strftime(record->date, sizeof(record->date), "%Y-%m-%d", gmtime_r(&today, &parts));
    snprintf(record->version, sizeof(record->version), "%s", flp_version());
    return flp_tune_target_identify(target, result->winner, &record->identity);
}
