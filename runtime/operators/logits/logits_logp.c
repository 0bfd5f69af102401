/* logits_logp, both directions: the arguments, the call that they make, its launches and how it is run. */
#include <math.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/arguments.h"
#include "core/call.h"
#include "operators/logits/logits_logp_backward_plan.h"
#include "operators/logits/logits_logp_cpu.h"
#include "operators/logits/logits_logp_plan.h"
#include "params/logits_logp.h"

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

/* lse, entropy and logp are results of a fused call. */
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

/* What both directions have. */
static flp_status check_index(const flp_logits_logp_call *call)
{
    if (call->scatter && !call->row_index)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got FLP_SCATTER without a row_index, wanted both");
    return call->row_index ? flp_problem_check_range("logits_rows", call->logits_rows, 0, FLP_PROBLEM_ROWS_MAX) : FLP_OK;
}

static flp_status make_call(const flp_logits_logp_problem *normal, const flp_logits_logp_args *args, flp_logits_logp_call *call)
{
    flp_status status;

    *call = (flp_logits_logp_call){ .dtype = normal->dtype,
                                    .target_dtype = normal->target_dtype,
                                    .rows = args->rows,
                                    .vocab = normal->vocab,
                                    .logits_stride = normal->logits_stride,
                                    .softcap = normal->softcap,
                                    .temperature = flp_arguments_temperature(args->temperature),
                                    .logits = args->logits,
                                    .target = args->target,
                                    .row_index = args->row_index,
                                    .logits_rows = args->logits_rows,
                                    .ignore_index = args->ignore_index,
                                    .ignores = flp_arguments_ignore(args->flags),
                                    .scatter = (args->flags & FLP_SCATTER) != 0,
                                    .row_temperature = args->row_temperature,
                                    .logp = args->logp,
                                    .lse = args->lse,
                                    .entropy = args->entropy,
                                    .argmax = args->argmax };
    status = check_index(call);
    if (status == FLP_OK && args->rows > 0 && !call->logp && !call->lse && !call->entropy && !call->argmax)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "logp, lse, entropy, argmax: got NULL for all, wanted a result");
    return status;
}

/* lse and entropy are results of a fused call, else given. */
static void fill_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args, flp_logits_logp_call *call)
{
    *call = (flp_logits_logp_call){ .dtype = normal->dtype,
                                    .target_dtype = normal->target_dtype,
                                    .rows = args->rows,
                                    .vocab = normal->vocab,
                                    .logits_stride = normal->logits_stride,
                                    .grad_stride = normal->grad_stride,
                                    .softcap = normal->softcap,
                                    .temperature = flp_arguments_temperature(args->temperature),
                                    .logits = args->logits,
                                    .target = args->target,
                                    .row_index = args->row_index,
                                    .logits_rows = args->logits_rows,
                                    .ignore_index = args->ignore_index,
                                    .ignores = flp_arguments_ignore(args->flags),
                                    .scatter = (args->flags & FLP_SCATTER) != 0,
                                    .row_temperature = args->row_temperature,
                                    .g_logp = args->g_logp,
                                    .g_lse = args->g_lse,
                                    .g_entropy = args->g_entropy,
                                    .grad_logits = args->grad_logits };
    if (normal->fused) {
        call->logp = args->logp;
        call->lse = args->lse;
        call->entropy = args->entropy;
    } else {
        call->given_lse = args->lse;
        call->given_entropy = args->entropy;
        call->given_logp = args->logp;
    }
}

/* In place a row's gradients take the place of its logits, so both lie in the same rows. */
static flp_status check_in_place(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_call *call)
{
    if (call->grad_logits != call->logits)
        return FLP_OK;
    if (normal->grad_stride != normal->logits_stride)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_logits: got logits, wanted other memory: their strides differ");
    if (call->row_index && !call->scatter)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_logits: got logits, wanted other memory or FLP_SCATTER beside the row_index");
    return FLP_OK;
}

