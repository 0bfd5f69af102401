/* Tunes one problem, or verifies its record. */
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "base/status.h"
#include "base/clock.h"
#include "base/text.h"
#include "cli/console.h"
#include "cli/operators.h"
#include "cli/tune.h"
#include "core/tune_numerics.h"
#include "tune/hung.h"
#include "tune/untuned.h"

/* By how much the tuning of a record may be slower than the best one before --verify fails. */
static const double acceptable_loss = 0.02;

typedef struct {
    const flp_tune_bench *bench;
    const char *text; /* the problem, as it was requested */
    flp_tune_target *target;
    flp_tuner_options options;
    flp_tuner_result result;
    flp_tune_outcome *outcome;
    double begun, budget_seconds; /* budget_seconds 0: no limit */
    flp_text hung;                /* candidates that hung */
    pthread_mutex_t lock;
    /* [known], guarded by lock: of each candidate, the digest of the templates that its kernels reach; "": not computed yet */
    char (*templates)[FLP_RECORD_DIGEST_BYTES];
    int known;
} job;

/* Gives the next step a share of the time that is left, and a millisecond where none is. */
static void set_budget(job *j, double share)
{
    if (j->budget_seconds > 0)
        j->options.budget_seconds = fmax(1e-3, share * (j->budget_seconds - (flp_clock_seconds() - j->begun)));
}

static int show_progress(void *data, const flp_tuner_progress *progress)
{
    const job *j = data;
    char left[32] = "";
    if (progress->seconds_left >= 0)
        snprintf(left, sizeof left, ", %.0f s left", progress->seconds_left);
    if (!j->bench->command->quiet)
        flp_console_progress("%s: %d of %d compiled, round %d, %d left; %.4f of the default's time%s", flp_tune_target_problem(j->target), progress->compiled,
                             progress->candidates, progress->rounds, progress->left, progress->ratio, left);
    return *j->bench->interrupted != 0;
}

static void close_target(job *j)
{
    flp_tuner_result_free(&j->result);
    flp_tune_target_destroy(j->target);
    j->target = NULL;
    free(j->templates);
    j->templates = NULL;
    j->known = 0;
}

static int know(job *j, int candidate)
{
    const int most = 2 * candidate + 64;
    void *grown = candidate < j->known ? j->templates : realloc(j->templates, (size_t)most * sizeof *j->templates);
    if (grown == NULL)
        return 0;
    j->templates = grown;
    if (candidate >= j->known) {
        memset(j->templates + j->known, 0, (size_t)(most - j->known) * sizeof *j->templates);
        j->known = most;
    }
    return 1;
}

/* The digest of the templates that a candidate's kernels reach. It is computed once for each candidate, because this is called between timed runs. Where it
 * cannot be computed, the base's digest serves. templates [FLP_RECORD_DIGEST_BYTES]. */
static void find_templates(job *j, int candidate, char *templates)
{
    flp_record_identity identity = *flp_tune_target_identity(j->target);
    pthread_mutex_lock(&j->lock);
    if (know(j, candidate)) {
        if (!j->templates[candidate][0] && flp_tune_target_identify(j->target, candidate, &identity) == FLP_OK)
            memcpy(j->templates[candidate], identity.templates, sizeof j->templates[candidate]);
        if (j->templates[candidate][0])
            memcpy(identity.templates, j->templates[candidate], sizeof identity.templates);
    }
    pthread_mutex_unlock(&j->lock);
    memcpy(templates, identity.templates, sizeof identity.templates);
}

static void show_running(void *data, int candidate)
{
    job *j = data;
    char templates[FLP_RECORD_DIGEST_BYTES];
    flp_tune_slot *slot = j->bench->slot;
    if (candidate >= 0) {
        find_templates(j, candidate, templates);
        flp_tune_slot_begin(slot, candidate == 0, templates, flp_tune_target_candidate(j->target, candidate)->tuning);
    } else if (flp_tune_slot_end(slot))
        flp_console_error("warning: %s: the default took %.3g s; its candidates may take %.3g s, not %.3g", flp_tune_target_problem(j->target),
                          slot->default_seconds, flp_tune_slot_limit(slot), slot->hang_seconds);
}

