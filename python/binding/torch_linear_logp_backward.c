/* linear_logp's gradients: after a forward of its own plan, of a shard, and by one plan with the forward. */
#include "torch_linear.h"
#include <string.h>

/* The arguments of a backward: linear_logp's inputs and results, and the loss's gradients by these results. Those that are not there are NULL. */
static flp_linear_logp_backward_args backward_args(const flp_torch_linear *l, const flp_torch_value *logp, const flp_torch_value *lse,
                                                   const flp_torch_value *g_logp, const flp_torch_value *g_lse, void *const grads[3])
{
    return (flp_linear_logp_backward_args){
        FLP_TORCH_LINEAR_ARGS(l),
        .lse = flp_torch_some(lse->data),
        .g_logp = flp_torch_some(g_logp->data),
        .g_lse = flp_torch_given(g_lse) ? flp_torch_some(g_lse->data) : NULL,
        .grad_hidden = grads[0],
        .grad_weight = grads[1],
        .grad_bias = grads[2],
        .stream = l->args.stream,
        .logp = flp_torch_some(logp->data),
    };
}

#define BACKWARD                                                                                                                                       \
    FLP_TORCH_LINEAR "Tensor logp, Tensor lse, Tensor? entropy, Tensor g_logp, Tensor? g_lse, Tensor? g_entropy, bool want_hidden, bool want_weight, " \
                     "bool want_bias, int memory_budget, float filter_eps"
enum { BACKWARD_INPUTS = FLP_TORCH_LINEAR_INPUTS + 11 };

static int run_backward(flp_torch_frame *frame, bool of_shard)
{
    enum { LOGP = FLP_TORCH_LINEAR_INPUTS, LSE, OF_ENTROPY, G_LOGP, G_LSE, G_ENTROPY, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET, FILTER_EPS };
    enum { EVENT = BACKWARD_INPUTS + 2, MULTIPROCESSORS_LEFT };
    const flp_torch_value *in = frame->inputs;
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_linear_logp_backward_problem problem;
    flp_linear_logp_backward_args args;
    void *grads[3];
    flp_plan *plan;
    flp_torch_linear l;

    if (flp_torch_read_linear(frame, &l) || (of_shard && flp_torch_read_shard(frame, BACKWARD_INPUTS, &l)))
        return 1;
    if (flp_torch_check_vector(frame, "logp", &in[LOGP], l.rows, FLP_TORCH_F32) || flp_torch_check_vector(frame, "lse", &in[LSE], l.rows, FLP_TORCH_F32) ||
        flp_torch_check_vector(frame, "g_logp", &in[G_LOGP], l.rows, FLP_TORCH_F32) ||
        flp_torch_check_optional_vector(frame, "g_lse", &in[G_LSE], l.rows, FLP_TORCH_F32) ||
        flp_torch_check_optional_vector(frame, "g_entropy", &in[G_ENTROPY], l.rows, FLP_TORCH_F32))
        return 1;
    if (flp_torch_given(&in[G_ENTROPY]) && flp_torch_check_vector(frame, "entropy", &in[OF_ENTROPY], l.rows, FLP_TORCH_F32))
        return 1;
    memset(&problem, 0, sizeof(problem));
    if (flp_torch_make_gradients(frame, &l, 0, wanted, &problem, grads))
        return 1;
    if (!wanted[0] && !wanted[1] && !wanted[2])
        return 0;
    problem.forward = l.problem;
    problem.g_lse = flp_torch_given(&in[G_LSE]), problem.g_entropy = flp_torch_given(&in[G_ENTROPY]);
    problem.memory_budget = in[MEMORY_BUDGET].integer, problem.grad_filter_eps = in[FILTER_EPS].number;
    args = backward_args(&l, &in[LOGP], &in[LSE], &in[G_LOGP], &in[G_LSE], grads);
    if (problem.g_entropy)
        args.entropy = flp_torch_some(in[OF_ENTROPY].data), args.g_entropy = flp_torch_some(in[G_ENTROPY].data);
    if (of_shard)
        args.grad_hidden_event = (void *)(uintptr_t)in[EVENT].integer, args.multiprocessors_left = in[MULTIPROCESSORS_LEFT].integer;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD, &problem, &plan) ||
        flp_torch_make_workspace(frame, -1, plan, l.rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_linear_logp_backward_execute(plan, &args));
}

static int linear_logp_backward(flp_torch_frame *frame)
{
    return run_backward(frame, false);
}

static int linear_logp_backward_partial(flp_torch_frame *frame)
{
    return run_backward(frame, true);
}

/* ---- linear_logp and its backward by one plan: the workspace is an output of the forward, and the backward uses up what is in it */

static int find_pair_plan(flp_torch_frame *frame, const flp_torch_linear *l, bool g_lse, const bool wanted[3], int64_t memory_budget, flp_plan **plan)
{
    flp_linear_logp_backward_problem problem;

    if (l->rows == 0 || (!wanted[0] && !wanted[1] && !wanted[2]))
        return flp_torch_fail(frame, "no row, or no gradient that is wanted: nothing to save; linear_logp computes it");
    if (wanted[2] && !flp_torch_given(&frame->inputs[BIAS]))
        return flp_torch_fail(frame, "the gradient of bias is wanted, and there is no bias");
    memset(&problem, 0, sizeof(problem));
    problem.forward = l->problem, problem.with_forward = 1, problem.g_lse = g_lse, problem.memory_budget = memory_budget;
    flp_torch_set_gradients(frame, l, wanted, &problem);
    return flp_torch_find_plan(frame, FLP_TORCH_PLANS_LINEAR_LOGP_BACKWARD, &problem, plan);
}

