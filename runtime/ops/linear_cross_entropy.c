/* linear_cross_entropy: its calls. */
#include <stddef.h>

#include "ops/call.h"
#include "ops/linear_cross_entropy_args.h"
#include "ops/linear_cross_entropy_launch.h"
#include "ops/linear_logp_backward_args.h"
#include "plan/linear_cross_entropy_plan.h"

static const void *take(const void *args, void *own, const flp_sizes *sizes, flp_status *status)
{
    return flp_linear_cross_entropy_args_take(args, own, sizes, status);
}

static void read_args(const void *problem, const void *given, flp_call *call)
{
    const flp_linear_cross_entropy_args *args = given;

    (void)problem;
    *call = (flp_call){ .rows = args->rows, .stream = args->stream, .workspace = args->workspace, .workspace_bytes = args->workspace_bytes,
                        .addresses = (uintptr_t)args->hidden | (uintptr_t)args->weight | (uintptr_t)args->grad_hidden | (uintptr_t)args->grad_weight,
                        .flags = args->flags, .target = args->target, .ignore_index = args->ignore_index };
}

static flp_status check_new(const void *problem, const void *args)
{
    const flp_linear_logp_backward_args shared = flp_linear_cross_entropy_args_shared(args);

    return flp_linear_logp_backward_args_check_elements(&((const flp_linear_cross_entropy_problem *)problem)->backward, &shared);
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
    .args_struct = &flp_sized_linear_cross_entropy_args,
    .take = take,
    .read = read_args,
    .check_new = check_new,
    .check = check,
    .makes_work = 1,
    .writes_without_rows = 1,
    .target_dtype_at = offsetof(flp_linear_cross_entropy_problem, backward.forward.target_dtype),
    .vocab_at = offsetof(flp_linear_cross_entropy_problem, backward.forward.vocab),
    .launch = flp_linear_cross_entropy_launch,
    .run_on_cpu = run_on_cpu,
};
_Static_assert(sizeof(flp_cross_entropy_own_args) <= FLP_CALL_ARGS_BYTES, "FLP_CALL_ARGS_BYTES is too small");
_Static_assert(sizeof(flp_cross_entropy_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_linear_cross_entropy)
