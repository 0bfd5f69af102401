/* linear_cross_entropy: its calls. */
#include "ops/call.h"
#include "ops/linear_cross_entropy_args.h"
#include "ops/linear_cross_entropy_launch.h"
#include "plan/linear_cross_entropy_plan.h"

static const void *take(const void *args, void *own, const flp_sizes *sizes, flp_status *status)
{
    return flp_linear_cross_entropy_args_take(args, own, sizes, status);
}

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    return flp_linear_cross_entropy_args_resolve(normal, &flp_linear_cross_entropy_plan_of(plan)->program, args, work);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_cross_entropy_cpu(plan->context->pool, flp_plan_problem(plan), work, bad_count, bad_first);
}

static const flp_operator_calls flp_linear_cross_entropy_calls = {
    .operator = &flp_linear_cross_entropy_operator,
    .arguments = &flp_linear_cross_entropy_arguments,
    .take = take,
    .check = check,
    .makes_work = 1,
    .writes_without_rows = 1,
    .launch = flp_linear_cross_entropy_launch,
    .run_on_cpu = run_on_cpu,
};
_Static_assert(sizeof(flp_cross_entropy_own_args) <= FLP_CALL_ARGS_BYTES, "FLP_CALL_ARGS_BYTES is too small");
_Static_assert(sizeof(flp_cross_entropy_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_linear_cross_entropy)
