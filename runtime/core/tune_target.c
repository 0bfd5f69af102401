/* A tuning target: the generator's candidates, their plans, and their runs. */
#include "core/tune_target.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/int64.h"
#include "base/status.h"
#include "core/calibration.h"
#include "core/row_buckets.h"
#include "core/plan.h"
#include "core/tune_arrays.h"
#include "core/tuned.h"

enum { DEFAULT_LIMIT = 12 };
enum { MORE_SPLITS = 4 };
/* A candidate may have a workspace of this size in any case. */
static const int64_t small_workspace_bytes = INT64_C(16) << 20;
static const double default_idle_seconds = 0.02, shortest_run_seconds = 1e-3;
static const int64_t default_checked_bytes = INT64_C(16) << 20;
enum { MOST_CALLS = 64 };

struct flp_tune_target {
    flp_context *context;
    const flp_operator_calls *calls;
    flp_tune_target_options options;
    flp_problem_storage problem;          /* normal */
    char kernels[FLP_PLAN_KERNELS_BYTES]; /* what the generator is asked for */
    flp_record_identity identity;
    flp_device device;
    const flp_driver *driver;
    CUstream stream;
    CUevent begin, end;
    flp_tune_arrays arrays;
    CUdeviceptr workspace;
    int64_t workspace_bytes, most_workspace_bytes; /* of the workspace that there is; of the largest one that a candidate may have */
    int count, calls_per_run;
    flp_tune_candidate *candidates;
    flp_plan **plans; /* of each candidate; NULL: it is not prepared */
};

/* ---- calls ---- */

static flp_status call_plan(const flp_tune_target *target, flp_plan *plan, int64_t rows)
{
    union {
        max_align_t aligned;
        char bytes[FLP_CALL_ARGS_BYTES];
    } args;

    flp_tune_arrays_args(&target->arrays, rows, (void *)(uintptr_t)target->workspace, (size_t)target->workspace_bytes, &args);
    return flp_tune_arrays_execute(&target->arrays, plan, &args);
}

static int64_t rows_of(const flp_tune_target *target)
{
    return *(const int64_t *)(const void *)(target->problem.bytes + target->calls->op->rows_at);
}

/* Makes one call whose results are then compared. */
static flp_status call_clean(flp_tune_target *target, flp_plan *plan, int64_t rows)
{
    flp_status status = flp_tune_arrays_clear(&target->arrays);

    return status == FLP_OK ? call_plan(target, plan, rows) : status;
}

static flp_status time_calls(flp_tune_target *target, flp_plan *plan, int calls, double *seconds)
{
    const flp_driver *driver = target->driver;
    float milliseconds = 0;
    flp_status status = flp_driver_check(driver, driver->event_record(target->begin, target->stream), "cuEventRecord");

    for (int i = 0; status == FLP_OK && i < calls; i++)
        status = call_plan(target, plan, rows_of(target));
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->event_record(target->end, target->stream), "cuEventRecord");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->event_synchronize(target->end), "cuEventSynchronize");
    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->event_elapsed(&milliseconds, target->begin, target->end), "cuEventElapsedTime");
    *seconds = milliseconds / 1e3 / calls;
    return status;
}

static void idle(double seconds)
{
    const struct timespec time = { (time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9) };

    nanosleep(&time, NULL);
}

flp_status flp_tune_target_time(flp_tune_target *target, int candidate, double *seconds)
{
    flp_plan *plan = target->plans[candidate];
    flp_status status = FLP_OK;

    /* In a burst, a call that is not timed first wakes the device from its idle state and fills its caches as this candidate does. */
    if (target->options.is_burst) {
        idle(target->options.idle_seconds);
        status = call_plan(target, plan, rows_of(target));
    }
    return status == FLP_OK ? time_calls(target, plan, target->options.is_burst ? 1 : target->calls_per_run, seconds) : status;
}

/* ---- candidates ---- */

/* A line "picoseconds role tuning". */
static void read_candidate(const char *line, size_t length, flp_tune_candidate *candidate)
{
    char copy[FLP_TUNING_BYTES + 64], *role, *tuning;

    snprintf(copy, sizeof(copy), "%.*s", (int)length, line);
    candidate->predicted_seconds = (double)strtoll(copy, &role, 10) * 1e-12;
    role += *role == ' ';
    tuning = role + strcspn(role, " ");
    if (*tuning)
        *tuning++ = 0;
    candidate->role = flp_role_find(role);
    snprintf(candidate->tuning, sizeof(candidate->tuning), "%s", tuning);
}

