/* linear_logp on a GPU path: fills the kernels' parameters, encodes the tensor maps, launches twice. */
#include "ops/linear_logp_launch.h"

#include <math.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "cuda/tensor_map.h"
#include "ops/linear_logp_args.h"
#include "ops/linear_logp_params.h"
#include "plan/problem.h"
#include "plan/workspace.h"

static float *inside(char *workspace, int64_t offset)
{
    return (float *)(void *)(workspace + offset);
}

static void fill_tile_params(const flp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *layout, char *workspace,
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
        .scale = (float)(M_LOG2E / flp_linear_logp_args_temperature(args)),
        .softcap = (float)problem->softcap,
        .inverse_softcap = problem->softcap == 0 ? 0 : (float)(1 / problem->softcap),
        .split = plan->split, .group = group,
    };
}

static void fill_combine_params(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_params *tile,
                                flp_linear_logp_combine_params *params)
{
    *params = (flp_linear_logp_combine_params){
        .partial = tile->partial, .best = tile->best, .target_logit = tile->target_logit, .target = args->target,
        .logp = args->logp, .lse = args->lse, .argmax = args->argmax,
        .target_errors = (unsigned long long *)(uintptr_t)plan->target_errors,
        .rows = args->rows, .ignore_index = args->ignore_index,
        .vocab = tile->vocab, .target_bytes = tile->target_bytes, .splits = plan->split.splits,
    };
}

/* hidden {D, N} and weight as it lies in memory: {D, V} or {V, D}. The map ends at the real vocabulary, so that padding reads as zeros. */
static flp_status encode_maps(const flp_plan *plan, const flp_linear_logp_args *args, CUtensorMap *hidden, CUtensorMap *weight)
{
    const flp_linear_logp_problem *problem = &plan->problem;
    const flp_manifest *tile = &plan->tile->manifest;
    const int transposed = problem->weight_layout == FLP_HIDDEN_VOCAB, bytes = flp_problem_element_bytes(problem);
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

_Static_assert(sizeof(CUlaunchAttribute) == 72 && sizeof(CUlaunchConfig) == 56, "the driver reads other structures");

/* A kernel that waits itself for the one before it is launched beside that one's end. */
static CUresult launch_overlapping(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, void *stream, void **parameters)
{
    CUlaunchAttribute overlap = { .id = CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
                                  .value.programmaticStreamSerializationAllowed = 1 };
    const CUlaunchConfig config = { .gridDimX = blocks, .gridDimY = 1, .gridDimZ = 1,
                                    .blockDimX = (unsigned)kernel->manifest.threads, .blockDimY = 1, .blockDimZ = 1,
                                    .sharedMemBytes = (unsigned)kernel->manifest.shared_bytes, .hStream = stream,
                                    .attrs = &overlap, .numAttrs = 1 };

    return driver->launch_extended(&config, kernel->function, parameters, NULL);
}

static flp_status launch(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, void *stream, void **parameters)
{
    const flp_manifest *manifest = &kernel->manifest;
    const int overlaps = manifest->overlaps && driver->launch_extended;
    CUresult result = overlaps ? launch_overlapping(driver, kernel, blocks, stream, parameters)
                               : driver->launch(kernel->function, blocks, 1, 1, (unsigned)manifest->threads, 1, 1,
                                                (unsigned)manifest->shared_bytes, stream, parameters, NULL);

    if (result == CUDA_SUCCESS)
        return FLP_OK;
    return flp_status_prefix(flp_driver_check(driver, result, overlaps ? "cuLaunchKernelEx" : "cuLaunchKernel"), "%s, %u blocks", manifest->variant, blocks);
}

flp_status flp_linear_logp_launch(const flp_plan *plan, const flp_linear_logp_args *args, char *workspace)
{
    const flp_workspace layout = flp_workspace_lay_out(args->rows, plan->split.splits, plan->problem.argmax);
    const flp_launch shape = flp_plan_launch(plan, args->rows);
    const int with_maps = plan->choice.path == FLP_BACKEND_SM90A;
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
    fill_combine_params(plan, args, &tile, &combine);
    status = launch(driver, plan->tile, shape.tile_blocks, args->stream, with_maps ? tile_parameters : tile_parameters + 2);
    if (status == FLP_OK)
        status = launch(driver, plan->combine, shape.combine_blocks, args->stream, combine_parameters);
    return status;
}