static void show_compiling(void *data, int candidate, int begins)
{
    job *j = data;
    char templates[FLP_RECORD_DIGEST_BYTES];
    if (begins) {
        find_templates(j, candidate, templates);
        flp_tune_slot_compile(j->bench->slot, candidate, templates, flp_tune_target_candidate(j->target, candidate)->tuning);
    } else
        flp_tune_slot_compiled(j->bench->slot, candidate);
}

static int has_hung(void *data, int candidate)
{
    const job *j = data;
    return flp_tune_has_hung(j->target, candidate, &j->hung);
}

static const char *name_of(const char *tuning)
{
    return tuning[0] ? tuning : "default";
}

static void say_result(const job *j)
{
    const flp_tuner_result *result = &j->result;
    const flp_tuner_figures *winner = &result->figures[result->winner];
    int rejected = 0;
    for (int i = 0; i < flp_tune_target_count(j->target); i++)
        rejected += result->figures[i].fate == FLP_CANDIDATE_REJECTED;
    snprintf(j->outcome->text, sizeof j->outcome->text,
             "%s: %s, %.4f of the default's time (%.4f to %.4f); %d candidate%s, %d rejected, %d round%s, %.1f s, %s", flp_tune_target_problem(j->target),
             name_of(flp_tune_target_candidate(j->target, result->winner)->tuning), winner->ratio, winner->ratio_low, winner->ratio_high,
             flp_tune_target_count(j->target), flp_text_plural(flp_tune_target_count(j->target)), rejected, result->rounds, flp_text_plural(result->rounds),
             result->spent_seconds, flp_tuning_end_names[result->ended]);
}

/* A record that cannot be written is only a warning: this process still has its result, and a later one has to tune again. */
static void publish(const job *j)
{
    const flp_tune_bench *bench = j->bench;
    flp_record record;
    flp_status status = flp_tune_record(j->target, &j->result, bench->command->regime, &bench->environment, &record);
    if (status == FLP_OK)
        status = flp_tune_target_publish(j->target, bench->records, &record);
    if (status == FLP_OK && j->result.ended != FLP_TUNING_INTERRUPTED)
        status = flp_untuned_remove(flp_records_directory(bench->records), record.identity.arch, record.identity.problem);
    if (status != FLP_OK)
        flp_console_error("warning: not kept: %s", flp_error_message());
}

static flp_status find_record(const job *j, flp_record *record, flp_record_match *match)
{
    return flp_tune_target_record(j->target, j->bench->records, &j->bench->environment, record, match);
}

/* --dry-run: lists the candidates. */
static void describe_candidates(const job *j)
{
    json_t *candidates = json_array();
    int offers;
    if (flp_tune_target_offer(j->target, 0, &offers) != FLP_OK)
        flp_console_error("warning: %s", flp_error_message());
    for (int i = 0; i < flp_tune_target_count(j->target); i++) {
        const flp_tune_candidate *candidate = flp_tune_target_candidate(j->target, i);
        json_array_append_new(candidates, json_pack("{s:s, s:f}", "tuning", candidate->tuning, "predicted_seconds", candidate->predicted_seconds));
    }
    j->outcome->json = json_pack("{s:s, s:s, s:o}", "problem", flp_tune_target_problem(j->target), "arch", flp_tune_target_identity(j->target)->arch,
                                 "candidates", candidates);
    snprintf(j->outcome->text, sizeof j->outcome->text, "%s: %d candidate%s", flp_tune_target_problem(j->target), flp_tune_target_count(j->target),
             flp_text_plural(flp_tune_target_count(j->target)));
}

/* Adds all times to the samples that calibrate the performance model, whether a candidate won or not. A candidate's time is its ratio times the default's
 * time, figures[0].seconds, which was measured in the same rounds as the winner's. */
