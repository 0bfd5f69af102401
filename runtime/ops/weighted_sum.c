/* weighted_sum: check, run on the plan's path. */
#include "base/sized.h"
#include "base/status.h"
#include "cpu/convert.h"
#include "cpu/weighted_sum_cpu.h"
#include "ops/arguments.h"
#include "ops/execute.h"
#include "ops/launch.h"
#include "params/weighted_sum.h"
#include "plan/dispatch.h"
#include "plan/problem.h"
#include "plan/weighted_sum_plan.h"
#include "plan/weighted_sum_problem.h"

static flp_status check_args(const flp_weighted_sum_problem *normal, const flp_weighted_sum_args *args)
{
    flp_status status = flp_arguments_check_rows(args->rows, normal->rows);

    if (status != FLP_OK || args->rows == 0)
        return status;
    status = flp_arguments_check_address("x", args->x, normal->pointer_alignment);
    if (status == FLP_OK)
        status = flp_arguments_check_address("w", args->w, flp_dtype_bytes(normal->w_dtype));
    return status == FLP_OK ? flp_arguments_check_address("y", args->y, flp_dtype_bytes(normal->y_dtype)) : status;
}

static flp_status launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_weighted_sum_args *args = given;
    const flp_weighted_sum_plan *plan = flp_weighted_sum_plan_of(common);
    flp_weighted_sum_params params = {
        .x = args->x, .w = args->w, .y = args->y, .rows = args->rows, .x_stride = plan->problem.x_stride,
        .columns = (int32_t)plan->problem.columns,
    };
    void *parameters[] = { &params };
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    (void)workspace;
    if (status != FLP_OK)
        return status;
    return flp_launch_kernel(driver, plan->sum, flp_weighted_sum_plan_blocks(plan, args->rows), args->stream, parameters);
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *plan, const flp_weighted_sum_args *args, unsigned long long cuda_context)
{
    const flp_weighted_sum_problem *problem = &flp_weighted_sum_plan_of(plan)->problem;
    const flp_execute_call call = { .rows = args->rows, .stream = args->stream };
    flp_status status = check_args(problem, args);

    if (status != FLP_OK || args->rows == 0)
        return status;
    if (!flp_plan_on_gpu(plan)) {
        flp_weighted_sum_cpu(plan->context->pool, problem, args);
        return FLP_OK;
    }
    status = flp_plan_check_context(plan, cuda_context);
    return status == FLP_OK ? flp_execute_on_gpu(plan, &call, launch, args) : status;
}

flp_status flp_weighted_sum_execute_sized(flp_plan *plan, const flp_weighted_sum_args *args, const flp_sizes *sizes)
{
    flp_weighted_sum_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;

    args = flp_sized_take(&flp_sized_weighted_sum_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_weighted_sum_operator, args, args ? args->rows : 0, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

/* No rows: what can be checked without addresses, hence without a plan. */
static flp_status check_empty_call(const flp_weighted_sum_problem *problem)
{
    flp_weighted_sum_problem empty = *problem, normal;

    empty.rows = 0;
    empty.pointer_alignment = 0;
    return flp_weighted_sum_problem_normalize(&empty, &normal);
}

/* Before the dispatch takes the alignment from it. */
static flp_status check_call(const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args)
{
    flp_status status = flp_arguments_check_call_rows(args->rows);

    if (status == FLP_OK)
        status = flp_problem_check_float("dtype", problem->dtype);
    return status == FLP_OK ? flp_arguments_check_address("x", args->x, flp_dtype_bytes(problem->dtype)) : status;
}

flp_status flp_weighted_sum_sized(flp_context *context, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args,
                                  const flp_sizes *sizes)
{
    flp_weighted_sum_problem own_problem;
    flp_weighted_sum_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_weighted_sum_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_weighted_sum_args, sizes, args, &own_args, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    if (args->rows == 0)
        return check_empty_call(problem);
    status = check_call(problem, args);
    if (status != FLP_OK)
        return status;
    call = (flp_dispatch_call){ args->rows, (uintptr_t)args->x, args->stream };
    status = flp_dispatch_find(context, &flp_weighted_sum_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
