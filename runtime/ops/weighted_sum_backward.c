/* weighted_sum_backward: check, find memory, run on the plan's path. */
#include "base/sized.h"
#include "base/status.h"
#include "cpu/convert.h"
#include "cpu/weighted_sum_backward_cpu.h"
#include "ops/arguments.h"
#include "ops/weighted_sum_backward_launch.h"
#include "plan/dispatch.h"
#include "plan/problem.h"
#include "plan/weighted_sum_backward_plan.h"
#include "plan/weighted_sum_problem.h"

static int larger(int left, int right)
{
    return left > right ? left : right;
}

static flp_status check_grad_x(const flp_weighted_sum_backward_problem *normal, const flp_weighted_sum_backward_args *args)
{
    const int bytes = flp_dtype_bytes(normal->grad_x);
    flp_status status;

    if (normal->grad_x == FLP_NONE)
        return flp_arguments_check_absent("grad_x", args->grad_x, "grad_x is FLP_NONE");
    if (args->rows == 0)
        return FLP_OK;
    status = flp_arguments_check_address("grad_x", args->grad_x, larger(bytes, normal->forward.pointer_alignment));
    if (status == FLP_OK && args->grad_x == args->x &&
        (normal->grad_x != normal->forward.dtype || normal->grad_x_stride != normal->forward.x_stride))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_x: got x with another dtype or stride, wanted x's or another array");
    return status == FLP_OK ? flp_arguments_check_address("w", args->w, flp_dtype_bytes(normal->forward.w_dtype)) : status;
}

/* With no rows grad_w is written all the same. */
static flp_status check_grad_w(const flp_weighted_sum_backward_problem *normal, const flp_weighted_sum_backward_args *args)
{
    flp_status status;

    if (normal->grad_w == FLP_NONE)
        return flp_arguments_check_absent("grad_w", args->grad_w, "grad_w is FLP_NONE");
    status = flp_arguments_check_address("grad_w", args->grad_w, flp_dtype_bytes(normal->grad_w));
    if (status != FLP_OK || args->rows == 0)
        return status;
    return flp_arguments_check_address("x", args->x, normal->forward.pointer_alignment);
}

static flp_status check_args(const flp_weighted_sum_backward_problem *normal, const flp_weighted_sum_backward_args *args)
{
    flp_status status = flp_arguments_check_rows(args->rows, normal->forward.rows);

    if (status == FLP_OK && args->rows > 0)
        status = flp_arguments_check_address("g", args->g, flp_dtype_bytes(normal->forward.y_dtype));
    if (status == FLP_OK)
        status = check_grad_x(normal, args);
    return status == FLP_OK ? check_grad_w(normal, args) : status;
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *plan, const flp_weighted_sum_backward_args *args, unsigned long long cuda_context)
{
    const flp_weighted_sum_backward_problem *problem = &flp_weighted_sum_backward_plan_of(plan)->problem;
    const flp_execute_call call = { args->rows, args->workspace, args->workspace_bytes, args->stream };
    flp_status status = check_args(problem, args);

    if (status != FLP_OK || (args->rows == 0 && problem->grad_w == FLP_NONE))
        return status;
    if (!flp_plan_on_gpu(plan))
        return flp_weighted_sum_backward_cpu(plan->context->pool, problem, args);
    status = flp_plan_check_context(plan, cuda_context);
    return status == FLP_OK ? flp_execute_on_gpu(plan, &call, flp_weighted_sum_backward_launch, args) : status;
}

flp_status flp_weighted_sum_backward_execute_sized(flp_plan *plan, const flp_weighted_sum_backward_args *args, const flp_sizes *sizes)
{
    flp_weighted_sum_backward_args own;
    unsigned long long cuda_context;
    /* Without rows there may still be a launch. */
    flp_status status = FLP_OK;

    args = flp_sized_take(&flp_sized_weighted_sum_backward_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_weighted_sum_backward_operator, args, 1, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

/* Before the dispatch takes the alignment from the addresses. */
static flp_status check_call(const flp_weighted_sum_backward_problem *problem, const flp_weighted_sum_backward_args *args)
{
    flp_status status = flp_arguments_check_call_rows(args->rows);

    if (status == FLP_OK)
        status = flp_problem_check_float("dtype", problem->forward.dtype);
    if (status == FLP_OK)
        status = flp_arguments_check_optional("x", args->x, flp_dtype_bytes(problem->forward.dtype));
    if (status != FLP_OK || problem->grad_x == FLP_NONE)
        return status;
    status = flp_problem_check_float("grad_x", problem->grad_x);
    return status == FLP_OK ? flp_arguments_check_optional("grad_x", args->grad_x, flp_dtype_bytes(problem->grad_x)) : status;
}

flp_status flp_weighted_sum_backward_sized(flp_context *context, const flp_weighted_sum_backward_problem *problem, const flp_weighted_sum_backward_args *args,
                                           const flp_sizes *sizes)
{
    flp_weighted_sum_backward_problem own_problem;
    flp_weighted_sum_backward_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    uintptr_t addresses;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_weighted_sum_backward_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_weighted_sum_backward_args, sizes, args, &own_args, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    status = check_call(problem, args);
    if (status != FLP_OK)
        return status;
    addresses = (problem->grad_w ? (uintptr_t)args->x : 0) | (problem->grad_x ? (uintptr_t)args->grad_x : 0);
    call = (flp_dispatch_call){ args->rows > 0 ? args->rows : 1, addresses, args->stream };
    status = flp_dispatch_find(context, &flp_weighted_sum_backward_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
