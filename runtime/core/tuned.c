/* Finds a plan's tuning among the records. */
#include "core/tuned.h"

#include <ctype.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/digest.h"
#include "base/log.h"
#include "base/status.h"
#include "core/calibration.h"
#include "core/dispatch.h"
#include "core/plan.h"
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
    flp_digest_format(found.selection, strlen(found.selection), identity->selection);
    flp_generator_identity_free(&found);
    return status;
}

/* ---- what decides on a row's bits ---- */

/* Behind the operator and the dtype. */
static size_t rows_at(const char *problem)
{
    const char *dtype = strchr(problem, ':'), *rows = dtype ? strchr(dtype + 1, ':') : NULL;

    return rows ? (size_t)(rows - problem) : strlen(problem);
}

static int has_rows(const char *problem)
{
    const char *rows = problem + rows_at(problem);

    return rows[0] && rows[1] == 'n' && isdigit((unsigned char)rows[2]);
}

int flp_tuned_without_rows(const char *problem, char *text)
{
    const size_t at = rows_at(problem);

    if (!has_rows(problem))
        return 0;
    snprintf(text, FLP_PROBLEM_TEXT_BYTES, "%.*s%s", (int)at, problem, problem + at + 1 + strcspn(problem + at + 1, ":"));
    return 1;
}

int flp_tuned_with_rows(const char *problem, char *text)
{
    const size_t at = rows_at(problem);

    if (!problem[at] || has_rows(problem))
        return 0;
    snprintf(text, FLP_PROBLEM_TEXT_BYTES, "%.*s:n%d%s", (int)at, problem, FLP_TUNED_DECIDING_ROWS, problem + at);
    return 1;
}

flp_status flp_tuned_identify_decision(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted,
                                       flp_record_identity *identity)
{
    char text[FLP_PLAN_KERNELS_BYTES];
    flp_wanted_kernels at_rows = { text, wanted->compute_capability, wanted->backend, "" };
    flp_problem_storage problem;
    size_t length;
    flp_status status;

    memcpy(&problem, normal, op->problem_bytes);
    *flp_operator_rows(op, &problem) = FLP_TUNED_DECIDING_ROWS;
    status = flp_problem_text_write(op, normal, text, FLP_PROBLEM_TEXT_BYTES);
    length = strlen(text); /* of the wanted one; what stands behind it there is the plan's hint */
    if (status == FLP_OK)
        status = flp_problem_text_write(op, &problem, text, FLP_PROBLEM_TEXT_BYTES);
    if (status != FLP_OK)
        return status;
    snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s", strlen(wanted->problem) > length ? wanted->problem + length : "");
    status = flp_tuned_identify(context, &at_rows, identity);
    if (status == FLP_OK)
        status = flp_tuned_problem_text(op, &problem, text);
    if (status == FLP_OK && !flp_tuned_without_rows(text, identity->problem))
        status = flp_status_fail(FLP_INTERNAL, "%s: its rows are not its third part", text);
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
    flp_context *context;
    const flp_wanted_kernels *wanted;
    const char *problem;                  /* as records name it */
    flp_record_identity base;             /* of the tuning whose bits a row has */
    char tuning[FLP_RECORD_TUNING_BYTES]; /* that was identified last, */
    flp_status tuning_status;             /* with what came of that */
    flp_record_identity tuned;
} search;

/* base: the tuning whose bits a row has. */
static flp_status begin(flp_context *context, const flp_wanted_kernels *wanted, const char *problem, const char *base, search *made)
{
    flp_wanted_kernels at_base = *wanted;
    flp_status status;

    *made = (search){ .context = context, .wanted = wanted, .problem = problem };
    snprintf(made->tuning, sizeof(made->tuning), "%s", base);
    at_base.tuning = base;
    status = flp_tuned_identify(context, &at_base, &made->base);
    made->tuned = made->base;
    return status;
}

/* The identity of a tuning here; NULL: it is none of these kernels. Many records have the same one. */
static const flp_record_identity *identify(search *found, const char *tuning)
{
    flp_wanted_kernels wanted = *found->wanted;

    if (strcmp(tuning, found->tuning) != 0) {
        snprintf(found->tuning, sizeof(found->tuning), "%s", tuning);
        wanted.tuning = tuning;
        found->tuning_status = flp_tuned_identify(found->context, &wanted, &found->tuned);
    }
    return found->tuning_status == FLP_OK ? &found->tuned : NULL;
}

