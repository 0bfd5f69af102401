/* linear_cross_entropy: check, find memory, run on the plan's path. */
#include "base/sized.h"
#include "base/status.h"
#include "ops/arguments.h"
#include "ops/execute.h"
#include "ops/linear_cross_entropy_args.h"
#include "ops/linear_cross_entropy_launch.h"
#include "ops/linear_logp_backward_args.h"
#include "ops/targets.h"
#include "plan/dispatch.h"
#include "plan/linear_cross_entropy_plan.h"
#include "plan/target_errors.h"

static flp_status run_on_cpu(flp_plan *plan, const flp_cross_entropy_call *call)
{
    flp_linear_cross_entropy_args filled = *call->args;
    flp_cross_entropy_call with_filled = *call;
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status;

    filled.temperature = flp_arguments_temperature(filled.temperature);
    with_filled.args = &filled;
    status = flp_linear_cross_entropy_cpu(plan->context->pool, &flp_linear_cross_entropy_plan_of(plan)->problem, &with_filled, &bad_count,
                                          &bad_first);
    flp_target_errors_add(plan, bad_count, bad_first);
    return status;
}

static flp_status check_targets(const flp_plan *plan, const flp_linear_cross_entropy_args *args)
{
    const flp_linear_logp_problem *forward = &flp_linear_cross_entropy_plan_of(plan)->problem.backward.forward;
    const flp_targets targets = { .target = args->target, .dtype = forward->target_dtype, .rows = args->rows, .vocab = forward->vocab,
                                  .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags), .stream = args->stream };

    return flp_targets_check(plan, &targets);
}

static flp_status run_on_gpu(const flp_plan *plan, const flp_cross_entropy_call *call)
{
    const flp_linear_cross_entropy_args *args = call->args;
    const flp_execute_call memory = { args->rows, args->workspace, args->workspace_bytes, args->stream };

    return flp_execute_on_gpu(plan, &memory, flp_linear_cross_entropy_launch, call);
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *common, const flp_linear_cross_entropy_args *args, unsigned long long cuda_context)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);
    flp_cross_entropy_call call;
    flp_status status = flp_linear_cross_entropy_args_resolve(&plan->problem, &plan->program, args, &call);

    if (status == FLP_OK && flp_plan_on_gpu(common))
        status = flp_plan_check_context(common, cuda_context);
    if (status == FLP_OK && args->rows > 0 && args->flags & FLP_CHECK_TARGETS)
        status = check_targets(common, args);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(common) ? run_on_gpu(common, &call) : run_on_cpu(common, &call);
}

/* Without rows too there are zeros to write: the context counts. */
flp_status flp_linear_cross_entropy_execute_sized(flp_plan *plan, const flp_linear_cross_entropy_args *args, const flp_sizes *sizes)
{
    flp_cross_entropy_own_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;

    args = flp_linear_cross_entropy_args_take(args, &own, sizes, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_linear_cross_entropy_operator, args, 1, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

static uintptr_t addresses(const flp_linear_cross_entropy_args *args)
{
    return (uintptr_t)args->hidden | (uintptr_t)args->weight | (uintptr_t)args->grad_hidden | (uintptr_t)args->grad_weight;
}

static flp_status check_call(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    const flp_linear_logp_backward_args shared = flp_linear_cross_entropy_args_shared(args);
    flp_status status = flp_arguments_check_call_rows(args->rows);

    return status == FLP_OK ? flp_linear_logp_backward_args_check_elements(&problem->backward, &shared) : status;
}

/* No rows take the plan of one: somebody has to write the zeros. */
flp_status flp_linear_cross_entropy_sized(flp_context *context, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args,
                                          const flp_sizes *sizes)
{
    flp_linear_cross_entropy_problem own_problem;
    flp_cross_entropy_own_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_cross_entropy_problem, sizes, problem, &own_problem, &status);
    args = flp_linear_cross_entropy_args_take(args, &own_args, sizes, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    status = check_call(problem, args);
    if (status != FLP_OK)
        return status;
    call = (flp_dispatch_call){ args->rows > 0 ? args->rows : 1, addresses(args), args->stream };
    status = flp_dispatch_find(context, &flp_linear_cross_entropy_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
