/* Chooses a plan's tuning from the records, the model or advice; and publishes records. */
#include "core/tuned.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/status.h"
#include "core/calibration.h"
#include "core/plan.h"
#include "core/tuned_identity.h"
#include "core/tuned_search.h"
#include "tune/untuned.h"

/* The model carries a tuning over to another shape only if it promises more than this, because it is wrong by up to 1 % from one shape to the next. */
static const double worthwhile_ratio = 0.99;

/* ---- what a plan takes ---- */

typedef struct {
    flp_tuned_search search;
    const flp_environment *environment;
    int has_own, has_near;
    flp_record own, near;
    double nearest;    /* the distance of near */
    char refused[256]; /* why a record of the problem does not apply, the last of several; "": there is none */
} choice;

static void take_own(choice *found, const flp_record *record)
{
    const char *fault = flp_tuned_search_fault(&found->search, record);

    if (fault) {
        snprintf(found->refused, sizeof(found->refused), "no record that counts: one of %s on %.64s is there, but %s", record->date, record->environment.device,
                 fault);
    } else if (!found->has_own || flp_records_is_closer(&record->environment, &found->own.environment, found->environment)) {
        found->has_own = 1;
        found->own = *record;
    }
}

/* Keeps the record if its shape is the nearest to the problem's so far, on such a GPU; of several, the one with the same driver and NVRTC. A tuning with chunks
 * is left out, because the model does not cover chunks and they say nothing about another shape's. */
static void take_near(choice *found, const flp_record *record, double distance)
{
    const flp_environment *here = found->environment;

    if (distance > found->nearest ||
        (distance == found->nearest && !(found->has_near && flp_records_is_closer(&record->environment, &found->near.environment, here))))
        return;
    if (flp_tuning_text_has_chunks(record->tuning) || strcmp(record->identity.arch, found->search.base.arch) != 0 ||
        !flp_environment_same_gpu(&record->environment, here) || flp_tuned_search_fault(&found->search, record))
        return;
    found->nearest = distance;
    found->has_near = 1;
    found->near = *record;
}

/* Keeps the problem's record that fits this machine best, and the record of the nearest shape. */
static int take(void *data, const flp_record *record)
{
    choice *found = data;
    const flp_tuned_shape_distance distance = flp_tuned_search_distance(record->identity.problem, found->search.problem);

    if (flp_tuned_search_is_own(&found->search, record))
        take_own(found, record);
    else if (distance.same_family)
        take_near(found, record, distance.log2_sizes);
    return 0;
}

static void take_record(const flp_record *record, const flp_environment *here, flp_tuned *tuned)
{
    char difference[FLP_ENVIRONMENT_DIFFERENCE_BYTES];

    flp_environment_difference(&record->environment, here, difference);
    tuned->by = difference[0] ? FLP_TUNED_NEARBY : FLP_TUNED_EXACT;
    snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", record->tuning);
    snprintf(tuned->source, sizeof(tuned->source), "%s, a record of %s on %.64s%s%s", difference[0] ? "nearby" : "exact", record->date,
             record->environment.device, difference[0] ? ": " : "", difference);
}

/* Takes the tuning of the nearest shape's record, if it promises a gain: the ratio that was measured there, times the change from there to here that the model
 * predicts. */
static flp_status carry_over(flp_context *context, const flp_wanted_kernels *wanted, const flp_tuned_question *question, const choice *found, flp_tuned *tuned)
{
    const flp_record *record = &found->near;
    char near_text[FLP_RECORD_PROBLEM_BYTES + FLP_HINT_BYTES], calibration[FLP_RECORD_TUNING_BYTES], difference[FLP_ENVIRONMENT_DIFFERENCE_BYTES];
    flp_model_facts model;
    flp_transfer transfer = { .wanted = *wanted, .near_problem = near_text, .near_ratio = record->ratio };
    flp_status status;

    snprintf(near_text, sizeof(near_text), "%s%s", record->identity.problem, question->hint);
    transfer.wanted.tuning = record->tuning;
    flp_calibration_facts(context, question->device, &model, calibration);
    status = flp_generator_transfer(flp_kernel_store_generator(context->store), &transfer, &model);
    if (status != FLP_OK)
        return status;
    tuned->by = FLP_TUNED_MODEL;
    if (transfer.ratio < worthwhile_ratio)
        snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", record->tuning);
    flp_environment_difference(&record->environment, found->environment, difference);
    snprintf(tuned->source, sizeof(tuned->source), "model, from a record of %.180s%s%s", record->identity.problem, difference[0] ? ": " : "", difference);
    return FLP_OK;
}

