/* Runs a call of logits_logp, either direction, on its plan's path. */
#include "ops/logits_logp_run.h"

#include "base/status.h"
#include "cpu/convert.h"
#include "ops/arguments.h"
#include "ops/logits_logp_launch.h"
#include "ops/targets.h"
#include "plan/problem.h"
#include "plan/target_errors.h"

static flp_status check_targets(const flp_plan *plan, const flp_logits_logp_call *call, CUstream stream)
{
    const flp_targets targets = { .target = call->target, .dtype = call->target_dtype, .rows = call->rows, .vocab = call->vocab,
                                  .ignore_index = call->ignore_index, .ignores = call->ignores, .stream = stream, .row_index = call->row_index,
                                  .target_rows = call->logits_rows };

    return flp_targets_check(plan, &targets);
}

static flp_status run_on_cpu(flp_plan *plan, const flp_logits_logp_call *call)
{
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status = flp_logits_logp_cpu(plan->context->pool, call, &bad_count, &bad_first);

    flp_target_errors_add(plan, bad_count, bad_first);
    return status;
}

flp_status flp_logits_logp_run(flp_plan *plan, const flp_logits_logp_call *call, const flp_execute_call *memory, unsigned flags,
                               unsigned long long cuda_context, flp_execute_launch *launch)
{
    const flp_logits_logp_work work = { .call = *call, .stream = memory->stream };
    flp_status status = flp_plan_on_gpu(plan) ? flp_plan_check_context(plan, cuda_context) : FLP_OK;

    if (status == FLP_OK && flags & FLP_CHECK_TARGETS)
        status = check_targets(plan, call, memory->stream);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(plan) ? flp_execute_on_gpu(plan, memory, launch, &work) : run_on_cpu(plan, call);
}

flp_status flp_logits_logp_run_check_call(flp_dtype dtype, int64_t rows, const void *logits, const void *grad_logits)
{
    flp_status status = flp_arguments_check_call_rows(rows);

    if (status == FLP_OK)
        status = flp_problem_check_float("dtype", dtype);
    if (status == FLP_OK)
        status = flp_arguments_check_address("logits", logits, flp_dtype_bytes(dtype));
    return status == FLP_OK ? flp_arguments_check_optional("grad_logits", grad_logits, flp_dtype_bytes(dtype)) : status;
}
