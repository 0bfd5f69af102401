/* linear_logp's backward: check, find memory, run on the plan's path. */
#include <inttypes.h>
#include <math.h>

#include "base/sized.h"
#include "base/status.h"
#include "cpu/linear_logp_backward_cpu.h"
#include "cpu/linear_logp_cpu.h"
#include "ops/arguments.h"
#include "ops/execute.h"
#include "ops/linear_logp_backward_args.h"
#include "ops/linear_logp_backward_launch.h"
#include "ops/linear_logp_backward_mark.h"
#include "ops/linear_logp_args.h"
#include "ops/targets.h"
#include "plan/dispatch.h"
#include "plan/linear_logp_backward_plan.h"
#include "plan/target_errors.h"

static flp_status take_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    flp_backward_counts *counts = &((flp_backward_cpu_workspace *)args->workspace)->counts;

    if (counts->mark != flp_backward_mark(plan, args))
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace: got one without the mark of this plan's forward, of %" PRId64 " rows with this "
                               "temperature and ignore_index, that no backward has taken yet: run the forward, once for each backward", args->rows);
    counts->mark = 0;
    return FLP_OK;
}

/* With a forward, this has counted the bad targets, and says more of the rows than lse. */
static flp_status run_on_cpu(flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    const int takes = flp_linear_logp_backward_plan_of(plan)->problem.with_forward && args->rows > 0;
    const flp_backward_more more = { .shares = takes ? ((flp_backward_cpu_workspace *)args->workspace)->shares : NULL };
    flp_linear_logp_backward_args filled = *args;
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status = takes ? take_mark(plan, args) : FLP_OK;

    if (status != FLP_OK)
        return status;
    filled.temperature = flp_arguments_temperature(args->temperature);
    status = flp_linear_logp_backward_cpu(plan->context->pool, &flp_linear_logp_backward_plan_of(plan)->problem, &filled, &more, &bad_count,
                                          &bad_first);
    if (!takes)
        flp_target_errors_add(plan, bad_count, bad_first);
    return status;
}

static flp_status check_targets(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    const flp_linear_logp_problem *forward = &flp_linear_logp_backward_plan_of(plan)->problem.forward;
    const flp_targets targets = { .target = args->target, .dtype = forward->target_dtype, .rows = args->rows, .vocab = forward->vocab,
                                  .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags), .stream = args->stream };

    return flp_targets_check(plan, &targets);
}

static flp_status run_on_gpu(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    const flp_execute_call call = { args->rows, args->workspace, args->workspace_bytes, args->stream };

    return flp_execute_on_gpu(plan, &call, flp_linear_logp_backward_launch, args);
}

/* ---- the forward of a plan that has one ---- */

static flp_linear_logp_backward_args shared_args(const flp_linear_logp_args *args)
{
    return (flp_linear_logp_backward_args){ .rows = args->rows, .target = args->target, .ignore_index = args->ignore_index,
                                            .temperature = args->temperature, .row_temperature = args->row_temperature, .stream = args->stream,
                                            .flags = args->flags };
}

static void leave_mark(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_backward_args shared = shared_args(args);

    ((flp_backward_cpu_workspace *)args->workspace)->counts.mark = flp_backward_mark(plan, &shared);
}

/* A target that the forward had no part for and the backward has is NaN, as on other paths. */
static void clear_shares(flp_row_shares *shares, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        shares[i] = (flp_row_shares){ .origin = NAN, .log2_sum = NAN, .lse = NAN, .entropy = NAN, .logp = NAN };
}

static flp_status run_forward_on_cpu(flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_problem *problem = &flp_linear_logp_backward_plan_of(plan)->forward.problem;
    flp_row_shares *shares = ((flp_backward_cpu_workspace *)args->workspace)->shares;
    const flp_linear_logp_more more = { .shares = shares, .blanks_others = 1 };
    flp_linear_logp_args filled = *args;
    int64_t bad_count = 0, bad_first = INT64_MAX;
    flp_status status;

    filled.temperature = flp_arguments_temperature(args->temperature);
    clear_shares(shares, args->rows);
    status = flp_linear_logp_cpu(plan->context->pool, problem, &filled, &more, &bad_count, &bad_first);
    flp_target_errors_add(plan, bad_count, bad_first);
    if (status == FLP_OK)
        leave_mark(plan, args);
    return status;
}

static flp_status check_workspace(const flp_plan *plan, int64_t rows, const void *workspace, size_t bytes)
{
    return flp_arguments_check_workspace(workspace, bytes, flp_plan_workspace_bytes(plan, rows), rows);
}

