/* Tuning on first use: tunes a problem whose plan was just made, and makes the plan again from the record. */
#include "core/call.h"

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/digest.h"
#include "base/file.h"
#include "base/log.h"
#include "base/status.h"
#include "base/text.h"
#include "core/tune_run.h"
#include "cuda/nvml.h"
#include "jit/cubin_cache_lock.h"
#include "tune/hung.h"
#include "tune/untuned.h"

enum { MOST_JOBS = 16 };
/* How long the holder of the lock may exceed its budget: for the compilation and the call that are under way when the budget ends. */
static const double patience_seconds = 10;

static flp_cubin_cache_locks locks = { PTHREAD_MUTEX_INITIALIZER, NULL };

typedef struct {
    const flp_operator_calls *calls;
    flp_context *context;
    const void *problem;
    flp_plan **plan;
    double begun;
} first_use;

/* Allocating device memory would break a capture that is under way. The query is for the legacy default stream: the driver refuses it while any stream that
 * synchronises with that one is being captured. */
static flp_status check_capture(void)
{
    int capturing = 0;
    flp_status status = flp_device_is_capturing(NULL, &capturing);

    return status == FLP_OK && capturing ? flp_status_fail(FLP_CAPTURING, "a stream is being captured") : status;
}

/* Takes the lock of a problem, of which there is one for each GPU architecture. *lock: for flp_cubin_cache_lock_release. */
static flp_status take_lock(const first_use *use, const char *text, int *lock)
{
    const char *path = flp_records_directory(use->context->records);
    char digest[FLP_DIGEST_TEXT_BYTES], name[64];
    flp_text key = { 0 };
    int directory;
    flp_status status;

    if (!path[0])
        return flp_status_fail(FLP_IO_FAILED, "there is no directory for its record");
    flp_text_append(&key, "%s %s", (*use->plan)->choice.selection.arch, text);
    if (key.failed)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a tuning");
    flp_digest_format(key.data, key.length, digest);
    flp_text_free(&key);
    snprintf(name, sizeof(name), "%.32s.lock", digest);
    status = flp_file_make_directories(path, 0755);
    if (status != FLP_OK)
        return status;
    directory = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    *lock = directory < 0 ? -1 : flp_cubin_cache_lock_take(&locks, directory, name, use->context->tune_seconds + patience_seconds);
    if (directory >= 0)
        close(directory);
    return *lock >= 0 ? FLP_OK : flp_status_fail(FLP_IO_FAILED, "%s: no lock there, or another tuning had it for too long", path);
}

/* Reads the records again, and replaces the plan by one that follows them. */
static flp_status make_again(const first_use *use)
{
    flp_plan *made;
    flp_status status = flp_records_read_again(use->context->records);

    if (status == FLP_OK)
        status = flp_create_plan(use->context, use->calls->op, use->problem, &made);
    if (status != FLP_OK)
        return status;
    flp_plan_destroy(*use->plan);
    *use->plan = made;
    return FLP_OK;
}

/* Publishes the result. If the budget was too short for the whole tuning, the record is used, but the problem stays on the list of problems to be tuned. */
static flp_status publish(const first_use *use, const flp_tune_target *target, const flp_tuner_result *result)
{
    flp_environment environment;
    flp_record record;
    flp_status status;

    flp_environment_describe(&(*use->plan)->device, &environment);
    status = flp_tune_record(target, result, FLP_REGIME_SUSTAINED, &environment, &record);
    if (status == FLP_OK)
        status = flp_tune_target_publish(target, use->context->records, &record);
    if (status == FLP_OK && result->ended != FLP_TUNING_BUDGET)
        flp_untuned_remove(flp_records_directory(use->context->records), record.identity.arch, record.identity.problem);
    return status;
}

typedef struct {
    const flp_tune_target *target;
    flp_text hung; /* candidates that hung */
} search;

static int has_hung(void *data, int candidate)
{
    const search *s = data;

    return flp_tune_has_hung(s->target, candidate, &s->hung);
}

/* The error where too little was timed to record anything. It estimates the time that would be enough. (The next tuning finds in the cache what this one has
 * compiled.) */