static flp_status choose(flp_records *records, const flp_environment *environment, choice *found)
{
    found->environment = environment;
    found->nearest = FLP_TUNED_FARTHEST;
    return flp_records_visit(records, take, found);
}

/* Finds the record that decides on a row's bits for all numbers of rows, if the context follows such records (FLP_CONTEXT_TUNED_BITS). base: receives its
 * tuning; "": there is none. decided: receives the record, and is not changed where there is none. */
static flp_status find_base(flp_context *context, const flp_tuned_question *question, const flp_wanted_kernels *wanted, const flp_environment *environment,
                            char base[FLP_TUNING_BYTES], flp_record *decided)
{
    flp_record_identity identity;
    flp_record_match match = FLP_RECORD_NONE;
    flp_status status = FLP_OK;

    base[0] = 0;
    if (context->flags & FLP_CONTEXT_TUNED_BITS) {
        status = flp_tuned_identify_decision(context, question->op, question->normal, wanted, &identity);
        if (status == FLP_OK)
            status = flp_records_find(context->records, &identity, environment, decided, &match);
    }
    if (status == FLP_OK && match != FLP_RECORD_NONE)
        snprintf(base, FLP_TUNING_BYTES, "%s", decided->tuning);
    return status;
}

/* Takes only the tuning that decides on a row's bits, because there is no record of this number of rows. */
static void take_base(const flp_record *decided, flp_tuned *tuned)
{
    tuned->by = FLP_TUNED_MODEL;
    snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", tuned->base);
    snprintf(tuned->source, sizeof(tuned->source), "model, from a record of %.180s", decided->identity.problem);
}

/* Takes the device's default tuning (advice), because no record applies. A context with FLP_CONTEXT_REPLAY takes only records: for it, tuned->source still says
 * why a record of the problem does not apply. */
static flp_status take_advice(flp_context *context, const flp_wanted_kernels *wanted, const flp_tuned_question *question, flp_tuned *tuned)
{
    char calibration[FLP_RECORD_TUNING_BYTES], *tuning = NULL;
    flp_model_facts model;
    flp_status status;

    if (context->flags & FLP_CONTEXT_REPLAY)
        return FLP_OK;
    flp_calibration_facts(context, question->device, &model, calibration);
    status = flp_generator_advise(flp_kernel_store_generator(context->store), wanted, &model, &tuning);
    if (status == FLP_OK && tuning[0]) {
        tuned->by = FLP_TUNED_MODEL;
        snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", tuning);
        snprintf(tuned->source, sizeof(tuned->source), "model, of memory with %" PRId64 " GB/s", (int64_t)(1e-9 * model.memory));
    }
    free(tuning);
    return status;
}