static flp_status grow(flp_tune_target *target, int count)
{
    flp_tune_candidate *candidates = realloc(target->candidates, (size_t)count * sizeof(*candidates));
    flp_plan **plans;

    if (candidates)
        target->candidates = candidates;
    plans = candidates ? realloc(target->plans, (size_t)count * sizeof(*plans)) : NULL;
    if (!plans)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for %d candidates", count);
    target->plans = plans;
    for (int i = target->count; i < count; i++) {
        target->candidates[i] = (flp_tune_candidate){ .role = FLP_ROLES };
        target->plans[i] = NULL;
    }
    target->count = count;
    return FLP_OK;
}

static flp_status read_candidates(flp_tune_target *target, const char *lines)
{
    int count = 1;
    flp_status status;

    for (const char *at = lines; *at; at++)
        count += *at == '\n';
    status = grow(target, count);
    for (int i = 0; status == FLP_OK && i < count; i++) {
        const size_t length = strcspn(lines, "\n");

        read_candidate(lines, length, &target->candidates[i]);
        target->candidates[i].is_advised = i == 1 && target->candidates[i].role == FLP_ROLES;
        lines += length + (lines[length] != 0);
    }
    return status;
}

/* What the generator is asked for. */
static flp_wanted_kernels wanted_of(const flp_tune_target *target, const char *tuning)
{
    const flp_plan *plan = target->plans[0];

    return (flp_wanted_kernels){ target->kernels, plan->device.facts.compute_capability, flp_backend_name(plan->choice.path), tuning };
}

static flp_status find_candidates(flp_tune_target *target)
{
    char calibration[FLP_RECORD_TUNING_BYTES];
    flp_model_facts model;
    const flp_wanted_kernels wanted = wanted_of(target, target->options.base);
    flp_generator *generator = flp_kernel_store_generator(target->context->store);
    char *lines = NULL;
    flp_status status = flp_plan_kernels_text(target->plans[0], target->kernels);

    if (status != FLP_OK)
        return status;
    flp_calibration_facts(target->context, &target->device, &model, calibration);
    status = flp_tuned_identify(target->context, &wanted, &target->identity);
    if (status == FLP_OK)
        status = flp_generator_candidates(generator, &wanted, &model, 0, target->options.limit, &lines);
    if (status == FLP_OK && target->options.alone)
        lines[strcspn(lines, "\n")] = 0;
    if (status == FLP_OK)
        status = read_candidates(target, lines);
    free(lines);
    for (int i = 0; status == FLP_OK && i < target->count; i++)
        target->candidates[i].workspace_bytes = target->plans[0]->workspace_bytes;
    return status;
}

int flp_tune_target_count(const flp_tune_target *target)
{
    return target->count;
}

const flp_tune_candidate *flp_tune_target_candidate(const flp_tune_target *target, int candidate)
{
    return &target->candidates[candidate];
}

const flp_record_identity *flp_tune_target_identity(const flp_tune_target *target)
{
    return &target->identity;
}

flp_status flp_tune_target_identify(const flp_tune_target *target, int candidate, flp_record_identity *identity)
{
    const flp_wanted_kernels wanted = wanted_of(target, target->candidates[candidate].tuning);

    *identity = target->identity;
    return flp_tuned_identify(target->context, &wanted, identity);
}

flp_status flp_tune_target_record(const flp_tune_target *target, flp_records *records, const flp_environment *environment, flp_record *record,
                                  flp_record_match *match)
{
    const flp_wanted_kernels wanted = wanted_of(target, "");
    const flp_tuned_query query = { target->identity.problem, &wanted, environment, target->options.base };

    return flp_tuned_record(target->context, records, &query, record, match);
}

flp_status flp_tune_target_publish(const flp_tune_target *target, flp_records *records, const flp_record *record)
{
    const flp_wanted_kernels wanted = wanted_of(target, "");

    return flp_tuned_publish(target->context, records, &wanted, record);
}

const char *flp_tune_target_problem(const flp_tune_target *target)
{
    return target->identity.problem;
}

void flp_tune_target_sample(const flp_tune_target *target, int candidate, double seconds, flp_text *lines)
{
    flp_text_append(lines, "%" PRId64 " %s %s %s\n", (int64_t)(seconds * 1e12), flp_backend_name(target->plans[0]->choice.path), target->kernels,
                    target->candidates[candidate].tuning);
}

