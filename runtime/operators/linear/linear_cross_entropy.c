/* linear_cross_entropy: its calls, and its launches on a GPU path: the forward, the losses of the rows, the backward. */
#include <string.h>

#include "base/dtype.h"
#include "core/call.h"
#include "core/tune_first.h"
#include "operators/linear/linear_cross_entropy_args.h"
#include "operators/linear/linear_logp_backward.h"
#include "params/token_loss.h"
#include "operators/linear/linear_cross_entropy_plan.h"

/* One execution: where everything is. */
typedef struct {
    const flp_linear_cross_entropy_plan *plan;
    const flp_cross_entropy_call *call;
    const flp_linear_cross_entropy_args *args;
    const flp_workspace *workspace;
    flp_linear_logp_backward_args backward_args;
    flp_packed_call packed;
    flp_saved_exp saved_exp;
    float *logp, *lse, *entropy; /* the caller's, or in the workspace */
} execution;

static float *inside(const execution *run, flp_linear_part part)
{
    return flp_workspace_at(run->workspace, part);
}

/* What the backward takes of the forward and of the losses. */
static flp_linear_logp_backward_args backward_args(const execution *run)
{
    flp_linear_logp_backward_args args = {
        .lse = run->lse,
        .g_logp = inside(run, FLP_PART_G_LOGP),
        .g_lse = inside(run, FLP_PART_G_LSE),
        .grad_hidden = run->args->grad_hidden,
        .grad_weight = run->args->grad_weight,
        .grad_bias = run->args->grad_bias,
        .workspace = run->args->workspace,
        .workspace_bytes = run->args->workspace_bytes,
        .stream = run->args->stream,
    };

    memcpy(&args, run->args, FLP_LINEAR_INPUT_BYTES);
    if (run->plan->backward.problem.g_entropy) {
        args.entropy = run->entropy;
        args.g_entropy = inside(run, FLP_PART_G_ENTROPY);
    }
    return args;
}

static void begin(const flp_plan *common, const flp_cross_entropy_call *call, const flp_workspace *workspace, execution *run)
{
    const flp_linear_cross_entropy_plan *plan = flp_linear_cross_entropy_plan_of(common);
    const flp_linear_cross_entropy_args *args = call->args;

    *run = (execution){ .plan = plan, .call = call, .args = args, .workspace = workspace };
    run->logp = args->logp ? args->logp : inside(run, FLP_PART_LOGP);
    run->lse = args->lse ? args->lse : inside(run, FLP_PART_LSE);
    run->entropy = args->entropy ? args->entropy : plan->program.uses[FLP_TOKEN_ENTROPY] ? inside(run, FLP_PART_ENTROPY) : NULL;
    run->backward_args = backward_args(run);
    run->packed = (flp_packed_call){ &plan->backward, &run->backward_args, workspace };
    run->saved_exp = flp_linear_logp_backward_saved_exp(&run->packed);
}

/* ---- the forward, of the valid rows alone ---- */

typedef flp_status forward_launch(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                  const flp_workspace *workspace);

static flp_status launch_forward(const execution *run, const flp_packed_rows *rows, forward_launch *launch)
{
    const flp_linear_cross_entropy_args *args = run->args;
    flp_linear_logp_args forward = { .logp = run->logp, .lse = run->lse, .entropy = run->entropy, .stream = args->stream };
    const flp_linear_logp_launch_more more = {
        .class_weights = args->class_weights,
        .logit_sum = inside(run, FLP_PART_LOGIT_SUM),
        .rows = rows,
        .saved_exp = run->plan->backward.work.chunks.saves_exp ? &run->saved_exp : NULL,
        .blanks_others = rows->first == 0,
    };

    memcpy(&forward, args, FLP_LINEAR_INPUT_BYTES);
    return launch(&run->plan->forward.common, &forward, &more, run->workspace);
}

/* What is done for the rows of all chunks at once. */
static flp_status prepare(const execution *run)
{
    const flp_packed_rows all = flp_packed_rows_all(&run->packed);
    flp_status status = flp_linear_logp_backward_launch_rows(&run->packed);

    return status == FLP_OK && run->plan->backward.work.chunks.saves_exp ? launch_forward(run, &all, flp_linear_logp_launch_offsets) : status;
}

/* ---- the rows' losses ---- */