static void take_samples(const job *j)
{
    for (int i = 0; i < flp_tune_target_count(j->target); i++) {
        const double seconds = j->result.figures[i].rounds ? j->result.figures[0].seconds * j->result.figures[i].ratio : 0;
        if (seconds > 0)
            flp_tune_target_sample(j->target, i, seconds, j->bench->samples);
        *j->bench->sampled_seconds += seconds;
    }
}

static flp_status tune(job *j)
{
    set_budget(j, 1);
    flp_status status = flp_tune_run(j->target, j->bench->clock, &j->options, &j->result);
    if (status != FLP_OK)
        return status;
    j->outcome->json = flp_tune_report_pack(j->target, &j->result, j->bench);
    if (j->result.figures[j->result.winner].rounds == 0) {
        static const char reason[] = "there was no time to learn anything";
        snprintf(j->outcome->text, sizeof j->outcome->text, "%s: %s", flp_tune_target_problem(j->target), reason);
        json_object_set_new(j->outcome->json, "reason", json_string(reason));
        return FLP_OK;
    }
    take_samples(j);
    publish(j);
    say_result(j);
    return FLP_OK;
}

/* Finds the candidate that has a record's tuning, or adds one. */
static flp_status find_candidate(flp_tune_target *target, const char *tuning, int *number)
{
    for (*number = 0; *number < flp_tune_target_count(target); ++*number)
        if (strcmp(flp_tune_target_candidate(target, *number)->tuning, tuning) == 0)
            return FLP_OK;
    return flp_tune_target_add(target, tuning, number);
}

static void say_loss(const job *j, const flp_record *record, int recorded, int best, const flp_tuner_result *result)
{
    const flp_tuner_figures *of_record = &result->figures[recorded], *of_best = &result->figures[best];
    const int timed = of_record->rounds && of_best->rounds;
    const double loss = timed ? of_record->ratio / of_best->ratio - 1 : 0;
    j->outcome->failed = !timed || loss > acceptable_loss;
    if (!timed)
        snprintf(j->outcome->text, sizeof j->outcome->text, "%s: the record's tuning %s was not timed%s%s", flp_tune_target_problem(j->target),
                 name_of(record->tuning), of_record->reason[0] ? ": " : "", of_record->reason);
    else
        snprintf(j->outcome->text, sizeof j->outcome->text, "%s: the record's tuning %s loses %.2f %% to %s", flp_tune_target_problem(j->target),
                 name_of(record->tuning), 100 * loss, name_of(flp_tune_target_candidate(j->target, best)->tuning));
    j->outcome->json = json_pack("{s:s, s:s, s:s, s:f, s:b}", "problem", flp_tune_target_problem(j->target), "recorded", record->tuning, "best",
                                 flp_tune_target_candidate(j->target, best)->tuning, "loss", loss, "failed", j->outcome->failed);
}

/* Searches as a tuning does, then times what was found beside what is recorded. */
static flp_status verify(job *j)
{
    flp_tuner_result beside = { 0 };
    flp_record record;
    flp_record_match match;
    int pair[2];
    flp_status status = find_record(j, &record, &match);
    if (status == FLP_OK && match != FLP_RECORD_EXACT) {
        j->outcome->failed = 1;
        snprintf(j->outcome->text, sizeof j->outcome->text, "%s: there is no record of this machine", flp_tune_target_problem(j->target));
        return FLP_OK;
    }
    set_budget(j, 0.8);
    if (status == FLP_OK)
        status = flp_tune_run(j->target, j->bench->clock, &j->options, &j->result);
    if (status == FLP_OK)
        status = find_candidate(j->target, record.tuning, &pair[1]);
    if (status != FLP_OK)
        return status;
    pair[0] = j->result.winner;
    const int *others = pair[0] ? pair : pair + 1;
    const int count = (pair[0] != 0) + (pair[1] != 0 && pair[1] != pair[0]);
    set_budget(j, 1);
    status = flp_tune_run_among(j->target, j->bench->clock, &j->options, others, count, &beside);
    if (status == FLP_OK)
        say_loss(j, &record, pair[1], pair[0], &beside);
    flp_tuner_result_free(&beside);
    return status;
}

