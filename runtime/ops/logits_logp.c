/* logits_logp, both directions: their calls. */
#include <stddef.h>

#include "base/dtype.h"
#include "ops/arguments.h"
#include "ops/call.h"
#include "ops/logits_logp_args.h"
#include "ops/logits_logp_launch.h"
#include "plan/logits_logp_backward_plan.h"
#include "plan/logits_logp_plan.h"
#include "plan/problem.h"

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_logits_logp_cpu(plan->context->pool, &((const flp_logits_logp_work *)work)->call, bad_count, bad_first);
}

static flp_status check_elements(flp_dtype dtype, const void *logits, const void *grad_logits)
{
    flp_status status = flp_problem_check_float("dtype", dtype);

    if (status == FLP_OK)
        status = flp_arguments_check_address("logits", logits, flp_dtype_bytes(dtype));
    return status == FLP_OK ? flp_arguments_check_optional("grad_logits", grad_logits, flp_dtype_bytes(dtype)) : status;
}

/* ---- forward ---- */

static void read_args(const void *problem, const void *given, flp_call *call)
{
    const flp_logits_logp_args *args = given;

    (void)problem;
    *call = (flp_call){ .rows = args->rows, .addresses = (uintptr_t)args->logits, .stream = args->stream, .workspace = args->workspace,
                        .workspace_bytes = args->workspace_bytes, .flags = args->flags, .target = args->target,
                        .ignore_index = args->ignore_index, .row_index = args->row_index, .target_rows = args->logits_rows };
}

static flp_status check_new(const void *problem, const void *args)
{
    return check_elements(((const flp_logits_logp_problem *)problem)->dtype, ((const flp_logits_logp_args *)args)->logits, NULL);
}

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((flp_logits_logp_work *)work)->stream = ((const flp_logits_logp_args *)args)->stream;
    return flp_logits_logp_args_check(normal, args, &((flp_logits_logp_work *)work)->call);
}

static const flp_operator_calls flp_logits_logp_calls = {
    .operator = &flp_logits_logp_operator,
    .args_struct = &flp_sized_logits_logp_args,
    .read = read_args,
    .check_new = check_new,
    .check = check,
    .makes_work = 1,
    .target_dtype_at = offsetof(flp_logits_logp_problem, target_dtype),
    .vocab_at = offsetof(flp_logits_logp_problem, vocab),
    .launch = flp_logits_logp_launch,
    .run_on_cpu = run_on_cpu,
};
_Static_assert(sizeof(flp_logits_logp_work) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_logits_logp)

/* ---- backward ---- */

static void read_backward_args(const void *problem, const void *given, flp_call *call)
{
    const flp_logits_logp_backward_args *args = given;

    (void)problem;
    *call = (flp_call){ .rows = args->rows, .addresses = (uintptr_t)args->logits | (uintptr_t)args->grad_logits, .stream = args->stream,
                        .workspace = args->workspace, .workspace_bytes = args->workspace_bytes, .flags = args->flags, .target = args->target,
                        .ignore_index = args->ignore_index, .row_index = args->row_index, .target_rows = args->logits_rows };
}

static flp_status check_new_backward(const void *problem, const void *given)
{
    const flp_logits_logp_backward_args *args = given;

    return check_elements(((const flp_logits_logp_backward_problem *)problem)->dtype, args->logits, args->grad_logits);
}

static flp_status check_backward(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((flp_logits_logp_work *)work)->stream = ((const flp_logits_logp_backward_args *)args)->stream;
    return flp_logits_logp_args_check_backward(normal, args, &((flp_logits_logp_work *)work)->call);
}

static const flp_operator_calls flp_logits_logp_backward_calls = {
    .operator = &flp_logits_logp_backward_operator,
    .args_struct = &flp_sized_logits_logp_backward_args,
    .read = read_backward_args,
    .check_new = check_new_backward,
    .check = check_backward,
    .makes_work = 1,
    .target_dtype_at = offsetof(flp_logits_logp_backward_problem, target_dtype),
    .vocab_at = offsetof(flp_logits_logp_backward_problem, vocab),
    .launch = flp_logits_logp_launch_backward,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_logits_logp_backward)
