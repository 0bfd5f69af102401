/* flp_prepare: all that a later flp_linear_logp would have to make, before a capture or the first request. */
#include "base/status.h"
#include "plan/dispatch.h"
#include "plan/plan.h"
#include "plan/problem.h"
#include "plan/scratch.h"

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* Every bucket of rows up to normal->rows, and the scratch of the most demanding one. */
static flp_status prepare_buckets(flp_context *context, const flp_linear_logp_problem *normal, CUstream stream)
{
    unsigned long long cuda_context;
    flp_plan *plan = NULL;
    int64_t bytes = 0;

    for (int64_t rows = 1; rows <= normal->rows; rows = plan->problem.rows + 1) {
        flp_status status = flp_dispatch_find(context, normal, rows, (uintptr_t)normal->pointer_alignment, stream, &cuda_context, &plan);
        int64_t wanted;
        if (status != FLP_OK)
            return status;
        wanted = flp_plan_workspace_bytes(plan, smaller(plan->problem.rows, normal->rows));
        bytes = wanted > bytes ? wanted : bytes;
    }
    return bytes ? flp_scratch_reserve(context->scratch, &plan->device, stream, bytes) : FLP_OK;
}

flp_status flp_prepare(flp_context *context, const flp_linear_logp_problem *problem, void *stream)
{
    flp_linear_logp_problem normal;
    flp_status status;

    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    status = flp_problem_normalize(problem, &normal);
    return status == FLP_OK ? prepare_buckets(context, &normal, stream) : status;
}
