/* Finds a plan's tuning among the records. */
#include "core/tuned.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "core/calibration.h"
#include "core/dispatch.h"
#include "tune/untuned.h"

/* Shapes whose sizes differ by more powers of two than this, taken together, say nothing about each other. */
static const double farthest = 4;
/* What the model must promise before it changes anything: more than it is wrong by from one shape to the next. */
static const double worthwhile_ratio = 0.99;

flp_status flp_tuned_problem_text(const flp_operator *op, const void *normal, char *text)
{
    const flp_backend any = FLP_BACKEND_AUTO;
    flp_problem_storage problem;

    memcpy(&problem, normal, op->problem_bytes);
    *flp_operator_rows(op, &problem) = flp_dispatch_rows(*flp_operator_rows(op, &problem));
    memcpy(problem.bytes + op->backend_at, &any, sizeof(any));
    return flp_problem_text_write(op, &problem, text, FLP_PROBLEM_TEXT_BYTES);
}

flp_status flp_tuned_identify(flp_context *context, const flp_wanted_kernels *wanted, flp_record_identity *identity)
{
    flp_generator_identity found;
    flp_status status = flp_generator_identify(flp_kernel_store_generator(context->store), wanted, &found);

    if (status != FLP_OK)
        return status;
    snprintf(identity->arch, sizeof(identity->arch), "%s", found.arch);
    if (strlen(found.numerics) < sizeof(identity->numerics))
        strcpy(identity->numerics, found.numerics);
    else
        status =
            flp_status_fail(FLP_INTERNAL, "numeric identity: got %zu characters, wanted fewer than %zu", strlen(found.numerics), sizeof(identity->numerics));
    flp_digest_format(found.templates, strlen(found.templates), identity->templates);
    flp_generator_identity_free(&found);
    return status;
}

/* ---- shapes ---- */

typedef struct {
    double log2_sizes; /* of how far they are apart */
    int same_family;   /* but for the sizes they are one problem */
} shape_distance;

/* Reads a size, a letter and digits, as "n4096"; 0: it is none. */
static double take_size(const char *part, size_t length)
{
    char *end;
    const double size = length > 1 && islower((unsigned char)part[0]) && isdigit((unsigned char)part[1]) ? (double)strtoll(part + 1, &end, 10) : 0;

    return size > 0 && end == part + length ? size : 0;
}

static shape_distance distance_of(const char *one, const char *other)
{
    shape_distance distance = { 0, 1 };

    while (*one && *other) {
        const size_t length = strcspn(one, ":"), others = strcspn(other, ":");
        const double size = take_size(one, length), others_size = take_size(other, others);

        if (size > 0 && others_size > 0 && one[0] == other[0])
            distance.log2_sizes += fabs(log2(size / others_size));
        else if (length != others || memcmp(one, other, length) != 0)
            distance.same_family = 0;
        one += length + (one[length] == ':');
        other += others + (other[others] == ':');
    }
    distance.same_family &= *one == *other;
    return distance;
}

/* ---- looking through the records ---- */

typedef struct {
    const char *problem, *device; /* the device's name */
    flp_record_identity identity; /* templates "": not known yet */
    const flp_environment *environment;
    int has_any;
    double nearest; /* infinity: none */
    flp_record record;
} search;

/* Whether a record may be of use, before anything is computed for its sake: one of this problem on any machine, or of a shape nearby on such a device. */
static int may_serve(void *data, const flp_record *record)
{
    search *wanted = data;
    const shape_distance distance = distance_of(record->identity.problem, wanted->problem);

    wanted->has_any =
        distance.same_family && (distance.log2_sizes == 0 || (distance.log2_sizes < farthest && strcmp(record->environment.device, wanted->device) == 0));
    return wanted->has_any;
}

/* The nearest shape that was measured on this machine with these templates. */
static int take_nearest(void *data, const flp_record *record)
{
    search *wanted = data;
    const shape_distance distance = distance_of(record->identity.problem, wanted->problem);

    if (distance.same_family && distance.log2_sizes < wanted->nearest && strcmp(record->identity.arch, wanted->identity.arch) == 0 &&
        strcmp(record->identity.templates, wanted->identity.templates) == 0 && flp_environment_same(&record->environment, wanted->environment)) {
        wanted->nearest = distance.log2_sizes;
        wanted->record = *record;
    }
    return 0;
}

static void take_record(const flp_record *record, flp_tuned_by by, flp_tuned *tuned)
{
    tuned->by = by;
    snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", record->tuning);
    snprintf(tuned->source, sizeof(tuned->source), "%s, a record of %s on %s", by == FLP_TUNED_EXACT ? "exact" : "nearby", record->date,
             record->environment.device);
}

