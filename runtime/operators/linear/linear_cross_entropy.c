/* linear_cross_entropy: its arguments, the names of its token loss resolved, its launches on a GPU path (the forward, the losses of the rows, the backward)
 * and its calls. */
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/dtype.h"
#include "base/status.h"
#include "core/call.h"
#include "core/tune_first.h"
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "operators/linear/linear_logp_backward.h"
#include "params/token_loss.h"
#include "operators/linear/linear_cross_entropy_plan.h"

/* ---- arguments ---- */

#define AT(argument) offsetof(flp_linear_cross_entropy_args, argument)
#define ASKED(field) offsetof(flp_linear_cross_entropy_problem, field)

static const flp_argument list[] = { { "grad_weight", AT(grad_weight), .dtype_at = ASKED(backward.grad_weight), .asked_at = ASKED(backward.grad_weight),
                                       .decides = 1, .extent_at = ASKED(backward.grad_weight_stride), .without_rows = 1 },
                                     { "grad_bias", AT(grad_bias), .dtype_at = ASKED(backward.grad_bias), .asked_at = ASKED(backward.grad_bias),
                                       .without_rows = 1, .extent_at = ASKED(backward.forward.vocab) },
                                     { "grad_hidden", AT(grad_hidden), .dtype_at = ASKED(backward.grad_hidden), .asked_at = ASKED(backward.grad_hidden),
                                       .decides = 1, .extent_at = ASKED(backward.grad_hidden_stride) },
                                     { "class_weights", AT(class_weights), .dtype_at = ASKED(class_weights), .asked_at = ASKED(class_weights),
                                       .extent_at = ASKED(backward.forward.vocab), .values = FLP_VALUES_FACTOR },
                                     { "token_weights", AT(token_weights), .bytes = sizeof(float), .asked_at = ASKED(token_weights),
                                       .values = FLP_VALUES_FACTOR },
                                     { "g_loss", AT(g_loss), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1, .values = FLP_VALUES_ABSENT },
                                     { "loss", AT(loss), .bytes = sizeof(float) },
                                     { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1 },
                                     { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1 },
                                     { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1, .without_rows = 1 },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, list, NULL };

static const flp_arguments arguments = {
    .args_struct = &flp_sized_linear_cross_entropy_args,
    .arrays = arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_cross_entropy_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_cross_entropy_args),
    .target_dtype_at = ASKED(backward.forward.target_dtype),
    .vocab_at = ASKED(backward.forward.vocab),
};

static flp_status check_scalars(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    const double smoothing = args->label_smoothing, scale = args->lse_square_scale;

    if (!(smoothing >= 0 && smoothing <= 1))
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got %g, wanted 0 .. 1", smoothing);
    if (smoothing != 0 && !problem->label_smoothing)
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got %g, wanted 0: the problem's label_smoothing is 0", smoothing);
    if (!isfinite(scale))
        return flp_status_fail(FLP_BAD_ARGUMENT, "lse_square_scale: got %g, wanted a finite number", scale);
    if (scale != 0 && problem->token_loss[0])
        return flp_status_fail(FLP_BAD_ARGUMENT, "lse_square_scale: got %g, wanted 0: %s says what the loss is", scale, problem->token_loss);
    return FLP_OK;
}

/* ---- arguments of another header ---- */

/* Arguments as this library knows them, of a caller with another header. */
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[FLP_TOKEN_INPUTS];
    flp_token_parameter parameters[FLP_TOKEN_PARAMETERS];
} own_args;

/* own: room for `most`. A count that check_list refuses is left to it. */
static const void *take_list(const flp_sized_struct *known, const flp_sizes *sizes, const void *list, int count, int most, void *own, flp_status *status)
{
    if (!list || count < 0 || count > most || flp_sized_same(known, sizes))
        return list;
    for (int i = 0; i < count && *status == FLP_OK; i++)
        *status = flp_sized_copy(known, sizes, (const char *)list + i * flp_sized_bytes(sizes, known->part[0].at), (char *)own + i * known->part[0].bytes);
    return own;
}

/* As flp_sized_take, with the arrays that args has. room: own_args. */
static const void *take_args(const void *args, void *room, const flp_sizes *sizes, flp_status *status)
{
    own_args *own = room;
    const flp_linear_cross_entropy_args *taken = flp_sized_take(&flp_sized_linear_cross_entropy_args, sizes, args, &own->args, status);

    if (!taken || (flp_sized_same(&flp_sized_token_input, sizes) && flp_sized_same(&flp_sized_token_parameter, sizes)))
        return taken;
    own->args = *taken;
    own->args.token_inputs = take_list(&flp_sized_token_input, sizes, taken->token_inputs, taken->token_input_count, FLP_TOKEN_INPUTS, own->inputs, status);
    own->args.token_parameters =
        take_list(&flp_sized_token_parameter, sizes, taken->token_parameters, taken->token_parameter_count, FLP_TOKEN_PARAMETERS, own->parameters, status);
    return &own->args;
}

/* ---- the token loss' names ---- */

