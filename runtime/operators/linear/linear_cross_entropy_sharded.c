/* linear_cross_entropy over the ranks of an NCCL communicator, each with a shard of the vocabulary: the shard's partials, their exchange, the merge with the
 * shard's gradients, and the sum of grad_hidden over the ranks. */
#include <string.h>

#include "base/status.h"
#include "core/call.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/ranks.h"

static uint32_t mix_text(uint32_t hash, const char *text)
{
    return flp_ranks_mix(hash, text ? text : "", text ? strlen(text) + 1 : 1);
}

/* Does not depend on the order of the parameters. */
static uint32_t parameters_digest(const flp_linear_cross_entropy_args *args)
{
    uint32_t sum = 0;

    for (int i = 0; args->token_parameters && i < args->token_parameter_count; i++) {
        const uint32_t named = mix_text(FLP_RANKS_DIGEST, args->token_parameters[i].name);
        sum += flp_ranks_mix(named, &args->token_parameters[i].value, sizeof(double));
    }
    return sum;
}

/* A digest of the options that decide the losses, and of whether grad_hidden is requested. flp_ranks_terms adds all others. */
static uint32_t options_of(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    const int flags[] = { problem->reduction,     problem->label_smoothing, problem->class_weights,
                          problem->token_weights, problem->entropy,         problem->backward.grad_hidden != FLP_NONE,
                          args->g_loss != NULL };
    const double numbers[] = { args->label_smoothing, args->lse_square_scale };
    const uint32_t parameters = parameters_digest(args);
    char name[FLP_TOKEN_LOSS_NAME_BYTES + 1] = { 0 };
    uint32_t hash = flp_ranks_mix(FLP_RANKS_DIGEST, flags, sizeof(flags)), definition;

    memcpy(name, problem->token_loss, FLP_TOKEN_LOSS_NAME_BYTES);
    definition = flp_ranks_token_loss(ranks, name);
    hash = flp_ranks_mix(hash, numbers, sizeof(numbers));
    hash = flp_ranks_mix(hash, &parameters, sizeof(parameters));
    hash = flp_ranks_mix(hash, &definition, sizeof(definition));
    return mix_text(hash, name);
}

static flp_status run_partials(const flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    flp_linear_cross_entropy_args own = *args;
    flp_status status = flp_ranks_check(ranks, &problem->backward.forward);

    own.partials = flp_ranks_own_part(ranks, args->partials, args->rows);
    if (status == FLP_OK)
        status = flp_ranks_check_grad_hidden(&problem->backward, args->grad_hidden_event);
    return status == FLP_OK ? flp_linear_cross_entropy_partials(flp_ranks_context(ranks), problem, &own) : status;
}

static flp_status run_merge(const flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    flp_linear_cross_entropy_args of_all = *args;

    of_all.ranks = flp_ranks_count(ranks);
    of_all.grad_hidden_event = flp_ranks_grad_hidden_event(ranks);
    return flp_linear_cross_entropy_merge(flp_ranks_context(ranks), problem, &of_all);
}

/* A rank whose own part of the call is refused tells the others so before the exchange in which they would wait for it. */
static flp_status run(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    const flp_linear_logp_problem *forward = &problem->backward.forward;
    const CUstream stream = (CUstream)args->stream;
    const uint32_t options = options_of(ranks, problem, args);
    flp_linear_logp_args inputs = { .rows = 0 };
    flp_status status;

    memcpy(&inputs, args, FLP_LINEAR_INPUT_BYTES);
    status =
        flp_ranks_agree(ranks, flp_ranks_terms("linear_cross_entropy", forward, &inputs, options), args->flags, run_partials(ranks, problem, args), stream);
    if (status == FLP_OK && args->rows > 0)
        status = flp_ranks_gather(ranks, args->partials, args->rows, stream);
    if (status != FLP_OK)
        return status;
    status = run_merge(ranks, problem, args);
    if (problem->backward.grad_hidden == FLP_NONE)
        return status;
    status = flp_ranks_agree(ranks, flp_ranks_terms("linear_cross_entropy's gradients", forward, &inputs, options), args->flags, status, stream);
    return status == FLP_OK && args->rows > 0 ? flp_ranks_sum(ranks, args->grad_hidden, args->rows * forward->hidden, stream) : status;
}

flp_status flp_linear_cross_entropy_sharded_sized(flp_ranks *ranks, const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args,
                                                  const flp_sizes *sizes)
{
    flp_linear_cross_entropy_problem own_problem;
    flp_cross_entropy_own_args own_args;
    flp_status status = FLP_OK;

    problem = flp_sized_take(&flp_sized_linear_cross_entropy_problem, sizes, problem, &own_problem, &status);
    args = flp_linear_cross_entropy_take_args(args, &own_args, sizes, &status);
    if (status == FLP_OK && !(ranks && problem && args))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL", !ranks ? "ranks" : !problem ? "problem" : "args");
    return status == FLP_OK ? run(ranks, problem, args) : status;
}
