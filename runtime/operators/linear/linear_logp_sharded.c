/* linear_logp and its backward over the ranks of an NCCL communicator, each with a shard of the vocabulary: the shard's own call, then one exchange. */
#include <string.h>

#include "base/status.h"
#include "core/call.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/ranks.h"

/* ---- linear_logp ---- */

static flp_status run_shard(const flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_linear_logp_args shard = *args;
    flp_status status = flp_ranks_check(ranks, problem);

    shard.partials = flp_ranks_own_part(ranks, args->partials, args->rows);
    shard.logp = shard.lse = shard.entropy = NULL;
    shard.argmax = NULL;
    return status == FLP_OK ? flp_call_run(&flp_linear_logp_calls, flp_ranks_context(ranks), problem, &shard, flp_header_sizes()) : status;
}

static flp_status merge(const flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    const flp_linear_logp_merge_args of_all = { .rows = args->rows,
                                                .ranks = flp_ranks_count(ranks),
                                                .flags = args->flags,
                                                .partials = args->partials,
                                                .target = args->target,
                                                .ignore_index = args->ignore_index,
                                                .logp = args->logp,
                                                .lse = args->lse,
                                                .entropy = args->entropy,
                                                .argmax = args->argmax,
                                                .stream = args->stream };

    return flp_linear_logp_merge_sized(flp_ranks_context(ranks), problem, &of_all, flp_header_sizes());
}

flp_status flp_linear_logp_sharded_sized(flp_ranks *ranks, const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, const flp_sizes *sizes)
{
    flp_linear_logp_problem own_problem;
    flp_linear_logp_args own_args;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_logp_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_linear_logp_args, sizes, args, &own_args, &status);
    if (status == FLP_OK && !(ranks && problem && args))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !ranks ? "ranks" : !problem ? "problem" : "args");
    if (status != FLP_OK)
        return status;
    status = flp_ranks_agree(ranks, flp_ranks_terms("linear_logp", problem, args, 0), args->flags, run_shard(ranks, problem, args), (CUstream)args->stream);
    if (status == FLP_OK && args->rows > 0)
        status = flp_ranks_gather(ranks, args->partials, args->rows, (CUstream)args->stream);
    return status == FLP_OK ? merge(ranks, problem, args) : status;
}

/* ---- its backward ---- */

static flp_status run_backward_shard(const flp_ranks *ranks, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args)
{
    flp_linear_logp_backward_args shard = *args;
    flp_status status = flp_ranks_check(ranks, &problem->forward);

    if (status == FLP_OK)
        status = flp_ranks_check_grad_hidden(problem, args->grad_hidden_event);
    shard.grad_hidden_event = flp_ranks_grad_hidden_event(ranks);
    return status == FLP_OK ? flp_call_run(&flp_linear_logp_backward_calls, flp_ranks_context(ranks), problem, &shard, flp_header_sizes()) : status;
}

flp_status flp_linear_logp_backward_sharded_sized(flp_ranks *ranks, const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                                  const flp_sizes *sizes)
{
    flp_linear_logp_backward_problem own_problem;
    flp_linear_logp_backward_args own_args;
    flp_linear_logp_args inputs = { .rows = 0 };
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_logp_backward_problem, sizes, problem, &own_problem, &status);
    args = flp_sized_take(&flp_sized_linear_logp_backward_args, sizes, args, &own_args, &status);
    if (status == FLP_OK && !(ranks && problem && args))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !ranks ? "ranks" : !problem ? "problem" : "args");
    if (status != FLP_OK)
        return status;
    memcpy(&inputs, args, FLP_LINEAR_INPUT_BYTES);
    status = flp_ranks_agree(ranks, flp_ranks_terms("linear_logp_backward", &problem->forward, &inputs, problem->grad_hidden != FLP_NONE), args->flags,
                             run_backward_shard(ranks, problem, args), (CUstream)args->stream);
    if (status != FLP_OK || args->rows == 0 || problem->grad_hidden == FLP_NONE)
        return status;
    return flp_ranks_sum(ranks, args->grad_hidden, args->rows * problem->forward.hidden, (CUstream)args->stream);
}