/* What was measured there, times what the model says of the way from there to here. */
static flp_status carry_over(flp_context *context, const flp_wanted_kernels *wanted, const char *hint, const flp_device *device, const flp_record *record,
                             flp_tuned *tuned)
{
    char near_text[FLP_RECORD_PROBLEM_BYTES + 32], calibration[FLP_RECORD_TUNING_BYTES];
    flp_model_facts model;
    flp_transfer transfer = { .wanted = *wanted, .near_problem = near_text, .near_ratio = record->ratio };
    flp_status status;

    snprintf(near_text, sizeof(near_text), "%s%s", record->identity.problem, hint);
    transfer.wanted.tuning = record->tuning;
    flp_calibration_facts(context, device, &model, calibration);
    status = flp_generator_transfer(flp_kernel_store_generator(context->store), &transfer, &model);
    if (status != FLP_OK)
        return status;
    tuned->by = FLP_TUNED_MODEL;
    if (transfer.ratio < worthwhile_ratio)
        snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", record->tuning);
    snprintf(tuned->source, sizeof(tuned->source), "model, from a record of %.180s", record->identity.problem);
    return FLP_OK;
}

static flp_status find(flp_context *context, const flp_tuned_question *question, const char *problem, flp_tuned *tuned)
{
    const flp_device_facts *facts = &question->device->facts;
    const flp_wanted_kernels wanted = { question->kernels, facts->compute_capability, flp_backend_name(question->choice->path), "" };
    flp_environment environment;
    flp_record_match match;
    search wanted_record = { .problem = problem, .device = facts->name, .nearest = farthest, .environment = &environment };
    flp_status status = flp_records_visit(context->records, may_serve, &wanted_record);

    if (status != FLP_OK || !wanted_record.has_any)
        return status;
    snprintf(wanted_record.identity.problem, sizeof(wanted_record.identity.problem), "%s", problem);
    status = flp_tuned_identify(context, &wanted, &wanted_record.identity);
    if (status != FLP_OK)
        return status;
    flp_environment_describe(question->device, &environment);
    status = flp_records_find(context->records, &wanted_record.identity, &environment, &wanted_record.record, &match);
    if (status == FLP_OK && match != FLP_RECORD_NONE) {
        take_record(&wanted_record.record, match == FLP_RECORD_EXACT ? FLP_TUNED_EXACT : FLP_TUNED_NEARBY, tuned);
        return FLP_OK;
    }
    if (status == FLP_OK)
        status = flp_records_visit(context->records, take_nearest, &wanted_record);
    if (status != FLP_OK || wanted_record.nearest >= farthest || !wanted_record.record.tuning[0])
        return status;
    return carry_over(context, &wanted, question->hint, question->device, &wanted_record.record, tuned);
}

/* ---- what a plan may take on any machine ---- */

typedef struct {
    const char *problem;
    flp_record_identity identity;
    flp_record *records; /* of this problem or of shapes nearby, with these templates */
    size_t count, capacity;
    int has_own, out_of_memory; /* has_own: one of them has this identity */
} collection;

static int collect(void *data, const flp_record *record)
{
    collection *found = data;
    const shape_distance distance = distance_of(record->identity.problem, found->problem);

    if (!distance.same_family || distance.log2_sizes >= farthest || strcmp(record->identity.arch, found->identity.arch) != 0 ||
        strcmp(record->identity.templates, found->identity.templates) != 0)
        return 0;
    if (found->count == found->capacity) {
        const size_t capacity = 2 * found->capacity + 16;
        flp_record *more = reallocarray(found->records, capacity, sizeof(*more));

        if (!more)
            return found->out_of_memory = 1;
        found->records = more;
        found->capacity = capacity;
    }
    found->has_own |= flp_record_identity_same(&record->identity, &found->identity);
    found->records[found->count++] = *record;
    return 0;
}

/* Where the problem has records of its own, one of these is taken, on whatever machine; else the nearest shape's of the same machine. */
static int may_be_taken(const collection *found, const flp_record *record)
{
    const double distance = distance_of(record->identity.problem, found->problem).log2_sizes;

    if (found->has_own)
        return flp_record_identity_same(&record->identity, &found->identity);
    for (const flp_record *other = found->records; other < found->records + found->count; other++) {
        const double others = distance_of(other->identity.problem, found->problem).log2_sizes;

        if (flp_environment_same(&other->environment, &record->environment) && (others < distance || (others == distance && other < record)))
            return 0;
    }
    return 1;
}

flp_status flp_tuned_list(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted, flp_text *tunings)
{
    char problem[FLP_PROBLEM_TEXT_BYTES];
    collection found = { .problem = problem };
    flp_status status = flp_tuned_problem_text(op, normal, problem);

    if (status == FLP_OK)
        status = flp_tuned_identify(context, wanted, &found.identity);
    if (status != FLP_OK)
        return status;
    snprintf(found.identity.problem, sizeof(found.identity.problem), "%s", problem);
    status = flp_records_visit(context->records, collect, &found);
    for (size_t i = 0; status == FLP_OK && i < found.count; i++)
        if (found.records[i].tuning[0] && may_be_taken(&found, &found.records[i]))
            flp_text_append(tunings, "%s\n", found.records[i].tuning);
    free(found.records);
    return status == FLP_OK && (found.out_of_memory || tunings->failed) ? flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory") : status;
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
