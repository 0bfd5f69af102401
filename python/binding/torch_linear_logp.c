/* linear_logp, and its rows from shards of the vocabulary. */
#include "torch_linear.h"

enum { ENTROPY = FLP_TORCH_LINEAR_INPUTS, ARGMAX, ROWS_INPUTS };

/* Makes the outputs of a forward. */
static int make_rows(flp_torch_frame *frame, const flp_torch_linear *l, float **logp, float **lse, float **entropy, int32_t **argmax)
{
    return flp_torch_make_vector(frame, 0, FLP_F32, l->rows, true, (void **)logp) || flp_torch_make_vector(frame, 1, FLP_F32, l->rows, true, (void **)lse) ||
           flp_torch_make_vector(frame, 2, FLP_F32, l->rows, l->problem.entropy, (void **)entropy) ||
           flp_torch_make_vector(frame, 3, FLP_I32, l->rows, l->problem.argmax, (void **)argmax);
}

static int run_forward(flp_torch_frame *frame, flp_torch_linear *l)
{
    flp_plan *plan;

    if (l->rows == 0)
        return 0;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP, &l->problem, &plan) ||
        flp_torch_make_workspace(frame, -1, plan, l->rows, &l->args.workspace, &l->args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_linear_logp_execute(plan, &l->args));
}

/* The last input, memory_budget, is only for the backward. */
static int linear_logp(flp_torch_frame *frame)
{
    const flp_torch_value *in = frame->inputs;
    flp_torch_linear l;

    if (flp_torch_read_linear(frame, &l))
        return 1;
    l.problem.entropy = in[ENTROPY].integer != 0, l.problem.argmax = in[ARGMAX].integer != 0;
    if (make_rows(frame, &l, &l.args.logp, &l.args.lse, &l.args.entropy, &l.args.argmax))
        return 1;
    return run_forward(frame, &l);
}

/* ---- the same over shards of the vocabulary */

static int read_rows_of_shard(flp_torch_frame *frame, flp_torch_linear *l)
{
    if (flp_torch_read_linear(frame, l) || flp_torch_read_shard(frame, ROWS_INPUTS, l))
        return 1;
    l->problem.entropy = frame->inputs[ENTROPY].integer != 0, l->problem.argmax = frame->inputs[ARGMAX].integer != 0;
    return 0;
}

static int linear_logp_partials(flp_torch_frame *frame)
{
    flp_torch_linear l;

    if (read_rows_of_shard(frame, &l) || flp_torch_make_matrix(frame, 0, FLP_F32, l.rows, FLP_PARTIAL_FLOATS, false, true, (void **)&l.args.partials))
        return 1;
    return run_forward(frame, &l);
}

static int linear_logp_merge(flp_torch_frame *frame)
{
    enum { PARTIALS = ROWS_INPUTS + 2 };
    const flp_torch_value *partials = &frame->inputs[PARTIALS];
    flp_linear_logp_merge_args args = { 0 };
    int64_t ranks;
    flp_plan *plan;
    flp_torch_linear l;

    if (read_rows_of_shard(frame, &l) || flp_torch_read_partials(frame, partials, l.rows, &ranks) ||
        make_rows(frame, &l, &args.logp, &args.lse, &args.entropy, &args.argmax))
        return 1;
    if (l.rows == 0)
        return 0;
    args.rows = l.rows, args.ranks = (int)ranks, args.flags = l.args.flags;
    args.partials = partials->data, args.target = l.args.target, args.ignore_index = l.args.ignore_index, args.stream = frame->stream;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP, &l.problem, &plan))
        return 1;
    return flp_torch_check_status(frame, flp_linear_logp_execute_merge(plan, &args));
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_linear_logp = { "linear_logp(" FLP_TORCH_LINEAR
                                                   "bool entropy, bool argmax, int memory_budget) -> (Tensor, Tensor, Tensor, Tensor)",
                                                   ROWS_INPUTS + 1, 4, linear_logp };

const flp_torch_operator flp_torch_linear_logp_partials = { "linear_logp_partials(" FLP_TORCH_LINEAR "bool entropy, bool argmax, " FLP_TORCH_SHARD
                                                            ") -> Tensor",
                                                            ROWS_INPUTS + 2, 1, linear_logp_partials };

const flp_torch_operator flp_torch_linear_logp_merge = { "linear_logp_merge(" FLP_TORCH_LINEAR "bool entropy, bool argmax, " FLP_TORCH_SHARD
                                                         ", Tensor partials) -> (Tensor, Tensor, Tensor, Tensor)",
                                                         ROWS_INPUTS + 3, 4, linear_logp_merge };
