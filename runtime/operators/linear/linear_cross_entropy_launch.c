/* linear_cross_entropy on a GPU path: the forward, the losses of the rows, the backward. For a shard of the vocabulary, two calls do this. */

#include <string.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "core/call.h"
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp_backward.h"
#include "operators/linear/linear_logp.h"
#include "operators/linear/vocab_shard.h"
#include "params/linear_logp_merge_sums.h"
#include "params/token_loss.h"

/* What all launches of a call need. */
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

/* The args of the backward, from those of the call, the results of the forward and the losses' derivatives. */
static flp_linear_logp_backward_args backward_args(const execution *run)
{
    flp_linear_logp_backward_args args = {
        .lse = run->lse,
        .g_logp = inside(run, FLP_PART_G_LOGP),
        .g_lse = inside(run, FLP_PART_G_LSE),
        .grad_hidden = run->args->grad_hidden,
        .grad_weight = run->args->grad_weight,
        .grad_bias = run->args->grad_bias,
        .grad_hidden_event = run->args->grad_hidden_event,
        .multiprocessors_left = run->args->multiprocessors_left,
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

static int saves_exp(const execution *run)
{
    return run->plan->backward.work.chunks.saves_exp;
}

static flp_linear_logp_args forward_args(const execution *run)
{
    flp_linear_logp_args forward = { .logp = run->logp, .lse = run->lse, .entropy = run->entropy, .stream = run->args->stream };

    memcpy(&forward, run->args, FLP_LINEAR_INPUT_BYTES);
    return forward;
}

static flp_linear_logp_launch_more forward_more(const execution *run, const flp_packed_rows *rows)
{
    return (flp_linear_logp_launch_more){
        .class_weights = run->args->class_weights,
        .logit_sum = inside(run, FLP_PART_LOGIT_SUM),
        .rows = rows,
        .saved_exp = saves_exp(run) ? &run->saved_exp : NULL,
        .blanks_others = rows->first == 0,
    };
}

/* What is done once for all rows, before their chunks. */
static flp_status prepare(const execution *run)
{
    const flp_packed_rows all = flp_packed_rows_all(&run->packed);
    const flp_linear_logp_args forward = forward_args(run);
    const flp_linear_logp_launch_more more = forward_more(run, &all);
    flp_status status = flp_linear_logp_backward_launch_rows(&run->packed);

    return status == FLP_OK && saves_exp(run) ? flp_linear_logp_launch_offsets(&run->plan->forward.common, &forward, &more, run->workspace) : status;
}

/* grad_hidden of the chunk before, whose products are done, is completed beside the end of this chunk's tiles: these leave more and more multiprocessors idle
 * then. before: that chunk's first row; -1: this chunk is the first. */
static flp_status launch_forward(const execution *run, const flp_packed_rows *rows, int64_t before)
{
    const flp_linear_logp_args args = forward_args(run);
    const flp_linear_logp_launch_more more = forward_more(run, rows);
    flp_linear_logp_forward forward;
    flp_status status = flp_linear_logp_prepare_forward(&run->plan->forward.common, &args, &more, run->workspace, &forward);

    if (status == FLP_OK)
        status = flp_linear_logp_launch_tiles(&forward);
    if (status == FLP_OK && before >= 0)
        status = flp_linear_logp_backward_end_chunk(&run->packed, before, 1);
    return status == FLP_OK ? flp_linear_logp_launch_combine(&forward) : status;
}

/* ---- the rows' losses ---- */

/* With is_beside, the launch before computes tiles that overflowed, for the products alone. */
static flp_status run_losses(const execution *run, const flp_packed_rows *rows, int is_beside)
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
        .vocab = (int32_t)flp_vocab_shard_whole(forward),
        .target_bytes = flp_dtype_bytes(forward->target_dtype),
        .class_weight_dtype = (int32_t)problem->class_weights,
        .reduces = problem->reduction != FLP_REDUCE_NONE,
        .divides = problem->reduction == FLP_REDUCE_MEAN,
        .packed_index = rows->packed_index,
        .first_packed = (int32_t)rows->first,
        .packed_rows = (int32_t)rows->rows,
        .row = rows->row,
        .row_count = rows->count,
        .sum_factor = rows->rows < args->rows ? &((flp_backward_counts *)flp_workspace_at(run->workspace, FLP_PART_COUNTS))->loss_factor : NULL,
        .adds = rows->first > 0,
        .pdl_wait_last = is_beside,
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
        .class_weight_dtype = run->plan->problem.class_weights,
        .g_sum = run->plan->program.derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(run, FLP_PART_G_SUM) : NULL,
        .forward = &run->plan->forward.common,
    };

    return flp_linear_logp_backward_launch_chunk(&run->packed, &more, first);
}

/* before: as launch_forward's. */
static flp_status run_chunk(const execution *run, int64_t first, int64_t before)
{
    const flp_packed_rows rows = flp_packed_rows_chunk(&run->packed, first);
    const int has_rows = run->args->rows > 0;
    flp_status status = has_rows ? launch_forward(run, &rows, before) : FLP_OK;

    if (status == FLP_OK && (has_rows || run->plan->problem.reduction != FLP_REDUCE_NONE))
        status = run_losses(run, &rows, has_rows && saves_exp(run));
    if (status == FLP_OK && flp_vocab_chunks_have_gradients(&run->plan->problem.backward))
        status = run_backward(run, first);
    return status;
}

