/* logits_logp, both directions: the tables of arguments, the checked call that is made of them, and its launches. */
#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/arguments.h"
#include "core/call.h"
#include "operators/logits/logits_logp_plan.h"

#define AT(argument) offsetof(flp_logits_logp_args, argument)
#define ASKED(field) offsetof(flp_logits_logp_problem, field)
#define BACKWARD_AT(argument) offsetof(flp_logits_logp_backward_args, argument)
#define BACKWARD_ASKED(field) offsetof(flp_logits_logp_backward_problem, field)

static const flp_argument forward[] = { { "logits", AT(logits), .decides = 1, .extent_at = ASKED(logits_stride), .values = FLP_VALUES_NORMAL },
                                        { "target", AT(target), .dtype_at = ASKED(target_dtype), .values = FLP_VALUES_TARGET },
                                        { "row_index", AT(row_index), .bytes = sizeof(int64_t), .is_optional = 1, .values = FLP_VALUES_ABSENT },
                                        { "row_temperature", AT(row_temperature), .bytes = sizeof(float), .is_optional = 1, .values = FLP_VALUES_ABSENT },
                                        { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1 },
                                        { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1 },
                                        { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1 },
                                        { "argmax", AT(argmax), .bytes = sizeof(int32_t), .asked_at = ASKED(argmax), .is_optional = 1 },
                                        { .name = NULL } };
static const flp_argument *const forward_arrays[] = { forward, NULL };
static const flp_arguments forward_arguments = {
    .args_struct = &flp_sized_logits_logp_args,
    .arrays = forward_arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_logits_logp_args),
    FLP_ARGUMENTS_TARGETS(flp_logits_logp_args),
    .row_index_at = AT(row_index),
    .logits_rows_at = AT(logits_rows),
    .target_dtype_at = ASKED(target_dtype),
    .vocab_at = ASKED(vocab),
    .more_flags = FLP_SCATTER,
};

/* In a fused call, lse, entropy and logp are results. */
static const flp_argument backward[] = {
    { "logits", BACKWARD_AT(logits), .decides = 1, .extent_at = BACKWARD_ASKED(logits_stride), .values = FLP_VALUES_NORMAL },
    { "target", BACKWARD_AT(target), .dtype_at = BACKWARD_ASKED(target_dtype), .values = FLP_VALUES_TARGET },
    { "row_index", BACKWARD_AT(row_index), .bytes = sizeof(int64_t), .is_optional = 1, .values = FLP_VALUES_ABSENT },
    { "row_temperature", BACKWARD_AT(row_temperature), .bytes = sizeof(float), .is_optional = 1, .values = FLP_VALUES_ABSENT },
    { "grad_logits", BACKWARD_AT(grad_logits), .decides = 1, .extent_at = BACKWARD_ASKED(grad_stride) },
    { "g_logp", BACKWARD_AT(g_logp), .bytes = sizeof(float), .values = FLP_VALUES_NORMAL },
    { "g_lse", BACKWARD_AT(g_lse), .bytes = sizeof(float), .is_optional = 1, .values = FLP_VALUES_ABSENT },
    { "g_entropy", BACKWARD_AT(g_entropy), .bytes = sizeof(float), .asked_at = BACKWARD_ASKED(entropy), .is_optional = 1, .values = FLP_VALUES_NORMAL },
    { "logp", BACKWARD_AT(logp), .bytes = sizeof(float), .is_optional = 1, .values = FLP_VALUES_ABSENT },
    { "lse", BACKWARD_AT(lse), .bytes = sizeof(float), .optional_at = BACKWARD_ASKED(fused), .values = FLP_VALUES_LSE },
    { "entropy", BACKWARD_AT(entropy), .bytes = sizeof(float), .asked_at = BACKWARD_ASKED(entropy), .optional_at = BACKWARD_ASKED(fused),
      .values = FLP_VALUES_ENTROPY },
    { .name = NULL }
};
static const flp_argument *const backward_arrays[] = { backward, NULL };
static const flp_arguments backward_arguments = {
    .args_struct = &flp_sized_logits_logp_backward_args,
    .arrays = backward_arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_logits_logp_backward_args),
    FLP_ARGUMENTS_TARGETS(flp_logits_logp_backward_args),
    .row_index_at = BACKWARD_AT(row_index),
    .logits_rows_at = BACKWARD_AT(logits_rows),
    .target_dtype_at = BACKWARD_ASKED(target_dtype),
    .vocab_at = BACKWARD_ASKED(vocab),
    .more_flags = FLP_SCATTER,
};