static int find(const char (*names)[FLP_TOKEN_LOSS_NAME_BYTES], int count, const char *name)
{
    for (int i = 0; name && i < count; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* one: what the array is an array of. */
static flp_status refuse_name(const char *argument, const char *name, const char *loss, const char *one)
{
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got \"%.40s\", which is no %s of %s", argument, name ? name : "NULL", one, loss);
}

/* most: that any token loss takes. */
static flp_status check_list(const char *argument, const void *list, int count, int most)
{
    if (count >= 0 && count <= most && (list || count == 0))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %s and a count of %d, wanted at most %d", argument, list ? "an array" : "NULL", count, most);
}

static flp_status resolve_inputs(const flp_token_program *program, const char *loss, flp_cross_entropy_call *call)
{
    const flp_linear_cross_entropy_args *args = call->args;
    flp_status status = check_list("token_inputs", args->token_inputs, args->token_input_count, FLP_TOKEN_INPUTS);

    for (int i = 0; status == FLP_OK && i < args->token_input_count; i++) {
        const flp_token_input *given = &args->token_inputs[i];
        const int at = find(program->input, program->inputs, given->name);
        if (at < 0)
            return refuse_name("token_inputs", given->name, loss, "input");
        call->input[at] = given->values;
        status = args->rows > 0 ? flp_arguments_check_address(given->name, given->values, sizeof(float)) : FLP_OK;
    }
    for (int i = 0; status == FLP_OK && args->rows > 0 && i < program->inputs; i++)
        if (!call->input[i])
            status = flp_status_fail(FLP_BAD_ARGUMENT, "token_inputs: got no \"%s\", which %s takes", program->input[i], loss);
    return status;
}

static flp_status set_parameter(const flp_token_program *program, const char *loss, const flp_token_parameter *given, flp_cross_entropy_call *call)
{
    const int at = find(program->parameter, program->parameters, given->name);

    if (at < 0)
        return refuse_name("token_parameters", given->name, loss, "parameter");
    if (!isfinite(given->value))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %g, wanted a finite number", given->name, given->value);
    call->parameter[at] = given->value;
    return FLP_OK;
}

/* Those of the cross-entropy are arguments of their own. */
static flp_status set_own_parameters(const flp_token_program *program, flp_cross_entropy_call *call)
{
    const flp_linear_cross_entropy_args *args = call->args;
    const flp_token_parameter own[] = { { "lse_square_scale", args->lse_square_scale }, { "label_smoothing", args->label_smoothing } };
    flp_status status = FLP_OK;

    if (args->token_parameter_count != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "token_parameters: got %d, wanted none: token_loss is empty", args->token_parameter_count);
    for (int i = 0; status == FLP_OK && i < program->parameters; i++)
        status = set_parameter(program, "the cross-entropy", &own[i], call);
    return status;
}

static flp_status resolve_parameters(const flp_linear_cross_entropy_problem *problem, const flp_token_program *program, flp_cross_entropy_call *call)
{
    const flp_linear_cross_entropy_args *args = call->args;
    flp_status status = check_list("token_parameters", args->token_parameters, args->token_parameter_count, FLP_TOKEN_PARAMETERS);

    memcpy(call->parameter, program->default_value, sizeof(call->parameter));
    if (status == FLP_OK && !problem->token_loss[0])
        return set_own_parameters(program, call);
    for (int i = 0; status == FLP_OK && i < args->token_parameter_count; i++)
        status = set_parameter(program, problem->token_loss, &args->token_parameters[i], call);
    return status;
}

/* Beside the table: scalars, and the loss that is written without rows all the same. Fills in call, which borrows args. */
static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_linear_cross_entropy_problem *normal = problem;
    const flp_linear_cross_entropy_args *args = given;
    const flp_token_program *program = &flp_linear_cross_entropy_plan_of(plan)->program;
    flp_cross_entropy_call *call = work;
    flp_status status = check_scalars(normal, args);

    *call = (flp_cross_entropy_call){ .args = args, .program = program };
    if (status == FLP_OK && args->rows == 0 && normal->reduction != FLP_REDUCE_NONE)
        status = flp_arguments_check_address("loss", args->loss, sizeof(float));
    if (status == FLP_OK)
        status = resolve_inputs(program, normal->token_loss[0] ? normal->token_loss : "the cross-entropy", call);
    return status == FLP_OK ? resolve_parameters(normal, program, call) : status;
}

/* ---- one execution ---- */

/* Where everything is. */
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

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_cross_entropy_cpu(plan->context->pool, flp_plan_problem(plan), work, bad_count, bad_first);
}

const flp_operator_calls flp_linear_cross_entropy_calls = {
    .op = &flp_linear_cross_entropy_operator,
    .arguments = &arguments,
    .take = take_args,
    .check = check,
    .makes_work = 1,
    .writes_without_rows = 1,
    .launch = launch_all,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
_Static_assert(sizeof(own_args) <= FLP_CALL_ARGS_BYTES, "FLP_CALL_ARGS_BYTES is too small");
_Static_assert(sizeof(flp_cross_entropy_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_linear_cross_entropy)
