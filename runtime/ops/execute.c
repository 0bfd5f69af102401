/* Runs an operator's launches in the caller's workspace or in the context's shared scratch. */
#include "ops/execute.h"

#include "base/status.h"
#include "ops/arguments.h"
#include "plan/scratch.h"

static flp_status run_in_scratch(const flp_plan *plan, const flp_execute_call *call, int64_t bytes, flp_execute_launch *launch,
                                 const void *args, flp_workspace *workspace)
{
    const int64_t grown = flp_plan_workspace_bytes(plan, flp_plan_rows(plan));
    flp_scratch_loan loan;
    flp_status status = flp_scratch_lend(plan->context->scratch, &plan->device, call->stream, bytes, grown, &loan);

    if (status != FLP_OK)
        return status;
    workspace->memory = loan.address;
    status = launch(plan, args, workspace);
    flp_scratch_return(&loan);
    return status;
}

flp_status flp_execute_on_gpu(const flp_plan *plan, const flp_execute_call *call, flp_execute_launch *launch, const void *args)
{
    flp_workspace workspace;
    flp_status status = FLP_OK;
    int64_t bytes;

    flp_plan_lay_out(plan, call->rows, &workspace);
    bytes = flp_plan_most_rows(plan, call->rows) == call->rows ? workspace.bytes : flp_plan_workspace_bytes(plan, call->rows);
    if (bytes > 0 && !call->workspace)
        return run_in_scratch(plan, call, bytes, launch, args, &workspace);
    if (bytes > 0)
        status = flp_arguments_check_workspace(call->workspace, call->workspace_bytes, bytes, call->rows);
    workspace.memory = call->workspace;
    return status == FLP_OK ? launch(plan, args, &workspace) : status;
}

flp_status flp_execute_begin(const flp_plan *plan, const flp_operator *operator, const void *args, int64_t rows,
                             unsigned long long *cuda_context)
{
    flp_status status = flp_plan_check_operator(plan, operator);

    *cuda_context = 0;
    if (status == FLP_OK && !args)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "args: got NULL");
    if (status == FLP_OK && flp_plan_on_gpu(plan) && rows != 0)
        status = flp_device_current_id(cuda_context);
    return status;
}