static flp_status run_losses(const execution *run, const flp_packed_rows *rows)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_cross_entropy_problem *problem = &run->plan->problem;
    const flp_token_program *program = &run->plan->program;
    const flp_linear_logp_problem *forward = &problem->backward.forward;
    const int gradients = flp_vocab_chunks_have_gradients(&problem->backward);
    flp_token_loss_params params = {
        .target = args->target,
        .logp = run->logp,
        .lse = run->lse,
        .entropy = run->entropy,
        .logit_sum = program->uses[FLP_TOKEN_UNIFORM] ? inside(run, FLP_PART_LOGIT_SUM) : NULL,
        .class_weights = args->class_weights,
        .token_weights = args->token_weights,
        .g_loss = args->g_loss,
        .loss = args->loss,
        .g_logp = gradients ? inside(run, FLP_PART_G_LOGP) : NULL,
        .g_lse = gradients ? inside(run, FLP_PART_G_LSE) : NULL,
        .g_entropy = gradients && program->derivative[FLP_TOKEN_ENTROPY] >= 0 ? inside(run, FLP_PART_G_ENTROPY) : NULL,
        .g_sum = gradients && program->derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(run, FLP_PART_G_SUM) : NULL,
        .ignore_index = args->ignore_index,
        .ignores = flp_arguments_ignore(args->flags),
        .rows = (int32_t)args->rows,
        .vocab = (int32_t)forward->vocab,
        .target_bytes = flp_dtype_bytes(forward->target_dtype),
        .class_weight_dtype = (int32_t)problem->class_weights,
        .reduces = problem->reduction != FLP_REDUCE_NONE,
        .divides = problem->reduction == FLP_REDUCE_MEAN,
        .packed_index = rows->packed_index,
        .first_packed = (int32_t)rows->first,
        .packed_rows = (int32_t)rows->rows,
        .adds = rows->first > 0,
    };
    void *parameters[] = { &params };

    memcpy(params.input, run->call->input, sizeof(params.input));
    for (int i = 0; i < program->parameters; i++)
        params.parameter[i] = (float)run->call->parameter[i];
    flp_workspace_begin_step(run->workspace, FLP_STEP_LOSSES);
    return flp_call_launch(run->plan->token_loss, 1, args->stream, parameters);
}

/* ---- the gradients ---- */

static flp_status run_backward(const execution *run, int64_t first)
{
    const flp_backward_launch_more more = {
        .class_weights = run->args->class_weights,
        .g_sum = run->plan->program.derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(run, FLP_PART_G_SUM) : NULL,
    };

    return flp_linear_logp_backward_launch_chunk(&run->packed, &more, first);
}

static flp_status run_chunk(const execution *run, int64_t first)
{
    const flp_packed_rows rows = flp_packed_rows_chunk(&run->packed, first);
    flp_status status = FLP_OK;

    if (run->args->rows > 0)
        status = launch_forward(run, &rows, flp_linear_logp_launch_with);
    if (status == FLP_OK && (run->args->rows > 0 || run->plan->problem.reduction != FLP_REDUCE_NONE))
        status = run_losses(run, &rows);
    if (status == FLP_OK && flp_vocab_chunks_have_gradients(&run->plan->problem.backward))
        status = run_backward(run, first);
    return status;
}

/* Without rows, too, there is one chunk, which writes zeros. */
static flp_status launch_all(const flp_plan *common, const void *call, const flp_workspace *workspace)
{
    const flp_linear_work *work = &flp_linear_cross_entropy_plan_of(common)->backward.work;
    const int64_t rows = ((const flp_cross_entropy_call *)call)->args->rows, chunk = flp_linear_work_chunk_rows(work, rows);
    execution run;
    flp_status status;
    int64_t first = 0;

    begin(common, call, workspace, &run);
    status = rows > 0 ? prepare(&run) : FLP_OK;
    do {
        status = status == FLP_OK ? run_chunk(&run, first) : status;
        first += chunk;
    } while (status == FLP_OK && first < rows);
    return status == FLP_OK ? flp_linear_logp_backward_launch_end(&run.packed) : status;
}

/* ---- calls ---- */

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    return flp_linear_cross_entropy_args_resolve(normal, &flp_linear_cross_entropy_plan_of(plan)->program, args, work);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_cross_entropy_cpu(plan->context->pool, flp_plan_problem(plan), work, bad_count, bad_first);
}

const flp_operator_calls flp_linear_cross_entropy_calls = {
    .op = &flp_linear_cross_entropy_operator,
    .arguments = &flp_linear_cross_entropy_arguments,
    .take = flp_linear_cross_entropy_args_take,
    .check = check,
    .makes_work = 1,
    .writes_without_rows = 1,
    .launch = launch_all,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
_Static_assert(sizeof(flp_cross_entropy_own_args) <= FLP_CALL_ARGS_BYTES, "FLP_CALL_ARGS_BYTES is too small");
_Static_assert(sizeof(flp_cross_entropy_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_linear_cross_entropy)
