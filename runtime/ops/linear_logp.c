/* linear_logp: its calls. */
#include <stddef.h>

#include "cpu/linear_logp_cpu.h"
#include "ops/call.h"
#include "ops/linear_logp_args.h"
#include "ops/linear_logp_launch.h"
#include "plan/linear_logp_plan.h"

static void read_args(const void *problem, const void *given, flp_call *call)
{
    const flp_linear_logp_args *args = given;

    (void)problem;
    *call = (flp_call){ .rows = args->rows, .addresses = (uintptr_t)args->hidden | (uintptr_t)args->weight, .stream = args->stream,
                        .workspace = args->workspace, .workspace_bytes = args->workspace_bytes, .flags = args->flags, .target = args->target,
                        .ignore_index = args->ignore_index };
}

static flp_status check_new(const void *problem, const void *args)
{
    return flp_linear_logp_args_check_elements(problem, args);
}

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan, (void)work;
    return flp_linear_logp_args_check(normal, args);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_logp_cpu(plan->context->pool, flp_plan_problem(plan), args, NULL, bad_count, bad_first);
}

static const flp_operator_calls flp_linear_logp_calls = {
    .operator = &flp_linear_logp_operator,
    .args_struct = &flp_sized_linear_logp_args,
    .read = read_args,
    .check_new = check_new,
    .check = check,
    .target_dtype_at = offsetof(flp_linear_logp_problem, target_dtype),
    .vocab_at = offsetof(flp_linear_logp_problem, vocab),
    .launch = flp_linear_logp_launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_linear_logp)
