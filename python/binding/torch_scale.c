/* scale: a tensor times a factor, in place. */
#include "torch_linear.h"
#include "torch_tensors.h"
#include "core/row_buckets.h"
#include <string.h>

/* Reads x as rows of contiguous elements: a vector is one row, and the rows of a transposed matrix are its columns. */
static int read_rows(flp_torch_frame *frame, const flp_torch_value *x, flp_scale_problem *problem, int64_t *rows)
{
    int transposed;

    if (x->dim == 1) {
        if (flp_torch_check_vector(frame, "x", x, x->sizes[0], FLP_TORCH_FLOATS))
            return 1;
        *rows = 1, problem->columns = x->sizes[0], problem->x_stride = x->sizes[0];
        return 0;
    }
    if (flp_torch_check_tensor(frame, "x", x, 2, FLP_TORCH_FLOATS))
        return 1;
    transposed = flp_torch_lies_transposed(x);
    if (transposed < 0)
        return flp_torch_fail(frame, "x has strides (%lld, %lld), wanted 1 for one of them", (long long)x->strides[0], (long long)x->strides[1]);
    *rows = x->sizes[transposed], problem->columns = x->sizes[1 - transposed];
    problem->x_stride = *rows > 1 ? x->strides[transposed] : problem->columns;
    return 0;
}

static int scale(flp_torch_frame *frame)
{
    const flp_torch_value *x = &frame->inputs[0], *factor = &frame->inputs[1];
    flp_scale_problem problem;
    flp_scale_args args = { .x = x->data, .factor = factor->data, .stream = frame->stream };
    flp_plan *plan;

    memset(&problem, 0, sizeof(problem)); /* its bytes are the plan's key */
    if (read_rows(frame, x, &problem, &args.rows) || flp_torch_check_tensor(frame, "factor", factor, 0, FLP_TORCH_F32))
        return 1;
    if (args.rows == 0 || problem.columns == 0)
        return 0;
    problem.dtype = x->dtype;
    problem.rows = flp_row_buckets_rows(args.rows);
    problem.backend = frame->device < 0 ? FLP_BACKEND_CPU : FLP_BACKEND_AUTO;
    if (flp_torch_find_plan(frame, FLP_TORCH_PLANS_SCALE, &problem, &plan))
        return 1;
    return flp_torch_check_status(frame, flp_scale_execute(plan, &args));
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_scale = { "scale_(Tensor(a!) x, Tensor factor) -> ()", 2, 0, scale };
