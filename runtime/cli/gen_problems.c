/* fusedlogp-gen: collects the kernels that plans of the named problems select on GPUs of an architecture, without a tuning and with the tunings of this
 * machine's records. */
#include <argz.h>
#include <string.h>
#include "base/status.h"
#include "cli/gen.h"
#include "cli/operators.h"
#include "core/row_buckets.h"
#include "core/plan.h"

typedef struct {
    flp_context *context;
    const char *arch; /* may end in @host */
    int compute_capability;
    const flp_operator *op;
    flp_problem_storage problem;
    flp_text *lines;
} request;

static void append_variant(void *data, const char *variant)
{
    const request *request = data;
    flp_text_append(request->lines, "%s%s\n", variant, strstr(request->arch, "@host") ? "@host" : "");
}

static flp_status append_rows(request *request, int64_t rows)
{
    *flp_operator_rows(request->op, &request->problem) = rows;
    return flp_plan_visit_kernels(request->context, request->op, &request->problem, request->compute_capability, append_variant, request);
}

/* A plan that a caller makes is for the problem's own rows. A call without a plan uses the plan of its rows' bucket; with any_rows, the plans of the smaller
 * buckets are covered too. */
static flp_status append_problem(request *request, int any_rows)
{
    const int64_t rows = *flp_operator_rows(request->op, &request->problem);
    flp_status status = append_rows(request, rows);
    /* The bucket rounds the rows up and may refuse what the problem's own rows allow, such as a tight memory_budget. This is no error: only a plan of the
     * problem's own rows can run such a problem. */
    for (int64_t bucket = any_rows ? 1 : rows; status == FLP_OK && bucket <= rows; bucket++) {
        bucket = flp_row_buckets_rows(bucket);
        status = append_rows(request, bucket);
        if (status == FLP_BAD_ARGUMENT)
            status = FLP_OK;
    }
    return status;
}

static flp_status append_each(request *request, const char *argz, size_t bytes, int any_rows)
{
    const flp_operator_calls *calls;
    const char *text = NULL;
    flp_status status = FLP_OK;
    while (status == FLP_OK && (text = argz_next(argz, bytes, text)) != NULL) {
        status = flp_operators_read(text, &calls, &request->problem);
        request->op = calls->op;
        if (status == FLP_OK)
            status = append_problem(request, any_rows);
        if (status == FLP_NO_VARIANT)
            status = flp_status_prefix(status, "%s on %s", text, request->arch);
    }
    return status;
}

flp_status flp_gen_problems_append(const flp_gen_options *options, flp_context *context, const char *arch, flp_text *lines)
{
    request request = { .context = context, .arch = arch, .lines = lines };
    flp_status status = flp_generator_capability(flp_kernel_store_generator(context->store), arch, &request.compute_capability);
    if (status == FLP_OK)
        status = append_each(&request, options->problems, options->problems_bytes, options->any_rows);
    return status == FLP_OK ? append_each(&request, options->model_problems, options->model_problems_bytes, 1) : status;
}
