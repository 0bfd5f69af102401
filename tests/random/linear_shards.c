/* A random problem of the linear operators over shards of the vocabulary. */
#include "random/linear.h"
#include "random/inputs.h"
#include "shards.h"

static const flp_cutting *cutting_of(const flp_random_linear *linear)
{
    return &flp_cuttings[linear->problem->shards - 1];
}

void flp_random_linear_add_partials(flp_random_linear *linear)
{
    const int64_t floats = cutting_of(linear)->ranks * linear->problem->n * FLP_PARTIAL_FLOATS;

    flp_random_memory_add_workspace(&linear->memory, (floats + 1) * (int64_t)sizeof(float), flp_random_poison(linear->problem));
}

static float *partials_of(const flp_random_linear *linear, const flp_random_machine *machine, int rank)
{
    return (float *)flp_random_machine_at(machine, &linear->memory, FLP_RANDOM_WORKSPACE) + rank * linear->problem->n * FLP_PARTIAL_FLOATS;
}

static flp_status run_forward(const flp_random_linear *linear, const flp_random_machine *machine)
{
    const flp_cutting *cutting = cutting_of(linear);
    const flp_linear_logp_problem *whole = &linear->asked.backward.forward, any = flp_shard_of(whole, cutting, 0);
    flp_linear_logp_merge_args merge;
    flp_linear_logp_args args;
    flp_status status = FLP_OK;

    flp_random_linear_args(linear, machine, &args);
    args.workspace = NULL;
    args.workspace_bytes = 0;
    for (int rank = 0; status == FLP_OK && rank < cutting->ranks; rank++) {
        const flp_linear_logp_problem shard = flp_shard_of(whole, cutting, rank);
        const flp_linear_logp_args of = flp_shard_args(&args, &shard, partials_of(linear, machine, rank));
        status = flp_linear_logp(machine->context, &shard, &of);
    }
    merge = flp_shard_merge_args(&args, partials_of(linear, machine, 0), cutting->ranks);
    return status == FLP_OK ? flp_linear_logp_merge(machine->context, &any, &merge) : status;
}

/* The first rank's part of grad_hidden goes where the whole's goes, the others' are added. */
static flp_linear_logp_backward_problem backward_of(const flp_random_linear *linear, int rank)
{
    const flp_linear_logp_backward_problem *whole = &linear->asked.backward;
    flp_linear_logp_backward_problem shard = flp_shard_backward_of(whole, cutting_of(linear), rank);

    shard.grad_hidden_stride = whole->grad_hidden_stride;
    shard.accumulate = whole->accumulate | (whole->grad_hidden != FLP_NONE && rank > 0 ? FLP_ACCUMULATE_HIDDEN : 0u);
    return shard;
}

static flp_status run_backward(const flp_random_linear *linear, const flp_random_machine *machine)
{
    flp_linear_logp_backward_args args;
    flp_status status = FLP_OK;

    flp_random_linear_backward_args(linear, machine, &args);
    args.workspace = NULL;
    args.workspace_bytes = 0;
    for (int rank = 0; status == FLP_OK && rank < cutting_of(linear)->ranks; rank++) {
        const flp_linear_logp_backward_problem shard = backward_of(linear, rank);
        const flp_linear_logp_backward_args of = flp_shard_backward_args(&linear->asked.backward, &args, &shard, args.grad_hidden);
        status = flp_linear_logp_backward(machine->context, &shard, &of);
    }
    return status;
}

static flp_status run_loss(const flp_random_linear *linear, const flp_random_machine *machine)
{
    const int ranks = cutting_of(linear)->ranks;
    flp_random_cross_entropy_call call;
    flp_status status = FLP_OK;

    flp_random_cross_entropy_args(linear, machine, &call);
    call.args.workspace = NULL;
    call.args.workspace_bytes = 0;
    call.args.ranks = ranks;
    for (int turn = 0; status == FLP_OK && turn < 2 * ranks; turn++) {
        const int rank = turn % ranks, merges = turn >= ranks;
        flp_linear_cross_entropy_problem shard = linear->asked;
        flp_linear_cross_entropy_args of;
        shard.backward = backward_of(linear, rank);
        of = flp_shard_cross_entropy_args(&linear->asked, &call.args, &shard, partials_of(linear, machine, merges ? 0 : rank), call.args.grad_hidden);
        status = merges ? flp_linear_cross_entropy_merge(machine->context, &shard, &of) : flp_linear_cross_entropy_partials(machine->context, &shard, &of);
    }
    return status;
}

flp_status flp_random_linear_run_shards(const flp_random_linear *linear, const flp_random_machine *machine)
{
    if (linear->problem->op == FLP_RANDOM_LINEAR)
        return run_forward(linear, machine);
    return linear->problem->op == FLP_RANDOM_LINEAR_BACKWARD ? run_backward(linear, machine) : run_loss(linear, machine);
}

flp_plan *flp_random_linear_first_shard(const flp_random_linear *linear, const flp_random_machine *machine)
{
    const flp_linear_logp_problem forward = flp_shard_of(&linear->asked.backward.forward, cutting_of(linear), 0);
    flp_linear_cross_entropy_problem shard = linear->asked;
    flp_plan *plan = NULL;

    shard.backward = backward_of(linear, 0);
    if (linear->problem->op == FLP_RANDOM_LINEAR)
        flp_linear_logp_plan_create(machine->context, &forward, &plan);
    else if (linear->problem->op == FLP_RANDOM_LINEAR_BACKWARD)
        flp_linear_logp_backward_plan_create(machine->context, &shard.backward, &plan);
    else
        flp_linear_cross_entropy_plan_create(machine->context, &shard, &plan);
    return plan;
}