static int is_own(const search *found, const flp_record *record)
{
    return strcmp(record->identity.problem, found->problem) == 0 && strcmp(record->identity.arch, found->base.arch) == 0;
}

/* Why a record of the problem, or of a shape nearby, says nothing here; NULL: it does. Other sizes may have another arithmetic of their own: what counts
 * there is that of the tuning here. */
static const char *find_fault(search *found, const flp_record *record)
{
    const flp_record_identity *tuned = identify(found, record->tuning);

    if (!tuned)
        return "its tuning is none that these kernels have now";
    if (strcmp(record->identity.templates, tuned->templates) != 0)
        return "the templates of its kernels have changed since";
    if (is_own(found, record) && strcmp(record->identity.numerics, tuned->numerics) != 0)
        return "the arithmetic of its kernels has changed since";
    if (is_own(found, record) && strcmp(record->identity.selection, tuned->selection) != 0)
        return "the kernels that are taken without a tuning have changed since";
    if (strcmp(found->base.numerics, tuned->numerics) != 0)
        return found->context->flags & FLP_CONTEXT_TUNED_BITS ? "its tuning gives a row other bits than the record of all numbers of rows decides"
                                                              : "its tuning changes a row's bits, and the context has no FLP_CONTEXT_TUNED_BITS";
    return NULL;
}

/* ---- what a plan takes ---- */

typedef struct {
    search search;
    const flp_environment *environment;
    int has_own, has_near;
    flp_record own, near;
    double nearest;    /* of near */
    char refused[256]; /* why the last of the problem's own that does not count does not; "": there is none */
} choice;

static void take_own(choice *found, const flp_record *record)
{
    const char *fault = find_fault(&found->search, record);

    if (fault) {
        snprintf(found->refused, sizeof(found->refused), "no record that counts: one of %s on %.64s is there, but %s", record->date, record->environment.device,
                 fault);
    } else if (!found->has_own || flp_records_is_closer(&record->environment, &found->own.environment, found->environment)) {
        found->has_own = 1;
        found->own = *record;
    }
}

/* Of the shape nearest to the problem's on such a GPU, of several the one whose driver and NVRTC are these. Chunks of one shape say nothing of another's: the
 * model has none. */
static void take_near(choice *found, const flp_record *record, double distance)
{
    const flp_environment *here = found->environment;

    if (distance > found->nearest ||
        (distance == found->nearest && !(found->has_near && flp_records_is_closer(&record->environment, &found->near.environment, here))))
        return;
    if (flp_tuning_text_has_chunks(record->tuning) || strcmp(record->identity.arch, found->search.base.arch) != 0 ||
        !flp_environment_same_gpu(&record->environment, here) || find_fault(&found->search, record))
        return;
    found->nearest = distance;
    found->has_near = 1;
    found->near = *record;
}

/* The problem's record that serves this machine best, and that of the nearest shape. */
static int take(void *data, const flp_record *record)
{
    choice *found = data;
    const shape_distance distance = distance_of(record->identity.problem, found->search.problem);

    if (is_own(&found->search, record))
        take_own(found, record);
    else if (distance.same_family)
        take_near(found, record, distance.log2_sizes);
    return 0;
}

typedef struct {
    const char *problem, *decision, *device; /* decision: the problem without its rows; the device's name, NULL: any */
    int has_any;
} prospect;

/* Whether a record may be of use, before anything is computed for its sake: one of this problem on any machine, with its rows or without, or of a shape
 * nearby on such a device. */