static flp_status make_backward_call(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args, flp_logits_logp_call *call)
{
    flp_status status;

    fill_backward(normal, args, call);
    status = check_index(call);
    return status == FLP_OK && args->rows > 0 ? check_in_place(normal, call) : status;
}

/* A call and where it is enqueued: what check makes of args. */
typedef struct {
    flp_logits_logp_call call;
    CUstream stream;
} logits_work;

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

static flp_status launch(const flp_workspace *workspace, flp_logits_logp_step step, const flp_kernel *kernel, unsigned blocks, const logits_work *work,
                         flp_logits_logp_params *params)
{
    void *parameters[] = { params };

    flp_workspace_begin_step(workspace, step);
    return flp_call_launch(kernel, blocks, work->stream, parameters);
}

/* The rows and, where blocks share them through scratch, the combine: a warp each. */
static flp_status launch_forward(const flp_workspace *workspace, const flp_logits_logp_forward *forward, const flp_logits_logp_pass *pass,
                                 const logits_work *work, flp_logits_logp_params *params)
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

static flp_status launch_pass(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_plan *plan = flp_logits_logp_plan_of(common);
    const logits_work *work = given;
    const flp_logits_logp_pass pass = flp_logits_logp_plan_pass(plan, work->call.rows);
    flp_logits_logp_params params;

    fill_params(common, &work->call, &params);
    use_workspace(workspace, &params);
    return launch_forward(workspace, &plan->forward, &pass, work, &params);
}

static flp_status launch_gradient(const flp_logits_logp_backward_plan *plan, const logits_work *work, const flp_workspace *workspace,
                                  flp_logits_logp_params *params)
{
    const flp_logits_logp_shape shape =
        flp_logits_logp_shape_gradient(&plan->gradient->manifest, plan->common.device.facts.multiprocessors, plan->problem.vocab, work->call.rows);

    params->segments = shape.segments;
    return launch(workspace, FLP_LOGITS_STEP_GRADIENT, plan->gradient, shape.blocks, work, params);
}

/* Too few rows for the fused kernel: the forward leaves what the gradient kernel needs of each row. */
static flp_status launch_in_steps(const flp_logits_logp_backward_plan *plan, const logits_work *work, const flp_workspace *workspace,
                                  flp_logits_logp_params *params)
{
    const flp_logits_logp_pass pass =
        flp_logits_logp_forward_choose(&plan->forward, plan->common.device.facts.multiprocessors, plan->problem.vocab, work->call.rows);
    const flp_status status = launch_forward(workspace, &plan->forward, &pass, work, params);

    return status == FLP_OK ? launch_gradient(plan, work, workspace, params) : status;
}

static flp_status launch_backward(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_logits_logp_backward_plan *plan = flp_logits_logp_backward_plan_of(common);
    const logits_work *work = given;
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

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_logits_logp_cpu(plan->context->pool, &((const logits_work *)work)->call, bad_count, bad_first);
}

/* ---- forward ---- */

static flp_status check(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((logits_work *)work)->stream = ((const flp_logits_logp_args *)args)->stream;
    return make_call(normal, args, &((logits_work *)work)->call);
}

const flp_operator_calls flp_logits_logp_calls = {
    .op = &flp_logits_logp_operator,
    .arguments = &forward_arguments,
    .check = check,
    .makes_work = 1,
    .launch = launch_pass,
    .run_on_cpu = run_on_cpu,
};
_Static_assert(sizeof(logits_work) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_logits_logp)

/* ---- backward ---- */

static flp_status check_backward(const flp_plan *plan, const void *normal, const void *args, void *work)
{
    (void)plan;
    ((logits_work *)work)->stream = ((const flp_logits_logp_backward_args *)args)->stream;
    return make_backward_call(normal, args, &((logits_work *)work)->call);
}

const flp_operator_calls flp_logits_logp_backward_calls = {
    .op = &flp_logits_logp_backward_operator,
    .arguments = &backward_arguments,
    .check = check_backward,
    .makes_work = 1,
    .launch = launch_backward,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_logits_logp_backward)