static flp_status add(flp_tune_target *target, flp_role role, int *candidate)
{
    flp_status status = grow(target, target->count + 1);

    if (status != FLP_OK)
        return status;
    *candidate = target->count - 1;
    target->candidates[*candidate].role = role;
    target->candidates[*candidate].workspace_bytes = target->candidates[0].workspace_bytes;
    return FLP_OK;
}

flp_status flp_tune_target_join(flp_tune_target *target, const int *candidates, int count, int *candidate)
{
    char parts[FLP_ROLES + 2][FLP_TUNING_BYTES], rest[FLP_TUNING_BYTES], joined[FLP_TUNING_BYTES];
    const char *tunings[FLP_ROLES + 2] = { parts[0] };
    double seconds = target->candidates[0].predicted_seconds;
    flp_status status;

    /* Joins, of the base, the items of the roles that no candidate changes, and of each candidate the items of its role. */
    strcpy(parts[0], target->candidates[0].tuning);
    for (int i = 0; i < count; i++) {
        const flp_tune_candidate *one = &target->candidates[candidates[i]];

        seconds += one->predicted_seconds - target->candidates[0].predicted_seconds;
        flp_tuning_text_of_role(parts[0], one->role, 1, rest);
        strcpy(parts[0], rest);
        flp_tuning_text_of_role(one->tuning, one->role, one->role == FLP_ROLES, parts[i + 1]);
        tunings[i + 1] = parts[i + 1];
    }
    status = flp_tuning_text_join(tunings, count + 1, joined);
    if (status == FLP_OK)
        status = add(target, FLP_ROLES, candidate);
    if (status != FLP_OK)
        return status;
    strcpy(target->candidates[*candidate].tuning, joined);
    target->candidates[*candidate].predicted_seconds = seconds;
    return FLP_OK;
}

flp_status flp_tune_target_add(flp_tune_target *target, const char *tuning, int *candidate)
{
    flp_status status = strlen(tuning) < FLP_TUNING_BYTES ? add(target, flp_tuning_text_role(tuning), candidate)
                                                          : flp_status_fail(FLP_BAD_ARGUMENT, "tuning: got more than %d characters", FLP_TUNING_BYTES - 1);

    if (status == FLP_OK)
        strcpy(target->candidates[*candidate].tuning, tuning);
    return status;
}

flp_status flp_tune_target_follow(flp_tune_target *target, const char *tuning)
{
    int candidate = 0;
    flp_status status = FLP_OK;

    while (candidate < target->count && strcmp(target->candidates[candidate].tuning, tuning) != 0)
        candidate++;
    if (candidate == target->count)
        status = flp_tune_target_add(target, tuning, &candidate);
    if (status == FLP_OK && candidate)
        target->candidates[candidate].is_advised = 1;
    return status;
}

static flp_status read_offers(const flp_tune_target *target, flp_text *lines)
{
    return flp_plan_offer(target->context, target->calls->op, &target->problem, 0, target->most_workspace_bytes, lines);
}

int flp_tune_target_count_offers(const flp_tune_target *target)
{
    flp_text lines = { .data = NULL };
    int count = 0;

    if (!target->options.alone && read_offers(target, &lines) == FLP_OK)
        for (const char *at = lines.data ? lines.data : ""; *at; at++)
            count += *at == '\n';
    flp_text_free(&lines);
    return count < FLP_TUNE_TARGET_OFFERS ? count : FLP_TUNE_TARGET_OFFERS;
}

/* The model does not predict the effect of launches, so the offer has the candidate's predicted time. */
static flp_status add_offer(flp_tune_target *target, int candidate, const char *offer)
{
    const char *const tunings[] = { target->candidates[candidate].tuning, offer };
    const double seconds = target->candidates[candidate].predicted_seconds;
    char tuning[FLP_TUNING_BYTES];
    int added;
    flp_status status = flp_tuning_text_join(tunings, 2, tuning);

    if (status == FLP_OK)
        status = flp_tune_target_add(target, tuning, &added);
    if (status == FLP_OK)
        target->candidates[added].predicted_seconds = seconds;
    return status;
}