/* The args of both directions begin with the same fields, up to the results of the forward and the upstream gradients of the backward. */
enum { SHARED_BYTES = AT(logp) };
_Static_assert(BACKWARD_AT(g_logp) == SHARED_BYTES && BACKWARD_AT(logits) == AT(logits) && BACKWARD_AT(row_index) == AT(row_index) &&
                   BACKWARD_AT(flags) == AT(flags) && BACKWARD_AT(row_temperature) == AT(row_temperature),
               "flp_logits_logp_backward_args begins otherwise");

/* Checks, and fills in, what the calls of both directions have in common. given: the args of either. */
static flp_status begin_call(flp_dtype dtype, flp_dtype target_dtype, int64_t vocab, int64_t logits_stride, double softcap, const void *given,
                             flp_logits_logp_call *call)
{
    flp_logits_logp_args args;

    memcpy(&args, given, SHARED_BYTES);
    *call = (flp_logits_logp_call){ .dtype = dtype, .temperature = flp_arguments_temperature(args.temperature) };
    call->params = (flp_logits_logp_params){
        .logits = args.logits,
        .target = args.target,
        .row_index = (const i64 *)args.row_index,
        .row_temperature = args.row_temperature,
        .rows = args.rows,
        .logits_stride = logits_stride,
        .logits_rows = args.logits_rows,
        .ignore_index = args.ignore_index,
        .ignores = flp_arguments_ignore(args.flags),
        .vocab = (int32_t)vocab,
        .target_bytes = flp_dtype_bytes(target_dtype),
        .scatter = (args.flags & FLP_SCATTER) != 0,
        .scale = flp_arguments_scale(args.temperature),
        .softcap = (float)softcap,
        .inverse_softcap = softcap == 0 ? 0 : (float)(1 / softcap),
    };
    if (call->params.scatter && !args.row_index)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got FLP_SCATTER without a row_index, wanted both");
    return args.row_index ? flp_problem_check_range("logits_rows", args.logits_rows, 0, FLP_PROBLEM_ROWS_MAX) : FLP_OK;
}

/* For flp_operator_calls.check. */
static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_logits_logp_problem *normal = problem;
    const flp_logits_logp_args *args = given;
    flp_logits_logp_call *call = work;
    flp_status status = begin_call(normal->dtype, normal->target_dtype, normal->vocab, normal->logits_stride, normal->softcap, args, call);

    (void)plan;
    call->stream = args->stream;
    call->params.logp = args->logp;
    call->params.lse = args->lse;
    call->params.entropy = args->entropy;
    call->params.argmax = args->argmax;
    if (status == FLP_OK && args->rows > 0 && !args->logp && !args->lse && !args->entropy && !args->argmax)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "logp, lse, entropy, argmax: got NULL for all, wanted a result");
    return status;
}

/* In place, a row's gradients replace its logits, so both must be at the same row, with the same stride. */
static flp_status check_in_place(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_params *params)
{
    if (params->grad_logits != params->logits)
        return FLP_OK;
    if (normal->grad_stride != normal->logits_stride)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_logits: got logits, wanted other memory: their strides differ");
    if (params->row_index && !params->scatter)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_logits: got logits, wanted other memory or FLP_SCATTER beside the row_index");
    return FLP_OK;
}

/* For flp_operator_calls.check. In a fused call, logp, lse and entropy are results; else they are inputs. */
static flp_status check_backward(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_logits_logp_backward_problem *normal = problem;
    const flp_logits_logp_backward_args *args = given;
    flp_logits_logp_call *call = work;
    flp_logits_logp_params *params = &call->params;
    flp_status status = begin_call(normal->dtype, normal->target_dtype, normal->vocab, normal->logits_stride, normal->softcap, args, call);

    (void)plan;
    call->stream = args->stream;
    params->g_logp = args->g_logp;
    params->g_lse = args->g_lse;
    params->g_entropy = args->g_entropy;
    params->grad_logits = args->grad_logits;
    params->grad_stride = normal->grad_stride;
    if (normal->fused) {
        params->logp = args->logp;
        params->lse = args->lse;
        params->entropy = args->entropy;
    } else {
        params->given_lse = args->lse;
        params->given_entropy = args->entropy;
        params->given_logp = args->logp;
    }
    return status == FLP_OK && args->rows > 0 ? check_in_place(normal, params) : status;
}

