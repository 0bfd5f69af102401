/* linear_logp: check, find memory, run on the plan's path. */
#include <inttypes.h>

#include "base/status.h"
#include "cpu/linear_logp_cpu.h"
#include "ops/linear_logp_args.h"
#include "ops/linear_logp_launch.h"
#include "plan/dispatch.h"
#include "plan/problem.h"
#include "plan/scratch.h"
#include "plan/target_errors.h"

static flp_status run_on_cpu(flp_plan *plan, const flp_linear_logp_args *args)
{
    flp_linear_logp_args filled = *args;
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status;

    filled.temperature = flp_linear_logp_args_temperature(args);
    status = flp_linear_logp_cpu(plan->context->pool, &plan->problem, &filled, &bad_count, &bad_first);
    flp_target_errors_add(plan, bad_count, bad_first);
    return status;
}

static flp_status run_with_scratch(const flp_plan *plan, const flp_linear_logp_args *args, int64_t bytes)
{
    const int64_t grown = flp_plan_workspace_bytes(plan, plan->problem.rows);
    flp_scratch_loan loan;
    flp_status status = flp_scratch_lend(plan->context->scratch, &plan->device, args->stream, bytes, grown, &loan);

    if (status != FLP_OK)
        return status;
    status = flp_linear_logp_launch(plan, args, loan.address);
    flp_scratch_return(&loan);
    return status;
}

static flp_status run_on_gpu(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const int64_t bytes = flp_plan_workspace_bytes(plan, args->rows);
    flp_status status;

    if (!args->workspace)
        return run_with_scratch(plan, args, bytes);
    status = flp_linear_logp_args_check_workspace(args, bytes);
    return status == FLP_OK ? flp_linear_logp_launch(plan, args, args->workspace) : status;
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *plan, const flp_linear_logp_args *args, unsigned long long cuda_context)
{
    flp_status status = flp_linear_logp_args_check(&plan->problem, args);

    if (status != FLP_OK || args->rows == 0)
        return status;
    if (flp_plan_on_gpu(plan))
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK && args->flags & FLP_CHECK_TARGETS)
        status = flp_linear_logp_args_check_targets(plan, args);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(plan) ? run_on_gpu(plan, args) : run_on_cpu(plan, args);
}

flp_status flp_plan_execute(flp_plan *plan, const flp_linear_logp_args *args)
{
    unsigned long long cuda_context = 0;
    flp_status status = FLP_OK;

    if (!plan || !args)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", plan ? "args" : "plan");
    if (flp_plan_on_gpu(plan) && args->rows != 0)
        status = flp_device_current_id(&cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

/* No rows: what can be checked without addresses, hence without a plan. */
static flp_status check_empty_call(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_linear_logp_problem empty = *problem, normal;
    flp_status status;

    empty.rows = 0;
    empty.pointer_alignment = 0;
    status = flp_problem_normalize(&empty, &normal);
    return status == FLP_OK ? flp_linear_logp_args_check(&normal, args) : status;
}

static flp_status check_call(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    if (args->rows < 0 || args->rows > FLP_PROBLEM_ROWS_MAX)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", wanted 0 .. %" PRId64, args->rows, FLP_PROBLEM_ROWS_MAX);
    return flp_linear_logp_args_check_elements(problem, args);
}

flp_status flp_linear_logp(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status;

    if (!context || !problem || !args)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !context ? "context" : !problem ? "problem" : "args");
    if (args->rows == 0)
        return check_empty_call(problem, args);
    status = check_call(problem, args);
    if (status == FLP_OK)
        status = flp_dispatch_find(context, problem, args->rows, (uintptr_t)args->hidden | (uintptr_t)args->weight, args->stream,
                                   &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
