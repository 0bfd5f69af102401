/* weighted_sum_backward: its calls. */
#include "base/dtype.h"
#include "base/status.h"
#include "cpu/weighted_sum_backward_cpu.h"
#include "ops/arguments.h"
#include "ops/call.h"
#include "ops/weighted_sum_backward_launch.h"
#include "plan/problem.h"
#include "plan/weighted_sum_backward_plan.h"

static void read_args(const void *asked, const void *given, flp_call *call)
{
    const flp_weighted_sum_backward_problem *problem = asked;
    const flp_weighted_sum_backward_args *args = given;

    *call = (flp_call){ .rows = args->rows, .stream = args->stream, .workspace = args->workspace, .workspace_bytes = args->workspace_bytes,
                        .addresses = (problem->grad_w ? (uintptr_t)args->x : 0) | (problem->grad_x ? (uintptr_t)args->grad_x : 0) };
}

/* Before the dispatch takes the alignment from the addresses. */
static flp_status check_new(const void *asked, const void *given)
{
    const flp_weighted_sum_backward_problem *problem = asked;
    const flp_weighted_sum_backward_args *args = given;
    flp_status status = flp_problem_check_float("dtype", problem->forward.dtype);

    if (status == FLP_OK)
        status = flp_arguments_check_optional("x", args->x, flp_dtype_bytes(problem->forward.dtype));
    if (status != FLP_OK || problem->grad_x == FLP_NONE)
        return status;
    status = flp_problem_check_float("grad_x", problem->grad_x);
    return status == FLP_OK ? flp_arguments_check_optional("grad_x", args->grad_x, flp_dtype_bytes(problem->grad_x)) : status;
}

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

static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_weighted_sum_backward_problem *normal = problem;
    const flp_weighted_sum_backward_args *args = given;
    flp_status status = flp_arguments_check_rows(args->rows, normal->forward.rows);

    (void)plan, (void)work;
    if (status == FLP_OK && args->rows > 0)
        status = flp_arguments_check_address("g", args->g, flp_dtype_bytes(normal->forward.y_dtype));
    if (status == FLP_OK)
        status = check_grad_x(normal, args);
    return status == FLP_OK ? check_grad_w(normal, args) : status;
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    return flp_weighted_sum_backward_cpu(plan->context->pool, flp_plan_problem(plan), args);
}

static const flp_operator_calls flp_weighted_sum_backward_calls = {
    .operator = &flp_weighted_sum_backward_operator,
    .args_struct = &flp_sized_weighted_sum_backward_args,
    .read = read_args,
    .check_new = check_new,
    .check = check,
    .writes_without_rows = 1,
    .launch = flp_weighted_sum_backward_launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_weighted_sum_backward)