static flp_status launch(const flp_workspace *workspace, flp_logits_logp_step step, const flp_kernel *kernel, unsigned blocks, flp_logits_logp_call *call)
{
    void *parameters[] = { &call->params };

    flp_workspace_begin_step(workspace, step);
    return flp_call_launch(kernel, blocks, call->stream, parameters);
}

/* Launches the kernel that reads the rows and, where several blocks share a row through scratch, the combine, with a warp for each row. */
static flp_status launch_forward(const flp_workspace *workspace, const flp_logits_logp_forward *forward, const flp_logits_logp_pass *pass,
                                 flp_logits_logp_call *call)
{
    flp_logits_logp_params *params = &call->params;
    const int64_t warps = forward->combine->manifest.threads / 32;
    flp_status status;

    params->segments = pass->shape.segments;
    params->parts = pass->shape.parts;
    params->team_log2 = pass->shape.team_log2;
    status = launch(workspace, FLP_LOGITS_STEP_ROWS, pass->kernel, pass->shape.blocks, call);
    if (status != FLP_OK || pass->shape.parts == 1)
        return status;
    return launch(workspace, FLP_LOGITS_STEP_COMBINE, forward->combine, (unsigned)((params->rows + warps - 1) / warps), call);
}

/* given: the call, to which the fields of the plan and of the workspace are added. */
static flp_logits_logp_call complete(const flp_plan *plan, const void *given, const flp_workspace *workspace)
{
    flp_logits_logp_call call = *(const flp_logits_logp_call *)given;

    call.params.target_errors = (flp_tally *)(uintptr_t)plan->target_errors;
    call.params.partial = flp_workspace_at(workspace, FLP_LOGITS_PART_PARTIAL);
    call.params.best = flp_workspace_at(workspace, FLP_LOGITS_PART_BEST);
    call.params.moment = flp_workspace_at(workspace, FLP_LOGITS_PART_MOMENT);
    call.params.normaliser = flp_workspace_at(workspace, FLP_LOGITS_PART_NORMALISER);
    return call;
}

static flp_status launch_pass(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    flp_logits_logp_call call = complete(common, given, workspace);
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, call.params.rows);

    return launch_forward(workspace, &plan->forward, &pass, &call);
}

static flp_status launch_gradient(const flp_logits_logp_backward_plan *plan, const flp_workspace *workspace, flp_logits_logp_call *call)
{
    const flp_logits_logp_shape shape =
        flp_logits_logp_shape_gradient(&plan->gradient->manifest, plan->common.device.facts.multiprocessors, plan->problem.vocab, call->params.rows);

    call->params.segments = shape.segments;
    return launch(workspace, FLP_LOGITS_STEP_GRADIENT, plan->gradient, shape.blocks, call);
}

/* For too few rows, or too long ones, for the fused kernel: the forward leaves what the gradient kernel needs of each row. */
static flp_status launch_in_steps(const flp_logits_logp_backward_plan *plan, const flp_workspace *workspace, flp_logits_logp_call *call)
{
    const flp_logits_logp_pass pass =
        flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, call->params.rows);
    const flp_status status = launch_forward(workspace, &plan->forward, &pass, call);

    return status == FLP_OK ? launch_gradient(plan, workspace, call) : status;
}

static flp_status launch_backward(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    flp_logits_logp_call call = complete(common, given, workspace);
    const flp_logits_logp_shape fused = flp_logits_logp_backward_plan_fused(plan, call.params.rows);

    if (!plan->fused)
        return launch_gradient(plan, workspace, &call);
    if (fused.blocks == 0)
        return launch_in_steps(plan, workspace, &call);
    call.params.segments = fused.segments;
    call.params.parts = 1;
    call.params.team_log2 = fused.team_log2;
    return launch(workspace, FLP_LOGITS_STEP_ROWS, plan->fused, fused.blocks, &call);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_logits_logp_cpu(plan->context->pool, work, bad_count, bad_first);
}

const flp_operator_calls flp_logits_logp_calls = {
    .op = &flp_logits_logp_operator,
    .arguments = &forward_arguments,
    .check = check,
    .makes_work = 1,
    .launch = launch_pass,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
_Static_assert(sizeof(flp_logits_logp_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_logits_logp)

const flp_operator_calls flp_logits_logp_backward_calls = {
    .op = &flp_logits_logp_backward_operator,
    .arguments = &backward_arguments,
    .check = check_backward,
    .makes_work = 1,
    .launch = launch_backward,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
FLP_CALL_FUNCTIONS(flp_logits_logp_backward)