/* 1 where --resume leaves the problem out, because it has a record. */
static int is_done(const job *j)
{
    flp_record record;
    flp_record_match match;
    if (!j->bench->command->resume || find_record(j, &record, &match) != FLP_OK)
        return 0;
    if (match != FLP_RECORD_EXACT || record.ended == FLP_TUNING_INTERRUPTED)
        return 0;
    snprintf(j->outcome->text, sizeof j->outcome->text, "%s: it has a record", flp_tune_target_problem(j->target));
    return 1;
}

/* base, alone: as flp_tune_target_options has them. */
static flp_status open_target(job *j, const flp_operator_calls *calls, const void *problem, const char *base, int alone)
{
    const flp_tune_command *command = j->bench->command;
    const flp_tune_target_options wanted = {
        .base = base, .alone = alone, .limit = command->limit, .is_burst = command->regime == FLP_REGIME_BURST, .memory_bytes = command->memory_bytes
    };
    flp_tune_slot_open(j->bench->slot, j->text, command->hang_seconds);
    flp_status status = flp_tune_target_create(j->bench->context, calls, problem, &wanted, &j->target);
    flp_tune_slot_opened(j->bench->slot, status == FLP_OK ? flp_tune_target_identity(j->target) : NULL);
    return status;
}

/* ---- --numerics: what changes a row's bits is decided for all numbers of rows at once ---- */

typedef struct {
    job *job;
    const flp_operator_calls *calls;
    flp_tune_numerics *numerics;
    int steps_left; /* among which the time that is left is shared */
    char tuning[FLP_TUNING_BYTES];
    flp_record records[FLP_TUNE_NUMERICS_MOST];
    double ratios[FLP_TUNE_NUMERICS_MOST]; /* of each record's time to that of the generator's own choice */
} decision;

static int has_time(const job *j)
{
    return j->budget_seconds <= 0 || flp_clock_seconds() - j->begun < j->budget_seconds;
}

static int was_interrupted(const job *j)
{
    return j->result.ended == FLP_TUNING_INTERRUPTED;
}

/* 0 where a number of rows was not timed: the tuning was interrupted, or its share of the time was over. */
static int was_timed(const job *j)
{
    return !was_interrupted(j) && j->result.figures[j->result.winner].rounds > 0;
}

static void say_end(const decision *d, int interrupted)
{
    const job *j = d->job;
    snprintf(j->outcome->text, sizeof j->outcome->text, "%s: %s before all numbers of rows were timed; nothing is decided", flp_tune_numerics_text(d->numerics),
             interrupted ? "it was interrupted" : "the time was over");
}

/* share: of the time that is left, as in tune_rows. */
static flp_status survey_rows(decision *d, int number, double share)
{
    job *j = d->job;
    flp_status status = open_target(j, d->calls, flp_tune_numerics_problem(d->numerics, number), "", 1);
    if (status == FLP_OK)
        status = flp_tune_numerics_offer(d->numerics, number, j->target);
    set_budget(j, share);
    if (status == FLP_OK)
        status = flp_tune_run(j->target, j->bench->clock, &j->options, &j->result);
    if (status != FLP_OK || !was_timed(j))
        return status;
    take_samples(j);
    flp_tune_numerics_take(d->numerics, number, j->target, &j->result);
    return FLP_OK;
}

/* The ratio of the base's time to that of the generator's own choice. */
static flp_status find_base_ratio(decision *d, double *ratio)
{
    job *j = d->job;
    flp_tuner_result beside = { 0 };
    int own;
    *ratio = 1;
    if (!d->tuning[0])
        return FLP_OK;
    flp_status status = flp_tune_target_add(j->target, "", &own);
    if (status == FLP_OK)
        status = flp_tune_run_among(j->target, j->bench->clock, &j->options, &own, 1, &beside);
    if (status == FLP_OK && beside.figures[own].rounds)
        *ratio = 1 / beside.figures[own].ratio;
    flp_tuner_result_free(&beside);
    return status;
}

