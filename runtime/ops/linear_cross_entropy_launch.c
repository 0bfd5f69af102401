/* linear_cross_entropy on a GPU path. */
#include "ops/linear_cross_entropy_launch.h"

#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "ops/arguments.h"
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
    const flp_linear_cross_entropy_args *args; /* of this chunk of rows */
    const flp_linear_cross_entropy_args *all;  /* of the whole call */
    int is_first;                              /* chunk */
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
    execution run = { .plan = plan, .call = call, .args = args, .all = args, .is_first = 1, .workspace = workspace,
                      .layout = flp_linear_cross_entropy_plan_lay_out(plan, args->rows) };

    run.logp = args->logp ? args->logp : inside(&run, run.layout.logp);
    run.lse = args->lse ? args->lse : inside(&run, run.layout.lse);
    run.entropy = args->entropy ? args->entropy : plan->program.uses[FLP_TOKEN_ENTROPY] ? inside(&run, run.layout.entropy) : NULL;
    return run;
}

static flp_status launch_forward(const execution *run, const flp_compact_rows *compact, const flp_stash *stash)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_logp_args forward = {
        .rows = args->rows, .hidden = args->hidden, .weight = args->weight, .bias = args->bias, .target = args->target,
        .ignore_index = args->ignore_index, .temperature = args->temperature, .row_temperature = args->row_temperature,
        .logp = run->logp, .lse = run->lse, .entropy = run->entropy, .stream = args->stream,
    };

    const flp_linear_logp_launch_more more = {
        .class_weights = args->class_weights, .logit_sums = sums_logits(run) ? inside(run, run->layout.logit_sums) : NULL,
        .logit_sum = inside(run, run->layout.logit_sum), .compact = compact, .stash = stash, .blanks_others = 1,
    };

    return flp_linear_logp_launch_with(&run->plan->forward.common, &forward, &more, run->workspace + run->layout.forward);
}

/* With gradients, of the rows that count alone: they are brought together for both passes. */
static flp_status run_forward(const execution *run)
{
    const flp_plan *backward = &run->plan->backward.common;
    const flp_linear_logp_backward_args shared = flp_linear_cross_entropy_args_shared(run->args);
    char *workspace = run->workspace + run->layout.passes;
    const flp_stash stash = flp_linear_logp_backward_stash(backward, run->args->rows, workspace);
    flp_compact_rows compact;
    flp_status status = flp_linear_logp_backward_launch_rows(backward, &shared, workspace, &compact);

    return status == FLP_OK ? launch_forward(run, &compact, run->plan->backward.stashes ? &stash : NULL) : status;
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
        .all_targets = run->all->target, .all_token_weights = run->all->token_weights, .all_rows = (int32_t)run->all->rows,
        .adds = !run->is_first,
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
    return flp_linear_logp_backward_launch_rest(&run->plan->backward.common, &backward, &more, run->workspace + run->layout.passes);
}

static flp_status run_all(const execution *run)
{
    const int gradients = flp_linear_cross_entropy_problem_has_gradients(&run->plan->problem);
    flp_status status = FLP_OK;

    if (run->args->rows > 0)
        status = gradients ? run_forward(run) : launch_forward(run, NULL, NULL);
    if (status == FLP_OK && (run->args->rows > 0 || run->plan->problem.reduction != FLP_REDUCE_NONE))
        status = run_losses(run);
    return status == FLP_OK && gradients ? run_backward(run) : status;
}

/* ---- chunks of rows ---- */

static float *advance_floats(float *address, int64_t rows)
{
    return address ? address + rows : NULL;
}

static flp_linear_cross_entropy_args args_of_rows(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *all,
                                                  int64_t first, int64_t rows)
{
    const flp_linear_logp_backward_problem *backward = &problem->backward;
    flp_linear_cross_entropy_args args = *all;

    args.rows = rows;
    args.hidden = flp_arguments_advance(all->hidden, first * backward->forward.hidden_stride, backward->forward.dtype);
    args.target = flp_arguments_advance(all->target, first, backward->forward.target_dtype);
    args.row_temperature = flp_arguments_advance(all->row_temperature, first, FLP_F32);
    args.token_weights = flp_arguments_advance(all->token_weights, first, FLP_F32);
    args.logp = advance_floats(all->logp, first);
    args.lse = advance_floats(all->lse, first);
    args.entropy = advance_floats(all->entropy, first);
    args.grad_hidden = (void *)(uintptr_t)flp_arguments_advance(all->grad_hidden, first * backward->grad_hidden_stride, backward->grad_hidden);
    if (problem->reduction == FLP_REDUCE_NONE) {
        args.loss = advance_floats(all->loss, first);
        args.g_loss = flp_arguments_advance(all->g_loss, first, FLP_F32);
    }
    return args;
}

static flp_status run_rows(const flp_plan *common, const flp_cross_entropy_call *call, int64_t first, int64_t rows, char *workspace)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);
    const flp_linear_cross_entropy_args args = args_of_rows(&plan->problem, call->args, first, rows);
    flp_cross_entropy_call part = *call;
    execution run;

    part.args = &args;
    for (int k = 0; k < plan->program.inputs; k++)
        part.input[k] = call->input[k] + first;
    run = begin(common, &part, workspace);
    run.all = call->args;
    run.is_first = first == 0;
    return run_all(&run);
}

flp_status flp_linear_cross_entropy_launch(const flp_plan *common, const void *data, char *workspace)
{
    const flp_cross_entropy_call *call = data;
    const int64_t rows = call->args->rows, chunk = flp_linear_cross_entropy_plan_of(common)->row_chunk;
    flp_status status = FLP_OK;

    if (chunk == 0 || rows <= chunk) {
        const execution run = begin(common, call, workspace);

        return run_all(&run);
    }
    for (int64_t first = 0; status == FLP_OK && first < rows; first += chunk)
        status = run_rows(common, call, first, rows - first < chunk ? rows - first : chunk, workspace);
    return status;
}
