/* What a record of a tuning is identified by: the problem's text, the arithmetic, the templates and the default kernels; and the identity of the record that
 * decides on a row's bits. */
#include "core/tuned_identity.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/digest.h"
#include "base/status.h"
#include "core/context.h"
#include "core/row_buckets.h"
#include "core/plan.h"

flp_status flp_tuned_problem_text(const flp_operator *op, const void *normal, char *text)
{
    const flp_backend any = FLP_BACKEND_AUTO;
    flp_problem_storage problem;

    memcpy(&problem, normal, op->problem_bytes);
    *flp_operator_rows(op, &problem) = flp_row_buckets_rows(*flp_operator_rows(op, &problem));
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

/* The offset of what follows the operator and the dtype. */
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
    length = strlen(text); /* of the string at the start of wanted->problem; the plan's hint follows it there */
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
