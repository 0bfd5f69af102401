/* Fills the parameters of weighted_sum_backward's kernels and launches them. */
#include "ops/weighted_sum_backward_launch.h"

#include <inttypes.h>

#include "base/status.h"
#include "ops/call.h"
#include "params/weighted_sum.h"
#include "plan/weighted_sum_backward_plan.h"

/* The tiles beside one another, then their sum; one tile is written at once. */
static flp_status launch_grad_w(const flp_weighted_sum_backward_plan *plan,
                                const flp_weighted_sum_backward_args *args, const flp_workspace *workspace)
{
    float *partial = flp_workspace_at(workspace, FLP_WEIGHTED_SUM_PART_PARTIAL);
    const flp_weighted_sum_backward_problem *problem = &plan->problem;
    const flp_weighted_sum_tiles tiles = flp_weighted_sum_backward_plan_tiles(plan, args->rows);
    const int32_t columns = (int32_t)problem->forward.columns;
    flp_weighted_sum_tile_params tile = {
        .x = args->x, .g = args->g, .partial = tiles.tiles == 1 ? NULL : partial, .grad_w = args->grad_w, .rows = args->rows,
        .x_stride = problem->forward.x_stride, .tile_rows = tiles.tile_rows, .tiles = tiles.tiles, .columns = columns,
        .slab = tiles.slab, .slabs = tiles.slabs, .lanes = tiles.lanes, .accumulate = problem->accumulate,
    };
    flp_weighted_sum_combine_params combine = {
        .partial = partial, .grad_w = args->grad_w, .tiles = tiles.tiles, .columns = columns,
        .partial_stride = tiles.vectors * plan->tile->manifest.block_hidden, .accumulate = problem->accumulate,
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

static flp_status launch_grad_x(const flp_weighted_sum_backward_plan *plan,
                                const flp_weighted_sum_backward_args *args, const flp_workspace *workspace)
{
    const flp_weighted_sum_outer shape = flp_weighted_sum_backward_plan_outer(plan, args->rows);
    flp_weighted_sum_outer_params outer = {
        .g = args->g, .w = args->w, .grad_x = args->grad_x, .rows = args->rows, .grad_x_stride = plan->problem.grad_x_stride,
        .columns = (int32_t)plan->problem.forward.columns, .slab = shape.slab, .slabs = shape.slabs, .lanes = shape.lanes,
    };
    void *parameters[] = { &outer };

    if (shape.blocks > INT32_MAX)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", which takes %" PRId64 " blocks for grad_x, wanted fewer than 2^31",
                               args->rows, shape.blocks);
    flp_workspace_begin_step(workspace, FLP_WEIGHTED_SUM_STEP_GRAD_X);
    return flp_call_launch(plan->outer, (unsigned)shape.blocks, args->stream, parameters);
}

flp_status flp_weighted_sum_backward_launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_weighted_sum_backward_plan *plan = flp_weighted_sum_backward_plan_of(common);
    const flp_weighted_sum_backward_args *args = given;
    flp_status status = plan->tile ? launch_grad_w(plan, args, workspace) : FLP_OK;

    if (status == FLP_OK && plan->outer && args->rows > 0)
        status = launch_grad_x(plan, args, workspace);
    return status;
}
