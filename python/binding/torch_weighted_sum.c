/* weighted_sum and its gradients. */
#include "torch_tensors.h"
#include "core/row_buckets.h"
#include <string.h>

static void set_weighted_sum(flp_weighted_sum_problem *problem, const flp_torch_frame *frame, const flp_torch_value *x, const flp_torch_value *w,
                             const void *other)
{
    problem->dtype = x->dtype;
    problem->rows = flp_row_buckets_rows(x->sizes[0]);
    problem->columns = x->sizes[1];
    problem->x_stride = flp_torch_row_stride(x);
    problem->pointer_alignment = flp_torch_alignment_of(x->data, other);
    problem->w_dtype = w->dtype;
    problem->y_dtype = x->dtype;
    problem->backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
}

static int weighted_sum(flp_torch_frame *frame)
{
    const flp_torch_value *x = &frame->inputs[0], *w = &frame->inputs[1];
    flp_weighted_sum_problem problem;
    flp_weighted_sum_args args = { 0 };
    flp_plan *plan;

    if (flp_torch_check_matrix(frame, "x", x, -1, -1, FLP_TORCH_FLOATS) || flp_torch_check_vector(frame, "w", w, x->sizes[1], FLP_TORCH_FLOATS))
        return 1;
    memset(&problem, 0, sizeof(problem));
    set_weighted_sum(&problem, frame, x, w, NULL);
    args.rows = x->sizes[0], args.x = x->data, args.w = w->data, args.stream = frame->stream;
    if (flp_torch_make_vector(frame, 0, x->dtype, args.rows, true, &args.y))
        return 1;
    if (args.rows == 0)
        return 0;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_WEIGHTED_SUM, &problem, &plan))
        return 1;
    return flp_torch_check_status(frame, flp_weighted_sum_execute(plan, &args));
}

static int weighted_sum_backward(flp_torch_frame *frame)
{
    const flp_torch_value *g = &frame->inputs[0], *x = &frame->inputs[1], *w = &frame->inputs[2];
    bool want_x = frame->inputs[3].integer, want_w = frame->inputs[4].integer;
    flp_weighted_sum_backward_problem problem;
    flp_weighted_sum_backward_args args = { 0 };
    flp_plan *plan;

    if (flp_torch_check_matrix(frame, "x", x, -1, -1, FLP_TORCH_FLOATS) || flp_torch_check_vector(frame, "w", w, x->sizes[1], FLP_TORCH_FLOATS) ||
        flp_torch_check_vector(frame, "g", g, x->sizes[0], FLP_TORCH_DTYPES(x->dtype)))
        return 1;
    memset(&problem, 0, sizeof(problem));
    args.rows = x->sizes[0], args.g = flp_torch_some(g->data), args.x = flp_torch_some(x->data), args.w = w->data, args.stream = frame->stream;
    if (flp_torch_make_matrix(frame, 0, x->dtype, args.rows, x->sizes[1], false, want_x, &args.grad_x) ||
        flp_torch_make_vector(frame, 1, w->dtype, x->sizes[1], want_w, &args.grad_w))
        return 1;
    if (!want_w && (!want_x || args.rows == 0))
        return 0;
    if (want_x && args.rows == 0)
        args.grad_x = (void *)flp_torch_nothing;
    set_weighted_sum(&problem.forward, frame, x, w, args.grad_x);
    if (want_x)
        problem.grad_x = x->dtype, problem.grad_x_stride = x->sizes[1];
    if (want_w)
        problem.grad_w = w->dtype;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_WEIGHTED_SUM_BACKWARD, &problem, &plan) ||
        flp_torch_make_workspace(frame, -1, plan, args.rows, &args.workspace, &args.workspace_bytes))
        return 1;
    return flp_torch_check_status(frame, flp_weighted_sum_backward_execute(plan, &args));
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_weighted_sum = { "weighted_sum(Tensor x, Tensor w) -> Tensor", 2, 1, weighted_sum };

const flp_torch_operator flp_torch_weighted_sum_backward = {
    "weighted_sum_backward(Tensor g, Tensor x, Tensor w, bool want_x, bool want_w) -> (Tensor, Tensor)", 5, 2, weighted_sum_backward
};