/* Moves a workspace to the aligned place in its tensor. On the CPU a copy of the tensor may have another offset from the alignment (on a GPU tensors begin at
 * a multiple of it). */
static void move_to_beginning(const flp_torch_frame *frame, const flp_torch_value *workspace)
{
    int64_t size = workspace->sizes[0];
    unsigned char *data = workspace->data, *to = flp_torch_aligned(data);

    if (frame->device >= 0)
        return;
    memmove(to, data + data[size - 1], (size_t)(size - FLP_TORCH_WORKSPACE_ALIGNMENT));
    data[size - 1] = (unsigned char)(to - data);
}

static int linear_logp_saving(flp_torch_frame *frame)
{
    enum { WITH_LSE = FLP_TORCH_LINEAR_INPUTS, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET };
    const flp_torch_value *in = frame->inputs;
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_plan *plan;
    flp_torch_linear l;

    if (flp_torch_read_linear(frame, &l) || find_pair_plan(frame, &l, in[WITH_LSE].integer, wanted, in[MEMORY_BUDGET].integer, &plan) ||
        flp_torch_make_vector(frame, 0, FLP_F32, l.rows, true, (void **)&l.args.logp) ||
        flp_torch_make_vector(frame, 1, FLP_F32, l.rows, true, (void **)&l.args.lse) ||
        flp_torch_make_workspace(frame, 2, plan, l.rows, &l.args.workspace, &l.args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_linear_logp_backward_execute_forward(plan, &l.args));
}

static int linear_logp_backward_saved(flp_torch_frame *frame)
{
    enum { LOGP = FLP_TORCH_LINEAR_INPUTS, LSE, G_LOGP, G_LSE, WANT_HIDDEN, WANT_WEIGHT, WANT_BIAS, MEMORY_BUDGET, WORKSPACE };
    const flp_torch_value *in = frame->inputs, *workspace = &in[WORKSPACE];
    bool wanted[3] = { in[WANT_HIDDEN].integer, in[WANT_WEIGHT].integer, in[WANT_BIAS].integer };
    flp_linear_logp_backward_problem unused = { 0 };
    flp_linear_logp_backward_args args;
    void *grads[3];
    flp_plan *plan;
    flp_torch_linear l;

    if (flp_torch_read_linear(frame, &l) || flp_torch_check_vector(frame, "logp", &in[LOGP], l.rows, FLP_TORCH_F32) ||
        flp_torch_check_vector(frame, "lse", &in[LSE], l.rows, FLP_TORCH_F32) || flp_torch_check_vector(frame, "g_logp", &in[G_LOGP], l.rows, FLP_TORCH_F32) ||
        flp_torch_check_optional_vector(frame, "g_lse", &in[G_LSE], l.rows, FLP_TORCH_F32) ||
        find_pair_plan(frame, &l, flp_torch_given(&in[G_LSE]), wanted, in[MEMORY_BUDGET].integer, &plan))
        return 1;
    if (workspace->device != frame->device || workspace->dim != 1 || workspace->sizes[0] != flp_torch_workspace_size(plan, l.rows))
        return flp_torch_fail(frame, "workspace is not what linear_logp_saving gave for these arguments");
    move_to_beginning(frame, workspace);
    if (flp_torch_make_gradients(frame, &l, 0, wanted, &unused, grads))
        return 1;
    args = backward_args(&l, &in[LOGP], &in[LSE], &in[G_LOGP], &in[G_LSE], grads);
    args.workspace = flp_torch_aligned(workspace->data), args.workspace_bytes = (size_t)flp_plan_workspace_bytes(plan, l.rows);
    return flp_torch_check_status(frame, flp_linear_logp_backward_execute(plan, &args));
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_linear_logp_backward = { "linear_logp_backward(" BACKWARD ") -> (Tensor, Tensor, Tensor)", BACKWARD_INPUTS, 3,
                                                            linear_logp_backward };

const flp_torch_operator flp_torch_linear_logp_backward_partial = { "linear_logp_backward_partial(" BACKWARD ", " FLP_TORCH_SHARD ", " FLP_TORCH_EXCHANGE
                                                                    ") -> (Tensor, Tensor, Tensor)",
                                                                    BACKWARD_INPUTS + 2 + FLP_TORCH_EXCHANGE_INPUTS, 3, linear_logp_backward_partial };

const flp_torch_operator flp_torch_linear_logp_saving = {
    "linear_logp_saving(" FLP_TORCH_LINEAR "bool with_lse, bool want_hidden, bool want_weight, bool want_bias, int memory_budget) -> (Tensor, Tensor, Tensor)",
    FLP_TORCH_LINEAR_INPUTS + 5, 3, linear_logp_saving
};

const flp_torch_operator flp_torch_linear_logp_backward_saved = {
    "linear_logp_backward_saved(" FLP_TORCH_LINEAR "Tensor logp, Tensor lse, Tensor g_logp, Tensor? g_lse, bool want_hidden, bool want_weight, bool want_bias, "
    "int memory_budget, Tensor(a!) workspace) -> (Tensor, Tensor, Tensor)",
    FLP_TORCH_LINEAR_INPUTS + 9, 3, linear_logp_backward_saved
};
