/* All that later calls of a problem would have to make, before a capture or the first request. */
#include "core/prepare.h"

#include "base/status.h"
#include "core/dispatch.h"
#include "core/plan.h"
#include "core/scratch.h"

static int64_t smaller(int64_t left, int64_t right)
{
    return left < right ? left : right;
}

/* Every bucket of rows up to the normal problem's, and the scratch of the most demanding one. */
static flp_status prepare_buckets(flp_context *context, const flp_operator *op, void *normal, CUstream stream)
{
    const int64_t most = *flp_operator_rows(op, normal);
    const uintptr_t alignment = (uintptr_t)*flp_operator_pointer_alignment(op, normal);
    unsigned long long cuda_context;
    flp_plan *plan = NULL;
    int64_t bytes = 0;

    for (int64_t rows = 1; rows <= most; rows = flp_plan_rows(plan) + 1) {
        const flp_dispatch_call call = { .rows = rows, .addresses = alignment, .stream = stream };
        flp_status status = flp_dispatch_find(context, op, normal, &call, &cuda_context, &plan);
        int64_t wanted;
        if (status != FLP_OK)
            return status;
        wanted = flp_plan_workspace_bytes(plan, smaller(flp_plan_rows(plan), most));
        bytes = wanted > bytes ? wanted : bytes;
    }
    return bytes ? flp_scratch_reserve(context->scratch, &plan->device, stream, bytes) : FLP_OK;
}

flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, CUstream stream, const flp_sizes *sizes)
{
    flp_problem_storage normal, own;
    flp_status status = FLP_OK;

    if (!context)
        return flp_status_fail(FLP_BAD_ARGUMENT, "context: got NULL, wanted a context");
    problem = flp_sized_take(op->problem_struct, sizes, problem, &own, &status);
    if (status == FLP_OK)
        status = flp_problem_normalize(op, problem, &normal);
    return status == FLP_OK ? prepare_buckets(context, op, &normal, stream) : status;
}
