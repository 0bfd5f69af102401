/* Looks through records for those that apply to a problem. */
#include "core/tuned_search.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/context.h"
#include "core/tuned_identity.h"

/* Reads a size: a letter and digits, e.g. "n4096". 0: the part is not a size. */
static double take_size(const char *part, size_t length)
{
    char *end;
    const double size = length > 1 && islower((unsigned char)part[0]) && isdigit((unsigned char)part[1]) ? (double)strtoll(part + 1, &end, 10) : 0;

    return size > 0 && end == part + length ? size : 0;
}

flp_tuned_shape_distance flp_tuned_search_distance(const char *one, const char *other)
{
    flp_tuned_shape_distance distance = { 0, 1 };

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

flp_status flp_tuned_search_begin(flp_context *context, const flp_wanted_kernels *wanted, const char *problem, const char *base, flp_tuned_search *made)
{
    flp_wanted_kernels at_base = *wanted;
    flp_status status;

    *made = (flp_tuned_search){ .context = context, .wanted = wanted, .problem = problem };
    snprintf(made->tuning, sizeof(made->tuning), "%s", base);
    at_base.tuning = base;
    status = flp_tuned_identify(context, &at_base, &made->base);
    made->tuned = made->base;
    return status;
}

/* The identity of a tuning of the wanted kernels; NULL: they cannot have it. The last one is kept, because many records have the same tuning. */
static const flp_record_identity *identify(flp_tuned_search *found, const char *tuning)
{
    flp_wanted_kernels wanted = *found->wanted;

    if (strcmp(tuning, found->tuning) != 0) {
        snprintf(found->tuning, sizeof(found->tuning), "%s", tuning);
        wanted.tuning = tuning;
        found->tuning_status = flp_tuned_identify(found->context, &wanted, &found->tuned);
    }
    return found->tuning_status == FLP_OK ? &found->tuned : NULL;
}

int flp_tuned_search_is_own(const flp_tuned_search *found, const flp_record *record)
{
    return strcmp(record->identity.problem, found->problem) == 0 && strcmp(record->identity.arch, found->base.arch) == 0;
}

const char *flp_tuned_search_fault(flp_tuned_search *found, const flp_record *record)
{
    const flp_record_identity *tuned = identify(found, record->tuning);

    if (!tuned)
        return "its tuning is none that these kernels have now";
    if (strcmp(record->identity.templates, tuned->templates) != 0)
        return "the templates of its kernels have changed since";
    if (flp_tuned_search_is_own(found, record) && strcmp(record->identity.numerics, tuned->numerics) != 0)
        return "the arithmetic of its kernels has changed since";
    if (flp_tuned_search_is_own(found, record) && strcmp(record->identity.selection, tuned->selection) != 0)
        return "the kernels that are taken without a tuning have changed since";
    if (strcmp(found->base.numerics, tuned->numerics) != 0)
        return found->context->flags & FLP_CONTEXT_TUNED_BITS ? "its tuning gives a row other bits than the record of all numbers of rows decides"
                                                              : "its tuning changes a row's bits, and the context has no FLP_CONTEXT_TUNED_BITS";
    return NULL;
}

int flp_tuned_search_may_serve(void *prospect, const flp_record *record)
{
    flp_tuned_prospect *wanted = prospect;
    const flp_tuned_shape_distance distance = flp_tuned_search_distance(record->identity.problem, wanted->problem);

    const int is_device = !wanted->device || strcmp(record->environment.device, wanted->device) == 0;

    wanted->has_any = (distance.same_family && (distance.log2_sizes == 0 || (distance.log2_sizes < FLP_TUNED_FARTHEST && is_device))) ||
                      strcmp(record->identity.problem, wanted->decision) == 0;
    return wanted->has_any;
}