static flp_status check_forward(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_backward_plan *own = flp_linear_logp_backward_plan_of(plan);
    flp_status status;

    if (!own->problem.with_forward)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got one of a problem whose with_forward is 0, wanted 1");
    status = flp_linear_logp_args_check(&own->forward.problem, args);
    if (status == FLP_OK && args->rows > 0 && !args->workspace)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "workspace: got NULL, wanted memory that is left alone until the backward");
    if (status == FLP_OK && args->rows > 0)
        status = check_workspace(plan, args->rows, args->workspace, args->workspace_bytes);
    return status == FLP_OK && args->rows > 0 ? flp_arguments_check_address("lse", args->lse, sizeof(float)) : status;
}

/* Its targets are checked here: the backward's are the same. */
static flp_status check_forward_targets(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_backward_args shared = shared_args(args);

    return args->flags & FLP_CHECK_TARGETS ? check_targets(plan, &shared) : FLP_OK;
}

flp_status flp_linear_logp_backward_execute_forward_sized(flp_plan *plan, const flp_linear_logp_args *args, const flp_sizes *sizes)
{
    flp_linear_logp_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;
    flp_execute_call call;

    args = flp_sized_take(&flp_sized_linear_logp_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_linear_logp_backward_operator, args, args ? args->rows : 0, &cuda_context);
    if (status == FLP_OK)
        status = check_forward(plan, args);
    if (status != FLP_OK || args->rows == 0)
        return status;
    if (flp_plan_on_gpu(plan))
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK)
        status = check_forward_targets(plan, args);
    if (status != FLP_OK)
        return status;
    call = (flp_execute_call){ args->rows, args->workspace, args->workspace_bytes, args->stream };
    return flp_plan_on_gpu(plan) ? flp_execute_on_gpu(plan, &call, flp_linear_logp_backward_launch_forward, args)
                                 : run_forward_on_cpu(plan, args);
}

/* ---- the backward ---- */

static flp_status check_forwards_workspace(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    if (!args->workspace)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace: got NULL, wanted that of the forward");
    return check_workspace(plan, args->rows, args->workspace, args->workspace_bytes);
}

/* cuda_context: the id of the current one; not looked at on the CPU path. */
static flp_status execute(flp_plan *plan, const flp_linear_logp_backward_args *args, unsigned long long cuda_context)
{
    flp_status status = flp_linear_logp_backward_args_check(&flp_linear_logp_backward_plan_of(plan)->problem, args);

    if (status == FLP_OK && flp_plan_on_gpu(plan))
        status = flp_plan_check_context(plan, cuda_context);
    if (status == FLP_OK && flp_linear_logp_backward_plan_of(plan)->problem.with_forward && args->rows > 0)
        status = check_forwards_workspace(plan, args);
    if (status == FLP_OK && args->rows > 0 && args->flags & FLP_CHECK_TARGETS)
        status = check_targets(plan, args);
    if (status != FLP_OK)
        return status;
    return flp_plan_on_gpu(plan) ? run_on_gpu(plan, args) : run_on_cpu(plan, args);
}

/* Without rows too there are zeros to write: the context counts. */
flp_status flp_linear_logp_backward_execute_sized(flp_plan *plan, const flp_linear_logp_backward_args *args, const flp_sizes *sizes)
{
    flp_linear_logp_backward_args own;
    unsigned long long cuda_context;
    flp_status status = FLP_OK;

    args = flp_sized_take(&flp_sized_linear_logp_backward_args, sizes, args, &own, &status);
    if (status == FLP_OK)
        status = flp_execute_begin(plan, &flp_linear_logp_backward_operator, args, 1, &cuda_context);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}

static uintptr_t addresses(const flp_linear_logp_backward_args *args)
{
    return (uintptr_t)args->hidden | (uintptr_t)args->weight | (uintptr_t)args->grad_hidden | (uintptr_t)args->grad_weight;
}

static flp_status check_call(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args)
{
    flp_status status = flp_arguments_check_call_rows(args->rows);

    if (status == FLP_OK && problem->with_forward)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "problem.with_forward: got %d, wanted 0: it takes a plan", problem->with_forward);
    return status == FLP_OK ? flp_linear_logp_backward_args_check_elements(problem, args) : status;
}

/* No rows take the plan of one: somebody has to write the zeros. */
flp_status flp_linear_logp_backward_sized(flp_context *context, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                          const flp_sizes *sizes)
{
    flp_linear_logp_backward_problem own_problem;
    flp_linear_logp_backward_args own_args;
    flp_dispatch_call call;
    unsigned long long cuda_context;
    flp_plan *plan;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_logp_backward_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_linear_logp_backward_args, sizes, args, &own_args, &status);
    if (status == FLP_OK)
        status = flp_arguments_check_call(context, problem, args);
    if (status != FLP_OK)
        return status;
    status = check_call(problem, args);
    if (status != FLP_OK)
        return status;
    call = (flp_dispatch_call){ args->rows > 0 ? args->rows : 1, addresses(args), args->stream };
    status = flp_dispatch_find(context, &flp_linear_logp_backward_operator, problem, &call, &cuda_context, &plan);
    return status == FLP_OK ? execute(plan, args, cuda_context) : status;
}