flp_status flp_tune_target_offer(flp_tune_target *target, int candidate, int *count)
{
    flp_text lines = { .data = NULL };
    char *rest = NULL;
    flp_status status = target->options.alone ? FLP_OK : read_offers(target, &lines);

    *count = 0;
    for (char *line = lines.data ? strtok_r(lines.data, "\n", &rest) : NULL; status == FLP_OK && line && *count < FLP_TUNE_TARGET_OFFERS;
         line = strtok_r(NULL, "\n", &rest)) {
        status = add_offer(target, candidate, line);
        *count += status == FLP_OK;
    }
    flp_text_free(&lines);
    return status;
}

/* 1: a call launches the kernel that the candidate changes. A plan may have two kernels, of which a call launches one. */
static int changes_launches(const flp_tune_target *target, int candidate)
{
    int (*launches)(const flp_plan *plan, flp_role role, int64_t rows) = target->calls->op->launches;
    const flp_role role = target->candidates[candidate].role;

    return !candidate || role == FLP_ROLES || !launches || launches(target->plans[candidate], role, rows_of(target)) ||
           launches(target->plans[0], role, rows_of(target));
}

/* The bytes of spilled registers in a thread's local memory: all beyond the manifest's local_bytes, which the kernel uses on purpose. */
static flp_status find_spilled_bytes(const flp_tune_target *target, const flp_kernel *kernel, int *bytes)
{
    int local_bytes = 0;
    flp_status status =
        kernel ? flp_driver_check(target->driver, target->driver->function_attribute(&local_bytes, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, kernel->function),
                                  "cuFuncGetAttribute(LOCAL_SIZE_BYTES)")
               : FLP_OK;

    *bytes = kernel && local_bytes > kernel->manifest.local_bytes ? local_bytes - kernel->manifest.local_bytes : 0;
    return status;
}

/* Refuses a candidate with a kernel that spills more than the base's. The base and the generator's own choice are not checked. */
static flp_status check_spills(const flp_tune_target *target, int candidate)
{
    const flp_plan *plan = target->plans[candidate], *base = target->plans[0];
    flp_status status = FLP_OK;

    if (!candidate || !target->candidates[candidate].tuning[0])
        return FLP_OK;
    for (int role = 0; role < FLP_ROLES && status == FLP_OK; role++) {
        int bytes, bytes_of_base;

        status = find_spilled_bytes(target, plan->kernels[role], &bytes);
        if (status == FLP_OK)
            status = find_spilled_bytes(target, base->kernels[role], &bytes_of_base);
        if (status == FLP_OK && bytes > bytes_of_base)
            status = flp_status_fail(FLP_NO_VARIANT, "%s spills: a thread has %d bytes of registers in local memory, the default's %d",
                                     plan->kernels[role]->manifest.variant, bytes, bytes_of_base);
    }
    return status;
}

static flp_status make_plan(flp_tune_target *target, int candidate)
{
    flp_plan *plan;
    flp_status status = flp_create_plan_tuned(target->context, target->calls->op, &target->problem, target->candidates[candidate].tuning, &plan);

    if (status != FLP_OK)
        return status;
    target->candidates[candidate].workspace_bytes = plan->workspace_bytes;
    target->plans[candidate] = plan;
    return FLP_OK;
}

/* Refuses a candidate whose plan could be made but is not to be timed. */
static flp_status judge(const flp_tune_target *target, int candidate)
{
    const int64_t bytes = target->plans[candidate]->workspace_bytes;

    if (bytes > target->most_workspace_bytes)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "a workspace of %" PRId64 " bytes, the default's has %" PRId64 " and no more than %" PRId64 " are allowed",
                               bytes, target->plans[0]->workspace_bytes, target->most_workspace_bytes);
    if (!changes_launches(target, candidate))
        return flp_status_fail(FLP_NO_VARIANT, "calls of %" PRId64 " rows do not launch its kernel", rows_of(target));
    return check_spills(target, candidate);
}

flp_status flp_tune_target_prepare(flp_tune_target *target, int candidate)
{
    CUcontext left;
    flp_status status;

    if (!flp_device_enter(&target->device, &left))
        return flp_status_fail(FLP_WRONG_CONTEXT, "the CUDA context that is tuned in is gone");
    status = target->plans[candidate] ? FLP_OK : make_plan(target, candidate);
    if (status == FLP_OK)
        status = judge(target, candidate);
    flp_device_leave(left);
    return status;
}