static flp_status say_too_short(const search *s, const flp_tuner_result *result, double budget)
{
    const int compiled = result->compiled ? result->compiled - 1 : 0; /* without the default */
    const int candidates = flp_tune_target_count(s->target) - 1;
    flp_text all = { .data = NULL };
    flp_status status;

    if (compiled && compiled < candidates)
        flp_text_append(&all, ", at which rate all take %.2g s", result->spent_seconds * candidates / compiled);
    status = flp_status_fail(FLP_NO_VARIANT, "%s was timed in %.2g s: %d of %d candidates were compiled%s (tune_seconds, or fusedlogp tune --untuned)",
                             result->figures[0].seconds > 0 ? "too little" : "nothing", budget, compiled, candidates, all.data ? all.data : "");
    flp_text_free(&all);
    return status;
}

static flp_status run(const first_use *use, flp_tune_target *target)
{
    search s = { .target = target };
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const double spent = flp_clock_seconds() - use->begun, budget = use->context->tune_seconds;
    const flp_tuner_options options = {
        .budget_seconds = budget - spent, .jobs = cores < 2 ? 1 : (int)fmin((double)cores, MOST_JOBS), .seed = 1, .has_hung = has_hung, .data = &s
    };
    nvmlDevice_t clock = NULL;
    flp_tuner_result result = { 0 };
    flp_status status;

    if (spent >= budget)
        return flp_status_fail(FLP_NO_VARIANT, "its arrays and the reference took %.2g s, and the tuning has %.2g s", spent, budget);
    if (flp_nvml_find((*use->plan)->device.device, &clock) != FLP_OK)
        clock = NULL;
    status = flp_hung_read(flp_records_directory(use->context->records), &s.hung);
    if (status == FLP_OK)
        status = flp_tune_run(target, clock, &options, &result);
    flp_text_free(&s.hung);
    if (status == FLP_OK && !result.figures[result.winner].rounds)
        status = say_too_short(&s, &result, budget);
    if (status == FLP_OK)
        status = publish(use, target, &result);
    flp_tuner_result_free(&result);
    return status;
}

static flp_status tune(first_use *use)
{
    const flp_tune_target_options options = { .base = (*use->plan)->tuned.base };
    flp_tune_target *target;
    flp_status status = flp_tune_check_tool();

    use->begun = flp_clock_seconds();
    if (status == FLP_OK)
        status = flp_tune_target_create(use->context, use->calls, use->problem, &options, &target);
    if (status != FLP_OK)
        return status;
    status = flp_tune_target_follow(target, (*use->plan)->tuned.tuning);
    if (status == FLP_OK)
        status = run(use, target);
    flp_tune_target_destroy(target);
    return status;
}

/* With the lock: another thread or process may have tuned the problem while this one waited. */
static flp_status tune_alone(first_use *use)
{
    flp_status status = make_again(use);

    if (status != FLP_OK || (*use->plan)->tuned.by == FLP_TUNED_EXACT)
        return status;
    status = tune(use);
    return status == FLP_OK ? make_again(use) : status;
}

void flp_tune_first_use(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan)
{
    first_use use = { calls, context, problem, plan, 0 };
    char text[FLP_PROBLEM_TEXT_BYTES] = "", callers_message[FLP_STATUS_MESSAGE_BYTES];
    int lock = -1;
    flp_status status;

    if (!(context->flags & FLP_CONTEXT_TUNE) || !flp_plan_on_gpu(*plan) || (*plan)->tuned.by == FLP_TUNED_EXACT)
        return;
    flp_status_keep_message(callers_message);
    status = flp_tuned_problem_text(calls->op, flp_plan_problem(*plan), text);
    if (status == FLP_OK)
        status = check_capture();
    if (status == FLP_OK)
        status = take_lock(&use, text, &lock);
    if (status == FLP_OK)
        status = tune_alone(&use);
    flp_cubin_cache_lock_release(&locks, lock);
    if (status != FLP_OK) {
        flp_log_warning("%s is not tuned: %s", text, flp_error_message());
        flp_plan_say_untuned(*plan, flp_error_message());
    }
    flp_status_restore_message(callers_message);
}
