/* logits_logp: check, find a plan, run. */
#include "base/sized.h"
#include "base/status.h"
#include "ops/arguments.h"
#include "ops/execute.h"
#include "ops/logits_logp_args.h"
#include "ops/logits_logp_launch.h"
#include "ops/logits_logp_run.h"
#include "plan/dispatch.h"
#include "plan/logits_logp_plan.h"
#include "plan/logits_logp_problem.h"

static flp_status execute(flp_plan *plan, const flp_logits_logp_args *args, unsigned long long cuda_context)
{
    const flp_execute_call memory = { args->rows, args->workspace, args->workspace_bytes, args->stream };
    flp_logits_logp_call call;
    flp_status status = flp_logits_logp_args_check(&flp_logits_logp_plan_of(plan)->problem, args, &call);

    if (status != FLP_OK || args->rows == 0)
        return status;
    return flp_logits_logp_run(plan, &call, &memory, args->flags, cuda_context, flp_logits_logp_launch);
}

flp_status flp_logits_logp_execute_sized(flp_plan *plan, const flp_logits_logp_args *args, const flp_sizes *sizes)
{
    flp_logits_logp_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;

    args = flp_sized_take(&flp_sized_logits_logp_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_logits_logp_operator, args, args ? args->rows : 0, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

/* No rows: what can be checked without addresses, hence without a plan. */
static flp_status check_empty_call(const flp_logits_logp_problem *problem, const flp_logits_logp_args *args)
{
    flp_logits_logp_problem empty = *problem, normal;
    flp_logits_logp_call call;
    flp_status status;

    empty.rows = 0;
    empty.pointer_alignment = 0;
    status = flp_logits_logp_problem_normalize(&empty, &normal);
    return status == FLP_OK ? flp_logits_logp_args_check(&normal, args, &call) : status;
}

flp_status flp_logits_logp_sized(flp_context *context, const flp_logits_logp_problem *problem, const flp_logits_logp_args *args,
                                 const flp_sizes *sizes)
{
    flp_logits_logp_problem own_problem;
    flp_logits_logp_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_logits_logp_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_logits_logp_args, sizes, args, &own_args, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    if (args->rows == 0)
        return check_empty_call(problem, args);
    status = flp_logits_logp_run_check_call(problem->dtype, args->rows, args->logits, NULL);
    if (status != FLP_OK)
        return status;
    call = (flp_dispatch_call){ args->rows, (uintptr_t)args->logits, args->stream };
    status = flp_dispatch_find(context, &flp_logits_logp_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