/* Tunes one number of rows, with the arithmetic that was decided. */
static flp_status tune_rows(decision *d, int number, double share)
{
    job *j = d->job;
    double base_ratio = 1;
    flp_status status = open_target(j, d->calls, flp_tune_numerics_problem(d->numerics, number), d->tuning, 0);
    set_budget(j, 0.8 * share);
    if (status == FLP_OK)
        status = flp_tune_run(j->target, j->bench->clock, &j->options, &j->result);
    if (status != FLP_OK || !was_timed(j))
        return status;
    take_samples(j);
    status = flp_tune_record(j->target, &j->result, j->bench->command->regime, &j->bench->environment, &d->records[number]);
    set_budget(j, 0.2 * share);
    if (status == FLP_OK)
        status = find_base_ratio(d, &base_ratio);
    d->ratios[number] = d->records[number].ratio * base_ratio;
    return status;
}

/* Runs a step for each number of rows in its share of the time that is left. Where that is over before anything is timed, because kernels had to be compiled
 * first, the step runs again with twice the share. Ends where one fails, or is not timed in all the time that is left, which the outcome then says. */
static flp_status each_rows(decision *d, flp_status (*step)(decision *d, int number, double share))
{
    job *j = d->job;
    flp_status status = FLP_OK;
    for (int i = 0; status == FLP_OK && !j->outcome->text[0] && i < flp_tune_numerics_count(d->numerics); i++) {
        int again = 1;
        for (double share = 1.0 / d->steps_left--; again; share = fmin(1, 2 * share)) {
            status = step(d, i, share);
            const int untimed = status == FLP_OK && !was_timed(j);
            again = untimed && !was_interrupted(j) && share < 1 && has_time(j);
            if (untimed && !again)
                say_end(d, was_interrupted(j));
            close_target(j);
        }
    }
    return status;
}

static void say_decision(const decision *d, const flp_record *record)
{
    flp_tune_outcome *outcome = d->job->outcome;
    json_t *rows = json_array();
    for (int i = 0; i < flp_tune_numerics_count(d->numerics); i++)
        json_array_append_new(rows,
                              json_pack("{s:s, s:s, s:f}", "problem", d->records[i].identity.problem, "tuning", d->records[i].tuning, "ratio", d->ratios[i]));
    outcome->json = json_pack("{s:s, s:s, s:s, s:s, s:s, s:f, s:f, s:f, s:o}", "problem", record->identity.problem, "arch", record->identity.arch, "device",
                              d->job->bench->environment.device, "regime", flp_regime_names[record->regime], "tuning", record->tuning, "ratio", record->ratio,
                              "ratio_low", record->ratio_low, "ratio_high", record->ratio_high, "rows", rows);
    snprintf(outcome->text, sizeof outcome->text, "%s: %s decides on a row's bits, %.4f of the default's time over %d number%s of rows",
             record->identity.problem, name_of(record->tuning), record->ratio, flp_tune_numerics_count(d->numerics),
             flp_text_plural(flp_tune_numerics_count(d->numerics)));
}

static void publish_decision(const decision *d)
{
    const flp_tune_bench *bench = d->job->bench;
    flp_record record;
    flp_status status = flp_tune_numerics_publish(d->numerics, bench->records, d->tuning, d->records, d->ratios, &record);
    for (int i = 0; status == FLP_OK && i < flp_tune_numerics_count(d->numerics); i++)
        status = flp_untuned_remove(flp_records_directory(bench->records), d->records[i].identity.arch, d->records[i].identity.problem);
    if (status != FLP_OK)
        flp_console_error("warning: not kept: %s", flp_error_message());
    else
        say_decision(d, &record);
}

/* --dry-run: says what a tuning of all numbers of rows would try. */
static void describe_arithmetics(const decision *d)
{
    flp_tune_outcome *outcome = d->job->outcome;
    snprintf(outcome->text, sizeof outcome->text, "%s: %d arithmetic%s, %d number%s of rows", flp_tune_numerics_text(d->numerics),
             flp_tune_numerics_choices(d->numerics), flp_text_plural(flp_tune_numerics_choices(d->numerics)), flp_tune_numerics_count(d->numerics),
             flp_text_plural(flp_tune_numerics_count(d->numerics)));
    outcome->json = json_pack("{s:s, s:i, s:i}", "problem", flp_tune_numerics_text(d->numerics), "arithmetics", flp_tune_numerics_choices(d->numerics), "rows",
                              flp_tune_numerics_count(d->numerics));
}

