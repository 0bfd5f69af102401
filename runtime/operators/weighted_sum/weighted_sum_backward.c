/* weighted_sum_backward: the table of its arguments, its launches and its calls. */
#include <inttypes.h>
#include <stddef.h>

#include "base/status.h"
#include "core/call.h"
#include "params/weighted_sum.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

#define AT(argument) offsetof(flp_weighted_sum_backward_args, argument)
#define ASKED(field) offsetof(flp_weighted_sum_backward_problem, field)

/* A call without rows writes grad_w, too. */
static const flp_argument list[] = {
    { "g", AT(g), .dtype_at = ASKED(forward.y_dtype), .values = FLP_VALUES_NORMAL },
    { "grad_x", AT(grad_x), .dtype_at = ASKED(grad_x), .asked_at = ASKED(grad_x), .decides = 1, .extent_at = ASKED(grad_x_stride) },
    { "w", AT(w), .dtype_at = ASKED(forward.w_dtype), .asked_at = ASKED(grad_x), .is_unread = 1, .extent_at = ASKED(forward.columns),
      .values = FLP_VALUES_NORMAL },
    { "grad_w", AT(grad_w), .dtype_at = ASKED(grad_w), .asked_at = ASKED(grad_w), .without_rows = 1, .extent_at = ASKED(forward.columns) },
    { "x", AT(x), .asked_at = ASKED(grad_w), .is_unread = 1, .decides = 1, .extent_at = ASKED(forward.x_stride), .values = FLP_VALUES_NORMAL },
    { .name = NULL }
};
static const flp_argument *const arrays[] = { list, NULL };
static const flp_arguments arguments = { .args_struct = &flp_sized_weighted_sum_backward_args,
                                         .arrays = arrays,
                                         FLP_ARGUMENTS_WORKSPACE(flp_weighted_sum_backward_args) };

static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_weighted_sum_backward_problem *normal = problem;
    const flp_weighted_sum_backward_args *args = given;

    (void)plan, (void)work;
    if (normal->grad_x == FLP_NONE || args->rows == 0 || args->grad_x != args->x ||
        (normal->grad_x == normal->forward.dtype && normal->grad_x_stride == normal->forward.x_stride))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "grad_x: got x with another dtype or stride, wanted x's or another array");
}

/* ---- launches ---- */

/* Launches the kernel for all tiles, then the combine that adds them. A single tile is written to grad_w directly. */
static flp_status launch_grad_w(const flp_weighted_sum_backward_plan *plan, const flp_weighted_sum_backward_args *args, const flp_workspace *workspace)
{
    float *partial = flp_workspace_at(workspace, FLP_WEIGHTED_SUM_PART_PARTIAL);
    const flp_weighted_sum_backward_problem *problem = &plan->problem;
    const flp_weighted_sum_tiles tiles = flp_weighted_sum_backward_plan_tiles(plan, args->rows);
    const int32_t columns = (int32_t)problem->forward.columns;
    flp_weighted_sum_tile_params tile = {
        .x = args->x,
        .g = args->g,
        .partial = tiles.tiles == 1 ? NULL : partial,
        .grad_w = args->grad_w,
        .rows = args->rows,
        .x_stride = problem->forward.x_stride,
        .tile_rows = tiles.tile_rows,
        .tiles = tiles.tiles,
        .columns = columns,
        .slab = tiles.slab,
        .slabs = tiles.slabs,
        .lanes = tiles.lanes,
        .accumulate = problem->accumulate,
    };
    flp_weighted_sum_combine_params combine = {
        .partial = partial,
        .grad_w = args->grad_w,
        .tiles = tiles.tiles,
        .columns = columns,
        .partial_stride = tiles.tiles > 1 ? tiles.vectors * plan->tile->manifest.block_inner : 0,
        .accumulate = problem->accumulate,
    };
    void *tile_parameters[] = { &tile }, *combine_parameters[] = { &combine };
    flp_status status;

    flp_workspace_begin_step(workspace, FLP_WEIGHTED_SUM_STEP_TILES);
    status = flp_call_launch(plan->tile, (unsigned)(tiles.slabs * tiles.tiles), args->stream, tile_parameters);
    if (status != FLP_OK || tiles.tiles == 1)
        return status;
    flp_workspace_begin_step(workspace, FLP_WEIGHTED_SUM_STEP_COMBINE);
    return flp_call_launch(plan->combine, ((unsigned)columns + FLP_WEIGHTED_SUM_COMBINE_COLUMNS - 1) / FLP_WEIGHTED_SUM_COMBINE_COLUMNS, args->stream,
                           combine_parameters);
}

static flp_status launch_grad_x(const flp_weighted_sum_backward_plan *plan, const flp_weighted_sum_backward_args *args, const flp_workspace *workspace)
{
    const flp_weighted_sum_outer shape = flp_weighted_sum_backward_plan_outer(plan, args->rows);
    flp_weighted_sum_outer_params outer = {
        .g = args->g,
        .w = args->w,
        .grad_x = args->grad_x,
        .rows = args->rows,
        .grad_x_stride = plan->problem.grad_x_stride,
        .columns = (int32_t)plan->problem.forward.columns,
        .slab = shape.slab,
        .slabs = shape.slabs,
        .lanes = shape.lanes,
    };
    void *parameters[] = { &outer };

    flp_workspace_begin_step(workspace, FLP_WEIGHTED_SUM_STEP_GRAD_X);
    return flp_call_launch(plan->outer, (unsigned)shape.blocks, args->stream, parameters);
}

/* Before anything is launched. */
static flp_status check_blocks(const flp_weighted_sum_backward_plan *plan, int64_t rows)
{
    const int64_t blocks = plan->outer && rows > 0 ? flp_weighted_sum_backward_plan_outer(plan, rows).blocks : 0;

    if (blocks > INT32_MAX)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", which takes %" PRId64 " blocks for grad_x, wanted fewer than 2^31", rows, blocks);
    return FLP_OK;
}

/* grad_w comes first, because grad_x may be written over x. A call without rows writes grad_w, too. */
static flp_status launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_weighted_sum_backward_plan *plan = flp_weighted_sum_backward_plan_of(common);
    const flp_weighted_sum_backward_args *args = given;
    flp_status status = check_blocks(plan, args->rows);

    if (status == FLP_OK && plan->tile)
        status = launch_grad_w(plan, args, workspace);

    if (status == FLP_OK && plan->outer && args->rows > 0)
        status = launch_grad_x(plan, args, workspace);
    return status;
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    return flp_weighted_sum_backward_cpu(plan->context->pool, flp_plan_problem(plan), args);
}

const flp_operator_calls flp_weighted_sum_backward_calls = {
    .op = &flp_weighted_sum_backward_operator,
    .arguments = &arguments,
    .check = check,
    .writes_without_rows = 1,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
FLP_CALL_FUNCTIONS(flp_weighted_sum_backward)
