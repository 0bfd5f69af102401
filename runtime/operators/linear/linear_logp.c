/* linear_logp: its calls. */
#include "operators/linear/linear_logp_cpu.h"
#include "core/call.h"
#include "operators/linear/linear_logp_args.h"
#include "operators/linear/linear_logp_launch.h"
#include "operators/linear/linear_logp_plan.h"

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_logp_cpu(plan->context->pool, flp_plan_problem(plan), args, NULL, bad_count, bad_first);
}

static const flp_operator_calls flp_linear_logp_calls = {
    .op = &flp_linear_logp_operator,
    .arguments = &flp_linear_logp_arguments,
    .launch = flp_linear_logp_launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_linear_logp)