static int is_decided(const decision *d)
{
    const flp_tune_bench *bench = d->job->bench;
    flp_record record;
    flp_record_match match;
    if (!bench->command->resume || flp_tune_numerics_find(d->numerics, bench->records, &bench->environment, &record, &match) != FLP_OK ||
        match != FLP_RECORD_EXACT)
        return 0;
    snprintf(d->job->outcome->text, sizeof d->job->outcome->text, "%s: it has a record", flp_tune_numerics_text(d->numerics));
    return 1;
}

static flp_status decide(decision *d)
{
    const int rows = flp_tune_numerics_count(d->numerics), has_choice = flp_tune_numerics_choices(d->numerics) > 0;
    d->steps_left = has_choice ? 2 * rows : rows;
    flp_status status = has_choice ? each_rows(d, survey_rows) : FLP_OK;
    if (status == FLP_OK && !d->job->outcome->text[0])
        status = flp_tune_numerics_decide(d->numerics, d->tuning);
    if (status == FLP_OK)
        status = each_rows(d, tune_rows);
    if (status == FLP_OK && !d->job->outcome->text[0])
        publish_decision(d);
    return status;
}

static flp_status tune_all_rows(job *j, const flp_operator_calls *calls, const void *problem)
{
    decision *d = calloc(1, sizeof *d);
    if (d == NULL)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for what decides on a row's bits");
    d->job = j;
    d->calls = calls;
    flp_status status = flp_tune_numerics_create(j->bench->context, calls, problem, j->bench->command->limit, j->bench->command->memory_bytes, &d->numerics);
    if (status == FLP_OK && j->bench->command->dry_run)
        describe_arithmetics(d);
    else if (status == FLP_OK && !is_decided(d))
        status = decide(d);
    flp_tune_numerics_destroy(d->numerics);
    free(d);
    return status;
}

/* ---- one number of rows ---- */

static flp_status tune_one_rows(job *j, const flp_operator_calls *calls, const void *problem)
{
    flp_status status = open_target(j, calls, problem, "", 0);
    if (status == FLP_OK && j->bench->command->dry_run)
        describe_candidates(j);
    else if (status == FLP_OK && j->bench->command->verify)
        status = verify(j);
    else if (status == FLP_OK && !is_done(j))
        status = tune(j);
    close_target(j);
    return status;
}

flp_status flp_tune_problem(const flp_tune_bench *bench, const flp_tune_item *item, double budget_seconds, flp_tune_outcome *outcome)
{
    const flp_tune_command *command = bench->command;
    job j = { .bench = bench,
              .text = item->text,
              .outcome = outcome,
              .begun = flp_clock_seconds(),
              .budget_seconds = budget_seconds,
              .lock = PTHREAD_MUTEX_INITIALIZER,
              .options = { .jobs = command->jobs,
                           .seed = (uint64_t)time(NULL),
                           .progress = show_progress,
                           .running = show_running,
                           .compiling = show_compiling,
                           .has_hung = has_hung } };
    const flp_operator_calls *calls;
    flp_problem_storage problem;
    flp_status status = flp_operators_parse(item->text, &calls, &problem);
    j.options.data = &j;
    *outcome = (flp_tune_outcome){ .json = NULL };
    if (status == FLP_OK)
        status = flp_hung_read(flp_records_directory(bench->records), &j.hung);
    if (status == FLP_OK)
        status = command->numerics ? tune_all_rows(&j, calls, &problem) : tune_one_rows(&j, calls, &problem);
    flp_console_progress("%s", "");
    flp_text_free(&j.hung);
    return status == FLP_OK ? status : flp_status_prefix(status, "%s", item->text);
}
