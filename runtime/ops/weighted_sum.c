/* weighted_sum: its calls. */
#include "base/dtype.h"
#include "cpu/weighted_sum_cpu.h"
#include "ops/arguments.h"
#include "ops/call.h"
#include "params/weighted_sum.h"
#include "plan/problem.h"
#include "plan/weighted_sum_plan.h"

static void read_args(const void *problem, const void *given, flp_call *call)
{
    const flp_weighted_sum_args *args = given;

    (void)problem;
    *call = (flp_call){ .rows = args->rows, .addresses = (uintptr_t)args->x, .stream = args->stream };
}

/* Before the dispatch takes the alignment from it. */
static flp_status check_new(const void *given, const void *args)
{
    const flp_weighted_sum_problem *problem = given;
    flp_status status = flp_problem_check_float("dtype", problem->dtype);

    return status == FLP_OK ? flp_arguments_check_address("x", ((const flp_weighted_sum_args *)args)->x, flp_dtype_bytes(problem->dtype)) : status;
}

static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_weighted_sum_problem *normal = problem;
    const flp_weighted_sum_args *args = given;
    flp_status status = flp_arguments_check_rows(args->rows, normal->rows);

    (void)plan, (void)work;
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

    (void)workspace;
    return flp_call_launch(plan->sum, flp_weighted_sum_plan_blocks(plan, args->rows), args->stream, parameters);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    flp_weighted_sum_cpu(plan->context->pool, flp_plan_problem(plan), args);
    return FLP_OK;
}

static const flp_operator_calls flp_weighted_sum_calls = {
    .operator = &flp_weighted_sum_operator,
    .args_struct = &flp_sized_weighted_sum_args,
    .read = read_args,
    .check_new = check_new,
    .check = check,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_weighted_sum)
