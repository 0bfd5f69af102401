/* linear_cross_entropy on a GPU path. */
#include "ops/linear_cross_entropy_launch.h"

#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "ops/launch.h"
#include "ops/linear_cross_entropy_args.h"
#include "ops/linear_cross_entropy_params.h"
#include "ops/linear_logp_backward_launch.h"
#include "ops/linear_logp_launch.h"
#include "plan/linear_cross_entropy_plan.h"
#include "plan/linear_cross_entropy_problem.h"

/* One execution: where everything is. */
typedef struct {
    const flp_linear_cross_entropy_plan *plan;
    const flp_cross_entropy_call *call;
    const flp_linear_cross_entropy_args *args;
    char *workspace;
    flp_linear_cross_entropy_workspace layout;
    float *logp, *lse, *entropy; /* the caller's, or in the workspace */
} execution;

static float *inside(const execution *run, int64_t offset)
{
    return (float *)(void *)(run->workspace + offset);
}

static int sums_logits(const execution *run)
{
    return run->plan->program.uses[FLP_TOKEN_UNIFORM];
}

static execution begin(const flp_plan *common, const flp_cross_entropy_call *call, char *workspace)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);
    const flp_linear_cross_entropy_args *args = call->args;
    execution run = { .plan = plan, .call = call, .args = args, .workspace = workspace,
                      .layout = flp_linear_cross_entropy_plan_lay_out(plan, args->rows) };

    run.logp = args->logp ? args->logp : inside(&run, run.layout.logp);
    run.lse = args->lse ? args->lse : inside(&run, run.layout.lse);
    run.entropy = args->entropy ? args->entropy : plan->program.uses[FLP_TOKEN_ENTROPY] ? inside(&run, run.layout.entropy) : NULL;
    return run;
}

static flp_status run_forward(const execution *run)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_logp_args forward = {
        .rows = args->rows, .hidden = args->hidden, .weight = args->weight, .bias = args->bias, .target = args->target,
        .ignore_index = args->ignore_index, .temperature = args->temperature, .row_temperature = args->row_temperature,
        .logp = run->logp, .lse = run->lse, .entropy = run->entropy, .stream = args->stream,
    };

    const flp_linear_logp_launch_more more = {
        .class_weights = args->class_weights, .logit_sums = sums_logits(run) ? inside(run, run->layout.logit_sums) : NULL,
        .logit_sum = inside(run, run->layout.logit_sum),
    };

    return flp_linear_logp_launch_with(&run->plan->forward.common, &forward, &more, run->workspace + run->layout.passes);
}

static flp_status run_losses(const execution *run)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_cross_entropy_problem *problem = &run->plan->problem;
    const flp_token_program *program = &run->plan->program;
    const flp_linear_logp_problem *forward = &problem->backward.forward;
    const int gradients = flp_linear_cross_entropy_problem_has_gradients(problem);
    flp_token_loss_params params = {
        .target = args->target, .logp = run->logp, .lse = run->lse, .entropy = run->entropy,
        .logit_sum = sums_logits(run) ? inside(run, run->layout.logit_sum) : NULL,
        .class_weights = args->class_weights, .token_weights = args->token_weights, .g_loss = args->g_loss, .loss = args->loss,
        .g_logp = gradients ? inside(run, run->layout.g_logp) : NULL, .g_lse = gradients ? inside(run, run->layout.g_lse) : NULL,
        .g_entropy = gradients && program->derivative[FLP_TOKEN_ENTROPY] >= 0 ? inside(run, run->layout.g_entropy) : NULL,
        .g_sum = gradients && program->derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(run, run->layout.g_sum) : NULL,
        .ignore_index = args->ignore_index, .rows = (int32_t)args->rows, .vocab = (int32_t)forward->vocab,
        .target_bytes = flp_dtype_bytes(forward->target_dtype), .class_weight_dtype = (int32_t)problem->class_weights,
        .reduces = problem->reduction != FLP_REDUCE_NONE, .divides = problem->reduction == FLP_REDUCE_MEAN,
    };
    void *parameters[] = { &params };
    const flp_driver *driver;
    flp_status status = flp_driver_get(&driver);

    memcpy(params.input, run->call->input, sizeof(params.input));
    for (int i = 0; i < program->parameters; i++)
        params.parameter[i] = (float)run->call->parameter[i];
    return status == FLP_OK ? flp_launch_kernel(driver, run->plan->token_loss, 1, args->stream, parameters) : status;
}

static flp_status run_backward(const execution *run)
{
    flp_linear_logp_backward_args backward = flp_linear_cross_entropy_args_shared(run->args);
    const flp_backward_launch_more more = {
        .class_weights = run->args->class_weights,
        .g_sum = run->plan->program.derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(run, run->layout.g_sum) : NULL,
    };

    backward.lse = run->lse;
    backward.g_logp = inside(run, run->layout.g_logp);
    backward.g_lse = inside(run, run->layout.g_lse);
    if (run->plan->backward.problem.g_entropy) {
        backward.entropy = run->entropy;
        backward.g_entropy = inside(run, run->layout.g_entropy);
    }
    return flp_linear_logp_backward_launch_with(&run->plan->backward.common, &backward, &more, run->workspace + run->layout.passes);
}

flp_status flp_linear_cross_entropy_launch(const flp_plan *common, const void *call, char *workspace)
{
    const execution run = begin(common, call, workspace);
    flp_status status = run.args->rows > 0 ? run_forward(&run) : FLP_OK;

    if (status == FLP_OK && (run.args->rows > 0 || run.plan->problem.reduction != FLP_REDUCE_NONE))
        status = run_losses(&run);
    if (status == FLP_OK && flp_linear_cross_entropy_problem_has_gradients(&run.plan->problem))
        status = run_backward(&run);
    return status;
}
