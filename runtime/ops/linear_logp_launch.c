/* linear_logp on a GPU path: fills the kernels' parameters, encodes the tensor maps, launches twice. */
#include "ops/linear_logp_launch.h"

#include <math.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "cuda/tensor_map.h"
#include "ops/arguments.h"
#include "ops/launch.h"
#include "ops/linear_logp_params.h"
#include "plan/linear_logp_plan.h"
#include "plan/linear_logp_problem.h"
#include "plan/linear_logp_workspace.h"

static float *inside(char *workspace, int64_t offset)
{
    return (float *)(void *)(workspace + offset);
}

static void fill_tile_params(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_workspace *layout, char *workspace,
                             int32_t group, flp_linear_logp_params *params)
{
    const flp_linear_logp_problem *problem = &plan->problem;

    *params = (flp_linear_logp_params){
        .hidden = args->hidden, .weight = args->weight, .bias = args->bias, .target = args->target,
        .row_temperature = args->row_temperature,
        .partial = inside(workspace, layout->partial),
        .best = problem->argmax ? inside(workspace, layout->best) : NULL,
        .target_logit = inside(workspace, layout->target_logit),
        .rows = args->rows, .hidden_stride = problem->hidden_stride, .weight_stride = problem->weight_stride,
        .vocab = (int32_t)problem->vocab, .hidden_size = (int32_t)problem->hidden,
        .target_bytes = flp_dtype_bytes(problem->target_dtype),
        .scale = (float)(M_LOG2E / flp_arguments_temperature(args->temperature)),
        .softcap = (float)problem->softcap,
        .inverse_softcap = problem->softcap == 0 ? 0 : (float)(1 / problem->softcap),
        .split = plan->split, .group = group,
        .moment = problem->entropy ? inside(workspace, layout->moment) : NULL,
    };
}

static void fill_combine_params(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_params *tile,
                                flp_linear_logp_combine_params *params)
{
    *params = (flp_linear_logp_combine_params){
        .partial = tile->partial, .best = tile->best, .target_logit = tile->target_logit, .target = args->target,
        .logp = args->logp, .lse = args->lse, .argmax = args->argmax,
        .target_errors = (unsigned long long *)(uintptr_t)plan->common.target_errors,
        .rows = args->rows, .ignore_index = args->ignore_index,
        .vocab = tile->vocab, .target_bytes = tile->target_bytes, .splits = plan->split.splits,
        .moment = tile->moment, .entropy = args->entropy, .logit_sums = tile->logit_sums,
    };
}

/* hidden {D, N} and weight as it lies in memory: {D, V} or {V, D}. The map ends at the real vocabulary, so that padding reads as zeros. */
static flp_status encode_maps(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, CUtensorMap *hidden, CUtensorMap *weight)
{
    const flp_linear_logp_problem *problem = &plan->problem;
    const flp_manifest *tile = &plan->tile->manifest;
    const int transposed = problem->weight_layout == FLP_HIDDEN_VOCAB, bytes = flp_linear_logp_problem_element_bytes(problem);
    const flp_tensor_map_spec hidden_spec = {
        .address = args->hidden, .dtype = problem->dtype, .columns = problem->hidden, .rows = args->rows,
        .row_bytes = problem->hidden_stride * bytes, .box_columns = tile->block_hidden, .box_rows = tile->hidden_box_rows,
    };
    const flp_tensor_map_spec weight_spec = {
        .address = args->weight, .dtype = problem->dtype,
        .columns = transposed ? problem->vocab : problem->hidden, .rows = transposed ? problem->hidden : problem->vocab,
        .row_bytes = problem->weight_stride * bytes,
        .box_columns = tile->weight_box_columns, .box_rows = tile->weight_box_rows,
    };
    flp_status status = flp_tensor_map_encode(&hidden_spec, hidden);

    if (status != FLP_OK)
        return flp_status_prefix(status, "hidden's tensor map");
    status = flp_tensor_map_encode(&weight_spec, weight);
    return status == FLP_OK ? status : flp_status_prefix(status, "weight's tensor map");
}

flp_status flp_linear_logp_launch_with(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       char *workspace)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_logp_workspace layout = flp_linear_logp_workspace_lay_out(&plan->problem, plan->split.splits, args->rows);
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, args->rows);
    const int with_maps = common->choice.path == FLP_BACKEND_SM90A;
    const flp_driver *driver;
    CUtensorMap hidden_map, weight_map;
    flp_linear_logp_params tile;
    flp_linear_logp_combine_params combine;
    void *tile_parameters[] = { &hidden_map, &weight_map, &tile }, *combine_parameters[] = { &combine };
    flp_status status = flp_driver_get(&driver);

    if (status == FLP_OK && with_maps)
        status = encode_maps(plan, args, &hidden_map, &weight_map);
    if (status != FLP_OK)
        return status;
    fill_tile_params(plan, args, &layout, workspace, shape.group, &tile);
    tile.logit_sums = more->logit_sums;
    tile.class_weights = more->class_weights;
    fill_combine_params(plan, args, &tile, &combine);
    combine.logit_sum = more->logit_sum;
    status = flp_launch_kernel(driver, plan->tile, shape.tile_blocks, args->stream, with_maps ? tile_parameters : tile_parameters + 2);
    if (status == FLP_OK)
        status = flp_launch_kernel(driver, plan->combine, shape.combine_blocks, args->stream, combine_parameters);
    return status;
}

flp_status flp_linear_logp_launch(const flp_plan *plan, const void *args, char *workspace)
{
    const flp_linear_logp_launch_more none = { 0 };

    return flp_linear_logp_launch_with(plan, args, &none, workspace);
}
