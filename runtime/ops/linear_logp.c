/* linear_logp: check, find memory, run on the plan's path. */
#include "base/sized.h"
#include "base/status.h"
#include "cpu/linear_logp_cpu.h"
#include "ops/arguments.h"
#include "ops/execute.h"
#include "ops/linear_logp_args.h"
#include "ops/linear_logp_launch.h"
#include "ops/targets.h"
#include "plan/dispatch.h"
#include "plan/linear_logp_plan.h"
#include "plan/linear_logp_problem.h"
#include "plan/target_errors.h"

static flp_status run_on_cpu(flp_plan *plan, const flp_linear_logp_args *args)
{
    flp_linear_logp_args filled = *args;
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status;

    filled.temperature = flp_arguments_temperature(args->temperature);
    status = flp_linear_logp_cpu(plan->context->pool, &flp_linear_logp_plan_of(plan)->problem, &filled, NULL, &bad_count, &bad_first);
    flp_target_errors_add(plan, bad_count, bad_first);
    return status;
}

static flp_status run_on_gpu(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_execute_call call = { args->rows, args->workspace, args->workspace_bytes, args->stream };

    return flp_execute_on_gpu(plan, &call, flp_linear_logp_launch, args);
}

static flp_status check_targets(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_problem *problem = &flp_linear_logp_plan_of(plan)->problem;
    const flp_targets targets = { .target = args->target, .dtype = problem->target_dtype, .rows = args->rows, .vocab = problem->vocab,
                                  .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags), .stream = args->stream };

    return flp_targets_check(plan, &targets);
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *plan, const flp_linear_logp_args *args, unsigned long long cuda_context)
{
    flp_status status = flp_linear_logp_args_check(&flp_linear_logp_plan_of(plan)->problem, args);

    if (status != FLP_OK || args->rows == 0)
        return status;
    if (flp_plan_on_gpu(plan))
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK && args->flags & FLP_CHECK_TARGETS)
        status = check_targets(plan, args);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(plan) ? run_on_gpu(plan, args) : run_on_cpu(plan, args);
}

flp_status flp_linear_logp_execute_sized(flp_plan *plan, const flp_linear_logp_args *args, const flp_sizes *sizes)
{
    flp_linear_logp_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;

    args = flp_sized_take(&flp_sized_linear_logp_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_linear_logp_operator, args, args ? args->rows : 0, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

/* No rows: what can be checked without addresses, hence without a plan. */
static flp_status check_empty_call(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_linear_logp_problem empty = *problem, normal;
    flp_status status;

    empty.rows = 0;
    empty.pointer_alignment = 0;
    status = flp_linear_logp_problem_normalize(&empty, &normal);
    return status == FLP_OK ? flp_linear_logp_args_check(&normal, args) : status;
}

static flp_status check_call(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = flp_arguments_check_call_rows(args->rows);

    return status == FLP_OK ? flp_linear_logp_args_check_elements(problem, args) : status;
}

flp_status flp_linear_logp_sized(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args,
                                 const flp_sizes *sizes)
{
    flp_linear_logp_problem own_problem;
    flp_linear_logp_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_logp_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_linear_logp_args, sizes, args, &own_args, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    if (args->rows == 0)
        return check_empty_call(problem, args);
    status = check_call(problem, args);
    if (status != FLP_OK)
        return status;
    call = (flp_dispatch_call){ args->rows, (uintptr_t)args->hidden | (uintptr_t)args->weight, args->stream };
    status = flp_dispatch_find(context, &flp_linear_logp_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
