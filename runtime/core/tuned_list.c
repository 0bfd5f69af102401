/* Lists the tunings that a plan may have on any machine, for a prebuild of its kernels. */
#include <stdlib.h>
#include <string.h>

#include "base/status.h"
#include "core/context.h"
#include "core/tuned.h"
#include "core/tuned_identity.h"
#include "core/tuned_search.h"

typedef struct {
    flp_tuned_search search;
    flp_record *records; /* that apply, of this problem or of shapes nearby */
    size_t count, capacity;
    int has_own, out_of_memory; /* has_own: one of them is of the problem */
} collection;

static int collect(void *data, const flp_record *record)
{
    collection *found = data;
    const flp_tuned_shape_distance distance = flp_tuned_search_distance(record->identity.problem, found->search.problem);

    if (!distance.same_family || distance.log2_sizes >= FLP_TUNED_FARTHEST || strcmp(record->identity.arch, found->search.base.arch) != 0 ||
        flp_tuned_search_fault(&found->search, record))
        return 0;
    if (found->count == found->capacity) {
        const size_t capacity = 2 * found->capacity + 16;
        flp_record *more = reallocarray(found->records, capacity, sizeof(*more));

        if (!more)
            return found->out_of_memory = 1;
        found->records = more;
        found->capacity = capacity;
    }
    found->has_own |= flp_tuned_search_is_own(&found->search, record);
    found->records[found->count++] = *record;
    return 0;
}

/* 1: a plan may take this record. If the problem has records of its own, a plan takes one of these on any machine; else it takes the nearest shape's of the
 * same machine. */
static int may_be_taken(const collection *found, const flp_record *record)
{
    const double distance = flp_tuned_search_distance(record->identity.problem, found->search.problem).log2_sizes;

    if (found->has_own)
        return flp_tuned_search_is_own(&found->search, record);
    for (const flp_record *other = found->records; other < found->records + found->count; other++) {
        const double others = flp_tuned_search_distance(other->identity.problem, found->search.problem).log2_sizes;

        if (flp_environment_same(&other->environment, &record->environment) && (others < distance || (others == distance && other < record)))
            return 0;
    }
    return 1;
}

/* Appends base, a tuning that decides on a row's bits, and the tunings of records that a plan with these bits may take. base "": the generator's own bits. */
static flp_status list_of_base(flp_context *context, const char *problem, const flp_wanted_kernels *wanted, const char *base, flp_text *tunings)
{
    collection found = { .records = NULL };
    flp_tuned_prospect any = { problem, "", NULL, 0 };
    flp_status status = flp_records_visit(context->records, flp_tuned_search_may_serve, &any);

    if (status == FLP_OK && any.has_any)
        status = flp_tuned_search_begin(context, wanted, problem, base, &found.search);
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

/* Does this for each tuning that a machine's record has decided on. */
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

/* Appends the default tuning (advice) of GPUs of this compute capability that have slow memory. */
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