/* A call without rows has one chunk, too, which writes zeros. */
flp_status flp_linear_cross_entropy_launch(const flp_plan *common, const void *call, const flp_workspace *workspace)
{
    const flp_linear_work *work = &flp_linear_cross_entropy_plan_of(common)->backward.work;
    const int64_t rows = ((const flp_cross_entropy_call *)call)->args->rows, chunk = flp_linear_work_chunk_rows(work, rows);
    execution run;
    flp_status status;
    int64_t first = 0, before = -1;

    begin(common, call, workspace, &run);
    status = rows > 0 ? prepare(&run) : FLP_OK;
    do {
        status = status == FLP_OK ? run_chunk(&run, first, before) : status;
        before = first;
        first += chunk;
    } while (status == FLP_OK && first < rows);
    if (status == FLP_OK)
        status = flp_linear_logp_backward_end_chunk(&run.packed, before, 0);
    return status == FLP_OK ? flp_linear_logp_backward_launch_end(&run.packed) : status;
}

/* ---- a shard of the vocabulary ---- */

/* From the shard's first entry on: its kernels count its entries from 0. */
static const void *shard_class_weights(const execution *run)
{
    const flp_linear_cross_entropy_problem *problem = &run->plan->problem;

    return flp_arguments_advance(run->args->class_weights, problem->backward.forward.vocab_first, problem->class_weights);
}

static flp_linear_logp_args shard_inputs(const execution *run)
{
    flp_linear_logp_args inputs = { .partials = run->args->partials, .stream = run->args->stream };

    memcpy(&inputs, run->args, FLP_LINEAR_INPUT_BYTES);
    return inputs;
}

flp_status flp_linear_cross_entropy_launch_partials(const flp_plan *common, const void *call, const flp_workspace *workspace)
{
    execution run;

    begin(common, call, workspace, &run);
    const flp_linear_logp_args inputs = shard_inputs(&run);
    const flp_linear_logp_launch_more more = { .class_weights = shard_class_weights(&run) };

    return flp_linear_logp_launch_shard(&run.plan->forward.common, &inputs, &more, workspace);
}

static flp_status merge_sums(const execution *run)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_logp_problem *forward = &run->plan->problem.backward.forward;
    const flp_kernel *kernel = run->plan->merge_sums;
    flp_linear_merge_sums_params params = {
        .partials = (const flp_linear_partial *)(const void *)args->partials,
        .target = args->target,
        .logit_sum = run->plan->program.uses[FLP_TOKEN_UNIFORM] ? inside(run, FLP_PART_LOGIT_SUM) : NULL,
        .lse = run->lse,
        .entropy = run->entropy,
        .rows = args->rows,
        .ignore_index = args->ignore_index,
        .vocab_total = forward->vocab_total,
        .ranks = (int32_t)args->ranks,
        .target_bytes = flp_dtype_bytes(forward->target_dtype),
        .ignores = flp_arguments_ignore(args->flags),
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->workspace, FLP_STEP_MERGE_SUMS);
    return flp_call_launch(kernel, (unsigned)flp_int64_divide_up(args->rows, kernel->manifest.threads), args->stream, parameters);
}

/* Writes the statistics of the rows where a forward without shards writes them. */
static flp_status merge_rows(const execution *run)
{
    const flp_linear_cross_entropy_args *args = run->args;
    const flp_linear_logp_merge_args merge = {
        .rows = args->rows,
        .ranks = (int)args->ranks,
        .flags = args->flags,
        .partials = args->partials,
        .target = args->target,
        .ignore_index = args->ignore_index,
        .logp = run->logp,
        .lse = run->lse,
        .entropy = run->entropy,
        .stream = args->stream,
    };
    flp_status status;

    flp_workspace_begin_step(run->workspace, FLP_STEP_COMBINE);
    status = flp_linear_logp_shard_merge(&run->plan->forward, &merge);
    return status == FLP_OK ? merge_sums(run) : status;
}

/* Finds the valid rows, for the losses and the gradients. An empty shard has none, because it contributes to no gradient. */
static flp_status index_rows(const execution *run)
{
    const flp_linear_logp_args inputs = shard_inputs(run);
    const flp_linear_logp_plan *forward = &run->plan->forward;
    flp_status status = FLP_OK;

    if (run->args->rows > 0)
        status = flp_linear_logp_shard_find_targets(forward->shard_targets, &forward->problem, &inputs, run->workspace);
    return status == FLP_OK ? flp_packed_rows_index(&run->packed) : status;
}

flp_status flp_linear_cross_entropy_launch_merge(const flp_plan *common, const void *call, const flp_workspace *workspace)
{
    execution run;
    flp_packed_rows all;
    flp_status status;

    begin(common, call, workspace, &run);
    run.backward_args.logp = run.logp; /* no forward of the same call hands over more */
    const flp_backward_launch_more more = {
        .class_weights = shard_class_weights(&run),
        .class_weight_dtype = run.plan->problem.class_weights,
        .g_sum = run.plan->program.derivative[FLP_TOKEN_UNIFORM] >= 0 ? inside(&run, FLP_PART_G_SUM) : NULL,
    };

    all = flp_packed_rows_all(&run.packed);
    status = index_rows(&run);
    if (status == FLP_OK && run.args->rows > 0)
        status = merge_rows(&run);
    if (status == FLP_OK && (run.args->rows > 0 || run.plan->problem.reduction != FLP_REDUCE_NONE))
        status = run_losses(&run, &all, 0);
    if (status != FLP_OK || flp_vocab_chunks_have_gradients(&run.plan->problem.backward))
        return status == FLP_OK ? flp_linear_logp_backward_launch_merged(&run.packed, &more) : status;
    return flp_backward_mark_grad_hidden(&run.backward_args);
}