static int may_serve(void *data, const flp_record *record)
{
    prospect *wanted = data;
    const shape_distance distance = distance_of(record->identity.problem, wanted->problem);

    const int is_device = !wanted->device || strcmp(record->environment.device, wanted->device) == 0;

    wanted->has_any = (distance.same_family && (distance.log2_sizes == 0 || (distance.log2_sizes < farthest && is_device))) ||
                      strcmp(record->identity.problem, wanted->decision) == 0;
    return wanted->has_any;
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

/* What was measured there, times what the model says of the way from there to here. */
static flp_status carry_over(flp_context *context, const flp_wanted_kernels *wanted, const flp_tuned_question *question, const choice *found, flp_tuned *tuned)
{
    const flp_record *record = &found->near;
    char near_text[FLP_RECORD_PROBLEM_BYTES + 32], calibration[FLP_RECORD_TUNING_BYTES], difference[FLP_ENVIRONMENT_DIFFERENCE_BYTES];
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
    found->nearest = farthest;
    return flp_records_visit(records, take, found);
}

/* What a row's bits are to be: as the record of all numbers of rows says, where the context takes such. base, and decided, which stays what it was where
 * there is none. */
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

/* The kernels that decide on a row's bits, without more: no record is of this number of rows. */
static void take_base(const flp_record *decided, flp_tuned *tuned)
{
    tuned->by = FLP_TUNED_MODEL;
    snprintf(tuned->tuning, sizeof(tuned->tuning), "%s", tuned->base);
    snprintf(tuned->source, sizeof(tuned->source), "model, from a record of %.180s", decided->identity.problem);
}

/* What serves such a device where nothing was measured on it. A context that replays records takes nothing else, and says why one of the problem does not
 * count. */
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
    prospect any = { problem, decision, facts->name, 0 };
    choice found = { .nearest = farthest };
    flp_status status;

    flp_tuned_without_rows(problem, decision);
    status = flp_records_visit(context->records, may_serve, &any);
    if (status == FLP_OK && !any.has_any)
        return take_advice(context, &wanted, question, tuned);
    if (status != FLP_OK)
        return status;
    flp_environment_describe(question->device, &environment);
    status = find_base(context, question, &wanted, &environment, tuned->base, &decided);
    if (status == FLP_OK)
        status = begin(context, &wanted, problem, tuned->base, &found.search);
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
    flp_status status = begin(context, query->wanted, query->problem, query->base, &found.search);

    *match = FLP_RECORD_NONE;
    if (status == FLP_OK)
        status = choose(records, query->environment, &found);
    if (status != FLP_OK || !found.has_own)
        return status;
    *record = found.own;
    *match = flp_environment_same(&record->environment, query->environment) ? FLP_RECORD_EXACT : FLP_RECORD_NEARBY;
    return FLP_OK;
}

/* ---- a record in the place of others ---- */

typedef struct {
    search search;
    const flp_record *record;
} succession;

/* Other kernels of the problem on this machine, which were the fastest before. What counts for another version of the library alone stays. */
static int is_superseded(void *data, const flp_record *other)
{
    succession *found = data;
    const flp_record_identity *identity = &found->record->identity;

    return is_own(&found->search, other) && strcmp(other->identity.numerics, identity->numerics) == 0 &&
           strcmp(other->identity.templates, identity->templates) != 0 && flp_environment_same(&other->environment, &found->record->environment) &&
           !find_fault(&found->search, other);
}

flp_status flp_tuned_publish(flp_context *context, flp_records *records, const flp_wanted_kernels *wanted, const flp_record *record)
{
    succession found = { .record = record };
    flp_status status = flp_records_publish(records, record);

    if (status == FLP_OK)
        status = begin(context, wanted, record->identity.problem, record->tuning, &found.search);
    return status == FLP_OK ? flp_records_remove(records, is_superseded, &found) : status;
}

/* ---- what a plan may take on any machine ---- */

typedef struct {
    search search;
    flp_record *records; /* of this problem or of shapes nearby, which count */
    size_t count, capacity;
    int has_own, out_of_memory; /* has_own: one of them is of the problem */
} collection;

static int collect(void *data, const flp_record *record)
{
    collection *found = data;
    const shape_distance distance = distance_of(record->identity.problem, found->search.problem);

    if (!distance.same_family || distance.log2_sizes >= farthest || strcmp(record->identity.arch, found->search.base.arch) != 0 ||
        find_fault(&found->search, record))
        return 0;
    if (found->count == found->capacity) {
        const size_t capacity = 2 * found->capacity + 16;
        flp_record *more = reallocarray(found->records, capacity, sizeof(*more));

        if (!more)
            return found->out_of_memory = 1;
        found->records = more;
        found->capacity = capacity;
    }
    found->has_own |= is_own(&found->search, record);
    found->records[found->count++] = *record;
    return 0;
}

