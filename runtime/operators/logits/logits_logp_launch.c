/* logits_logp on a GPU path: fills the kernels' parameters and launches them. */
#include "operators/logits/logits_logp_launch.h"

#include <math.h>

#include "base/dtype.h"
#include "core/call.h"
#include "params/logits_logp.h"
#include "operators/logits/logits_logp_backward_plan.h"
#include "operators/logits/logits_logp_plan.h"

static void fill_params(const flp_plan *plan, const flp_logits_logp_call *call, flp_logits_logp_params *params)
{
    *params = (flp_logits_logp_params){ .logits = call->logits,
                                        .target = call->target,
                                        .row_index = (const i64 *)call->row_index,
                                        .row_temperature = call->row_temperature,
                                        .rows = call->rows,
                                        .logits_stride = call->logits_stride,
                                        .logits_rows = call->logits_rows,
                                        .ignore_index = call->ignore_index,
                                        .ignores = call->ignores,
                                        .vocab = (int32_t)call->vocab,
                                        .target_bytes = flp_dtype_bytes(call->target_dtype),
                                        .scatter = call->scatter,
                                        .scale = (float)(M_LOG2E / call->temperature),
                                        .softcap = (float)call->softcap,
                                        .inverse_softcap = call->softcap == 0 ? 0 : (float)(1 / call->softcap),
                                        .logp = call->logp,
                                        .lse = call->lse,
                                        .entropy = call->entropy,
                                        .argmax = call->argmax,
                                        .target_errors = (flp_tally *)(uintptr_t)plan->target_errors,
                                        .g_logp = call->g_logp,
                                        .g_lse = call->g_lse,
                                        .g_entropy = call->g_entropy,
                                        .given_lse = call->given_lse,
                                        .given_entropy = call->given_entropy,
                                        .given_logp = call->given_logp,
                                        .grad_logits = call->grad_logits,
                                        .grad_stride = call->grad_stride };
}

static flp_status launch(const flp_workspace *workspace, flp_logits_logp_step step, const flp_kernel *kernel, unsigned blocks, const flp_logits_logp_work *work,
                         flp_logits_logp_params *params)
{
    void *parameters[] = { params };

    flp_workspace_begin_step(workspace, step);
    return flp_call_launch(kernel, blocks, work->stream, parameters);
}

/* The rows and, where blocks share them through scratch, the combine: a warp each. */
static flp_status launch_forward(const flp_workspace *workspace, const flp_logits_logp_forward *forward, const flp_logits_logp_pass *pass,
                                 const flp_logits_logp_work *work, flp_logits_logp_params *params)
{
    const int64_t warps = forward->combine->manifest.threads / 32;
    flp_status status;

    params->segments = pass->shape.segments;
    params->parts = pass->shape.parts;
    params->team_log2 = pass->shape.team_log2;
    status = launch(workspace, FLP_LOGITS_STEP_ROWS, pass->kernel, pass->shape.blocks, work, params);
    if (status != FLP_OK || pass->shape.parts == 1)
        return status;
    return launch(workspace, FLP_LOGITS_STEP_COMBINE, forward->combine, (unsigned)((params->rows + warps - 1) / warps), work, params);
}

static void use_workspace(const flp_workspace *workspace, flp_logits_logp_params *params)
{
    params->partial = flp_workspace_at(workspace, FLP_LOGITS_PART_PARTIAL);
    params->best = flp_workspace_at(workspace, FLP_LOGITS_PART_BEST);
    params->moment = flp_workspace_at(workspace, FLP_LOGITS_PART_MOMENT);
    params->normaliser = flp_workspace_at(workspace, FLP_LOGITS_PART_NORMALISER);
}

flp_status flp_logits_logp_launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const flp_logits_logp_work *work = given;
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, work->call.rows);
    flp_logits_logp_params params;

    fill_params(common, &work->call, &params);
    use_workspace(workspace, &params);
    return launch_forward(workspace, &plan->forward, &pass, work, &params);
}

static flp_status launch_gradient(const flp_logits_logp_backward_plan *plan, const flp_logits_logp_work *work, const flp_workspace *workspace,
                                  flp_logits_logp_params *params)
{
    const flp_logits_logp_shape shape =
        flp_logits_logp_shape_gradient(&plan->gradient->manifest, plan->common.device.facts.multiprocessors, plan->problem.vocab, work->call.rows);

    params->segments = shape.segments;
    return launch(workspace, FLP_LOGITS_STEP_GRADIENT, plan->gradient, shape.blocks, work, params);
}

/* Too few rows for the fused kernel: the forward leaves what the gradient kernel needs of each row. */
static flp_status launch_in_steps(const flp_logits_logp_backward_plan *plan, const flp_logits_logp_work *work, const flp_workspace *workspace,
                                  flp_logits_logp_params *params)
{
    const flp_logits_logp_pass pass =
        flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, work->call.rows);
    const flp_status status = launch_forward(workspace, &plan->forward, &pass, work, params);

    return status == FLP_OK ? launch_gradient(plan, work, workspace, params) : status;
}

flp_status flp_logits_logp_launch_backward(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    const flp_logits_logp_work *work = given;
    const flp_logits_logp_shape fused = flp_logits_logp_backward_plan_fused(plan, work->call.rows);
    flp_logits_logp_params params;

    fill_params(common, &work->call, &params);
    use_workspace(workspace, &params);
    if (!plan->fused)
        return launch_gradient(plan, work, workspace, &params);
    if (fused.blocks == 0)
        return launch_in_steps(plan, work, workspace, &params);
    params.segments = fused.segments;
    params.parts = 1;
    params.team_log2 = fused.team_log2;
    return launch(workspace, FLP_LOGITS_STEP_ROWS, plan->fused, fused.blocks, work, &params);
}