/* Makes the workspace large enough for a candidate. Only one thread makes calls, and their work is waited for before the old workspace is freed. */
static flp_status make_workspace(flp_tune_target *target, int64_t bytes)
{
    CUdeviceptr made = 0;
    flp_status status;

    if (bytes <= target->workspace_bytes)
        return FLP_OK;
    status = flp_driver_check(target->driver, target->driver->stream_synchronize(target->stream), "cuStreamSynchronize");
    if (status == FLP_OK)
        status = flp_device_memory_allocate(bytes, "the workspace", &made);
    if (status == FLP_OK)
        status = flp_device_memory_release(&target->device, target->workspace);
    if (status != FLP_OK) {
        flp_device_memory_free(&target->device, made);
        return status;
    }
    target->workspace = made;
    target->workspace_bytes = bytes;
    return FLP_OK;
}

flp_status flp_tune_target_check(flp_tune_target *target, int candidate)
{
    flp_plan *plan = target->plans[candidate];
    const int by_bits = strcmp(flp_plan_numerics(plan), flp_plan_numerics(target->plans[0])) == 0;
    flp_status status = make_workspace(target, plan->workspace_bytes);

    if (status == FLP_OK)
        status = call_clean(target, plan, FLP_TUNE_FEW_ROWS);
    if (status == FLP_OK && !by_bits) /* else the base's results are the same bits, and agree with the reference */
        status = flp_tune_arrays_compare(&target->arrays, FLP_TUNE_REFERENCE, 0);
    if (status == FLP_OK)
        status = flp_tune_arrays_compare(&target->arrays, FLP_TUNE_FEW, by_bits);
    if (status == FLP_OK)
        status = call_clean(target, plan, rows_of(target));
    if (status == FLP_OK)
        status = flp_tune_arrays_compare(&target->arrays, FLP_TUNE_ALL, by_bits);
    return status == FLP_OK ? status : flp_status_prefix(status, "tuning \"%s\"", target->candidates[candidate].tuning);
}

/* ---- a target ---- */

static flp_status open_stream(flp_tune_target *target)
{
    const flp_driver *driver = target->driver;
    flp_status status = flp_driver_check(driver, driver->stream_create(&target->stream, CU_STREAM_NON_BLOCKING), "cuStreamCreate");

    if (status == FLP_OK)
        status = flp_driver_check(driver, driver->event_create(&target->begin, 0), "cuEventCreate");
    return status == FLP_OK ? flp_driver_check(driver, driver->event_create(&target->end, 0), "cuEventCreate") : status;
}

/* Takes over the problem with the rows of its bucket, as calls without a plan do, and writes its string, which names no backend. */
static flp_status take_problem(flp_tune_target *target, const void *problem)
{
    const flp_operator *op = target->calls->op;
    flp_status status = flp_problem_normalize(op, problem, &target->problem);

    if (status == FLP_OK)
        *flp_operator_rows(op, &target->problem) = flp_row_buckets_rows(rows_of(target));
    return status == FLP_OK ? flp_tuned_problem_text(op, &target->problem, target->identity.problem) : status;
}

static flp_status make_default_plan(flp_tune_target *target)
{
    flp_status status = grow(target, 1);

    if (status == FLP_OK)
        status = flp_create_plan_tuned(target->context, target->calls->op, &target->problem, target->options.base, &target->plans[0]);
    if (status != FLP_OK || flp_plan_on_gpu(target->plans[0]))
        return status;
    return flp_status_fail(FLP_NO_VARIANT, "the CPU path answers %s, which has nothing to tune: %s", target->identity.problem,
                           flp_plan_reason(target->plans[0]));
}

/* The largest workspace that a candidate may have: the problem's memory_budget, or without one what the tuning's memory leaves, but at least the base's
 * workspace and small_workspace_bytes. */
static int64_t most_workspace(const flp_tune_target *target)
{
    const int64_t budget = flp_problem_memory_budget(target->calls->op, &target->problem),
                  left = target->options.memory_bytes > 0 ? target->options.memory_bytes - flp_tune_arrays_bytes(&target->arrays) : 0;

    return flp_int64_larger(flp_int64_larger(target->workspace_bytes, small_workspace_bytes), budget > 0 ? budget : left);
}