/* Where the problem has records of its own, one of these is taken, on whatever machine; else the nearest shape's of the same machine. */
static int may_be_taken(const collection *found, const flp_record *record)
{
    const double distance = distance_of(record->identity.problem, found->search.problem).log2_sizes;

    if (found->has_own)
        return is_own(&found->search, record);
    for (const flp_record *other = found->records; other < found->records + found->count; other++) {
        const double others = distance_of(other->identity.problem, found->search.problem).log2_sizes;

        if (flp_environment_same(&other->environment, &record->environment) && (others < distance || (others == distance && other < record)))
            return 0;
    }
    return 1;
}

/* Those that a row of the bits of a tuning may take, and that itself. */
static flp_status list_of_base(flp_context *context, const char *problem, const flp_wanted_kernels *wanted, const char *base, flp_text *tunings)
{
    collection found = { .records = NULL };
    prospect any = { problem, "", NULL, 0 };
    flp_status status = flp_records_visit(context->records, may_serve, &any);

    if (status == FLP_OK && any.has_any)
        status = begin(context, wanted, problem, base, &found.search);
    if (status == FLP_OK && any.has_any)
        status = flp_records_visit(context->records, collect, &found);
    if (status == FLP_OK && base[0])
        flp_text_append(tunings, "%s\n", base);
    for (size_t i = 0; status == FLP_OK && i < found.count; i++)
        if (found.records[i].tuning[0] && may_be_taken(&found, &found.records[i]))
            flp_text_append(tunings, "%s\n", found.records[i].tuning);
    free(found.records);
    return status == FLP_OK && (found.out_of_memory || tunings->failed) ? flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory") : status;
}

typedef struct {
    const flp_record_identity *identity;
    flp_text tunings;
} decisions;

static int take_decision(void *data, const flp_record *record)
{
    decisions *found = data;

    if (record->tuning[0] && flp_record_identity_same(&record->identity, found->identity))
        flp_text_append(&found->tunings, "%s\n", record->tuning);
    return 0;
}

/* What machines' records decide on a row's bits. */
static flp_status list_decided(flp_context *context, const char *problem, const flp_wanted_kernels *wanted, const flp_record_identity *identity,
                               flp_text *tunings)
{
    decisions found = { .identity = identity };
    char *rest = NULL;
    flp_status status = flp_records_visit(context->records, take_decision, &found);

    for (char *base = found.tunings.data ? strtok_r(found.tunings.data, "\n", &rest) : NULL; status == FLP_OK && base; base = strtok_r(NULL, "\n", &rest))
        status = list_of_base(context, problem, wanted, base, tunings);
    if (status == FLP_OK && found.tunings.failed)
        status = flp_status_fail(FLP_OUT_OF_MEMORY, "records: no memory");
    flp_text_free(&found.tunings);
    return status;
}

/* What GPUs of this compute capability take whose memory is slow. */
static flp_status list_advice(flp_context *context, const flp_wanted_kernels *wanted, flp_text *tunings)
{
    const flp_model_facts slow = { .memory = 1, .calibration = "" };
    char *tuning = NULL;
    flp_status status = flp_generator_advise(flp_kernel_store_generator(context->store), wanted, &slow, &tuning);

    if (status == FLP_OK && tuning[0])
        flp_text_append(tunings, "%s\n", tuning);
    free(tuning);
    return status == FLP_OK && tunings->failed ? flp_status_fail(FLP_OUT_OF_MEMORY, "tunings: no memory") : status;
}

flp_status flp_tuned_list(flp_context *context, const flp_operator *op, const void *normal, const flp_wanted_kernels *wanted, flp_text *tunings)
{
    char problem[FLP_PROBLEM_TEXT_BYTES];
    flp_record_identity identity;
    flp_status status = flp_tuned_problem_text(op, normal, problem);

    if (status == FLP_OK)
        status = list_of_base(context, problem, wanted, "", tunings);
    if (status == FLP_OK)
        status = list_advice(context, wanted, tunings);
    if (status != FLP_OK || !(context->flags & FLP_CONTEXT_TUNED_BITS))
        return status;
    status = flp_tuned_identify_decision(context, op, normal, wanted, &identity);
    return status == FLP_OK ? list_decided(context, problem, wanted, &identity, tunings) : status;
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