static flp_status find(flp_context *context, const flp_tuned_question *question, const char *problem, flp_tuned *tuned)
{
    const flp_device_facts *facts = &question->device->facts;
    const flp_wanted_kernels wanted = { question->kernels, facts->compute_capability, flp_backend_name(question->choice->path), "" };
    char decision[FLP_PROBLEM_TEXT_BYTES] = "";
    flp_environment environment;
    flp_record decided;
    flp_tuned_prospect any = { problem, decision, facts->name, 0 };
    choice found = { .nearest = FLP_TUNED_FARTHEST };
    flp_status status;

    flp_tuned_without_rows(problem, decision);
    status = flp_records_visit(context->records, flp_tuned_search_may_serve, &any);
    if (status == FLP_OK && !any.has_any)
        return take_advice(context, &wanted, question, tuned);
    if (status != FLP_OK)
        return status;
    flp_environment_describe(question->device, &environment);
    status = find_base(context, question, &wanted, &environment, tuned->base, &decided);
    if (status == FLP_OK)
        status = flp_tuned_search_begin(context, &wanted, problem, tuned->base, &found.search);
    if (status == FLP_OK)
        status = choose(context->records, &environment, &found);
    if (status != FLP_OK)
        return status;
    if (found.has_own) {
        take_record(&found.own, &environment, tuned);
        return FLP_OK;
    }
    snprintf(tuned->source, sizeof(tuned->source), "%s", found.refused);
    if (tuned->base[0])
        take_base(&decided, tuned);
    if (!found.has_near)
        return tuned->base[0] ? FLP_OK : take_advice(context, &wanted, question, tuned);
    return found.near.tuning[0] ? carry_over(context, &wanted, question, &found, tuned) : FLP_OK;
}

flp_status flp_tuned_record(flp_context *context, flp_records *records, const flp_tuned_query *query, flp_record *record, flp_record_match *match)
{
    choice found = { .nearest = 0 };
    flp_status status = flp_tuned_search_begin(context, query->wanted, query->problem, query->base, &found.search);

    *match = FLP_RECORD_NONE;
    if (status == FLP_OK)
        status = choose(records, query->environment, &found);
    if (status != FLP_OK || !found.has_own)
        return status;
    *record = found.own;
    *match = flp_environment_same(&record->environment, query->environment) ? FLP_RECORD_EXACT : FLP_RECORD_NEARBY;
    return FLP_OK;
}

/* ---- a record that replaces others ---- */

typedef struct {
    flp_tuned_search search;
    const flp_record *record;
} succession;

/* 1: a record of other kernels of the same problem, arithmetic and machine, which were the fastest before. Records that only another version of the library can
 * use stay. */
static int is_superseded(void *data, const flp_record *other)
{
    succession *found = data;
    const flp_record_identity *identity = &found->record->identity;

    return flp_tuned_search_is_own(&found->search, other) && strcmp(other->identity.numerics, identity->numerics) == 0 &&
           strcmp(other->identity.templates, identity->templates) != 0 && flp_environment_same(&other->environment, &found->record->environment) &&
           !flp_tuned_search_fault(&found->search, other);
}

flp_status flp_tuned_publish(flp_context *context, flp_records *records, const flp_wanted_kernels *wanted, const flp_record *record)
{
    succession found = { .record = record };
    flp_status status = flp_records_publish(records, record);

    if (status == FLP_OK)
        status = flp_tuned_search_begin(context, wanted, record->identity.problem, record->tuning, &found.search);
    return status == FLP_OK ? flp_records_remove(records, is_superseded, &found) : status;
}

void flp_tuned_find(flp_context *context, const flp_tuned_question *question, flp_tuned *tuned)
{
    char problem[FLP_PROBLEM_TEXT_BYTES], callers_message[FLP_STATUS_MESSAGE_BYTES];
    flp_status status;

    *tuned = (flp_tuned){ .by = FLP_TUNED_NOT };
    flp_status_keep_message(callers_message);
    status = flp_tuned_problem_text(question->op, question->normal, problem);
    if (status == FLP_OK)
        status = find(context, question, problem, tuned);
    if (status != FLP_OK) {
        flp_log_warning("records of tunings are left out: %s", flp_error_message());
        *tuned = (flp_tuned){ .by = FLP_TUNED_NOT };
    }
    if (tuned->by == FLP_TUNED_NOT || tuned->by == FLP_TUNED_MODEL)
        flp_untuned_note(flp_records_directory(context->records), question->choice->selection.arch, problem);
    flp_status_restore_message(callers_message);
}