static flp_status make_memory(flp_tune_target *target)
{
    int64_t bytes;
    flp_status status;

    target->workspace_bytes = flp_int64_smaller(target->plans[0]->workspace_bytes, INT64_MAX / MORE_SPLITS) * (target->options.alone ? MORE_SPLITS : 1);
    target->arrays = (flp_tune_arrays){ .calls = target->calls,
                                        .problem = &target->problem,
                                        .checked_bytes = target->options.checked_bytes,
                                        .driver = target->driver,
                                        .stream = target->stream,
                                        .owner = &target->device };
    status = flp_tune_arrays_describe(&target->arrays);
    if (status != FLP_OK)
        return status;
    target->most_workspace_bytes = most_workspace(target);
    bytes = flp_int64_add(flp_tune_arrays_bytes(&target->arrays), target->workspace_bytes);
    if (target->options.memory_bytes > 0 && bytes > target->options.memory_bytes)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "%s takes %" PRId64 " bytes of device memory, wanted at most %" PRId64, target->identity.problem, bytes,
                               target->options.memory_bytes);
    status = flp_tune_arrays_allocate(&target->arrays);
    if (status == FLP_OK && target->workspace_bytes > 0)
        status = flp_device_memory_allocate(target->workspace_bytes, "the workspace", &target->workspace);
    return status;
}

/* Keeps the base's results, after comparing them with the CPU path's, and finds how many calls a run has. */
static flp_status take_results(flp_tune_target *target)
{
    double seconds = 0;
    flp_status status = flp_tune_arrays_run_reference(&target->arrays, target->context);

    if (status == FLP_OK)
        status = call_clean(target, target->plans[0], FLP_TUNE_FEW_ROWS);
    if (status == FLP_OK)
        status = flp_tune_arrays_compare(&target->arrays, FLP_TUNE_REFERENCE, 0);
    if (status == FLP_OK)
        status = flp_tune_arrays_keep(&target->arrays, FLP_TUNE_FEW);
    if (status == FLP_OK)
        status = call_clean(target, target->plans[0], rows_of(target));
    if (status == FLP_OK)
        status = flp_tune_arrays_keep(&target->arrays, FLP_TUNE_ALL);
    if (status == FLP_OK)
        status = time_calls(target, target->plans[0], 1, &seconds);
    target->calls_per_run = seconds * MOST_CALLS < shortest_run_seconds ? MOST_CALLS : 1 + (int)(shortest_run_seconds / seconds);
    return status;
}

static flp_status set_up(flp_tune_target *target, const void *problem)
{
    flp_status status = take_problem(target, problem);

    if (status == FLP_OK)
        status = flp_driver_get(&target->driver);
    if (status == FLP_OK)
        status = flp_device_current(&target->device);
    if (status == FLP_OK)
        status = open_stream(target);
    if (status == FLP_OK)
        status = make_default_plan(target);
    if (status == FLP_OK)
        status = find_candidates(target);
    if (status == FLP_OK)
        status = make_memory(target);
    return status == FLP_OK ? take_results(target) : status;
}

flp_status flp_tune_target_create(flp_context *context, const flp_operator_calls *calls, const void *problem, const flp_tune_target_options *options,
                                  flp_tune_target **target)
{
    flp_tune_target *made = calloc(1, sizeof(*made));
    flp_status status;

    *target = NULL;
    if (!made)
        return flp_status_fail(FLP_OUT_OF_MEMORY, "no memory for a tuning");
    made->context = context;
    made->calls = calls;
    made->options = *options;
    if (!made->options.base)
        made->options.base = "";
    if (made->options.limit == 0)
        made->options.limit = DEFAULT_LIMIT;
    if (made->options.idle_seconds == 0)
        made->options.idle_seconds = default_idle_seconds;
    if (made->options.checked_bytes == 0)
        made->options.checked_bytes = default_checked_bytes;
    status = set_up(made, problem);
    if (status == FLP_OK)
        *target = made;
    else
        flp_tune_target_destroy(made);
    return status;
}

void flp_tune_target_destroy(flp_tune_target *target)
{
    CUcontext left;

    if (!target)
        return;
    if (target->stream && flp_device_enter(&target->device, &left)) {
        target->driver->stream_synchronize(target->stream);
        if (target->begin)
            target->driver->event_destroy(target->begin);
        if (target->end)
            target->driver->event_destroy(target->end);
        target->driver->stream_destroy(target->stream);
        flp_device_leave(left);
    }
    for (int i = 0; i < target->count; i++)
        flp_plan_destroy(target->plans[i]);
    flp_tune_arrays_free(&target->arrays);
    flp_device_memory_free(&target->device, target->workspace);
    free(target->candidates);
    free(target->plans);
    free(target);
}
