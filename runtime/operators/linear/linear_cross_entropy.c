/* linear_cross_entropy: the table of its arguments, how the names of its token loss' inputs and parameters are resolved, and its calls. */
#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "core/call.h"
#include "operators/linear/linear_cross_entropy_cpu.h"
#include "operators/linear/linear_cross_entropy_plan.h"
#include "operators/linear/linear_logp.h"

/* ---- arguments ---- */

#define AT(argument) offsetof(flp_linear_cross_entropy_args, argument)
#define ASKED(field) offsetof(flp_linear_cross_entropy_problem, field)

static const flp_argument list[] = {
    { "grad_weight", AT(grad_weight), .dtype_at = ASKED(backward.grad_weight), .asked_at = ASKED(backward.grad_weight), .decides = 1, .by_elements = 1,
      .extent_at = ASKED(backward.grad_weight_stride), .entries_at = ASKED(backward.forward.vocab), .without_rows = 1 },
    { "grad_bias", AT(grad_bias), .dtype_at = ASKED(backward.grad_bias), .asked_at = ASKED(backward.grad_bias), .without_rows = 1,
      .extent_at = ASKED(backward.forward.vocab), .entries_at = ASKED(backward.forward.vocab) },
    { "grad_hidden", AT(grad_hidden), .dtype_at = ASKED(backward.grad_hidden), .asked_at = ASKED(backward.grad_hidden), .decides = 1, .by_elements = 1,
      .extent_at = ASKED(backward.grad_hidden_stride) },
    { "class_weights", AT(class_weights), .dtype_at = ASKED(class_weights), .asked_at = ASKED(class_weights), .extent_at = ASKED(backward.forward.vocab),
      .values = FLP_VALUES_FACTOR },
    { "token_weights", AT(token_weights), .bytes = sizeof(float), .asked_at = ASKED(token_weights), .values = FLP_VALUES_FACTOR },
    { "g_loss", AT(g_loss), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1, .values = FLP_VALUES_ABSENT },
    { "loss", AT(loss), .bytes = sizeof(float) },
    { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1 },
    { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1, .without_rows = 1 },
    { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1, .without_rows = 1 },
    { "partials", AT(partials), .bytes = sizeof(float), .row_elements = FLP_PARTIAL_FLOATS, .owner = FLP_ARGUMENT_OF_SHARD },
    { .name = NULL }
};
/* The arguments from which a shard computes its partials. */
static const flp_argument partials_list[] = { { "class_weights", AT(class_weights), .dtype_at = ASKED(class_weights), .asked_at = ASKED(class_weights) },
                                              { "partials", AT(partials), .bytes = sizeof(float) },
                                              { .name = NULL } };
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, list, NULL };
static const flp_argument *const partials_arrays[] = { flp_linear_logp_argument_inputs, partials_list, NULL };

#define ARGUMENTS(list)                                                                                                              \
    {                                                                                                                                \
        .args_struct = &flp_sized_linear_cross_entropy_args, .arrays = list, FLP_ARGUMENTS_WORKSPACE(flp_linear_cross_entropy_args), \
        FLP_ARGUMENTS_TARGETS(flp_linear_cross_entropy_args), .target_dtype_at = ASKED(backward.forward.target_dtype),               \
        .vocab_at = ASKED(backward.forward.vocab), .vocab_total_at = ASKED(backward.forward.vocab_total),                            \
    }
static const flp_arguments arguments = ARGUMENTS(arrays), partials_arguments = ARGUMENTS(partials_arrays);

/* 1: the number is one in fp32, too, in which GPUs compute the loss. */
static int is_single(double value)
{
    return fabs(value) <= FLT_MAX;
}

static flp_status check_scalars(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args)
{
    const double smoothing = args->label_smoothing, scale = args->lse_square_scale;

    if (!(smoothing >= 0 && smoothing <= 1))
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got %g, wanted 0 .. 1", smoothing);
    if (smoothing != 0 && !problem->label_smoothing)
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got %g, wanted 0: the problem's label_smoothing is 0", smoothing);
    if (!is_single(scale))
        return flp_status_fail(FLP_BAD_ARGUMENT, "lse_square_scale: got %g, wanted a number that is finite in fp32", scale);
    if (scale != 0 && problem->token_loss[0])
        return flp_status_fail(FLP_BAD_ARGUMENT, "lse_square_scale: got %g, wanted 0: %s says what the loss is", scale, problem->token_loss);
    if (args->multiprocessors_left < 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "multiprocessors_left: got %" PRId64 ", wanted 0 or more", args->multiprocessors_left);
    return FLP_OK;
}

/* ---- arguments of another header ---- */

/* Converts a list of structs of the caller's layout to own, which has room for `most`. A count that is out of range is left to check_list to refuse. */
static const void *take_list(const flp_sized_struct *known, const flp_sizes *sizes, const void *list, int count, int most, void *own, flp_status *status)
{
    if (!list || count < 0 || count > most || flp_sized_same(known, sizes))
        return list;
    for (int i = 0; i < count && *status == FLP_OK; i++)
        *status = flp_sized_copy(known, sizes, (const char *)list + i * flp_sized_bytes(sizes, known->part[0].at), (char *)own + i * known->part[0].bytes);
    return own;
}

const void *flp_linear_cross_entropy_take_args(const void *args, void *room, const flp_sizes *sizes, flp_status *status)
{
    flp_cross_entropy_own_args *own = room;
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

/* one: the word for an element of the array. */
static flp_status refuse_name(const char *argument, const char *name, const char *loss, const char *one)
{
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got \"%.40s\", which is no %s of %s", argument, name ? name : "NULL", one, loss);
}

/* most: the largest number that any token loss takes. */
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
    if (!is_single(given->value))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %g, wanted a number that is finite in fp32", given->name, given->value);
    call->parameter[at] = given->value;
    return FLP_OK;
}

/* The parameters of the cross-entropy are fields of args. */
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

/* Checks what the table of arguments does not cover: the scalars, the names, and loss, which is written in calls without rows, too. Fills in work, a
 * flp_cross_entropy_call that borrows args. */
static flp_status check_losses(const flp_plan *plan, const void *problem, const void *given, void *work)
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

/* ---- calls ---- */

static flp_status check(const flp_plan *plan, const void *problem, const void *args, void *work)
{
    const int64_t total = ((const flp_linear_cross_entropy_problem *)problem)->backward.forward.vocab_total;

    if (total == 0)
        return check_losses(plan, problem, args, work);
    return flp_status_fail(FLP_BAD_ARGUMENT,
                           "problem.vocab_total: got %" PRId64 ", wanted 0: of a shard, flp_linear_cross_entropy_partials and flp_linear_cross_entropy_merge",
                           total);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_cross_entropy_cpu(plan->context->pool, flp_plan_problem(plan), work, bad_count, bad_first);
}

const flp_operator_calls flp_linear_cross_entropy_calls = {
    .op = &flp_linear_cross_entropy_operator,
    .arguments = &arguments,
    .take = flp_linear_cross_entropy_take_args,
    .check = check,
    .makes_work = 1,
    .writes_without_rows = 1,
    .launch = flp_linear_cross_entropy_launch,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
_Static_assert(sizeof(flp_cross_entropy_own_args) <= FLP_CALL_ARGS_BYTES, "FLP_CALL_ARGS_BYTES is too small");
_Static_assert(sizeof(flp_cross_entropy_call) <= FLP_CALL_WORK_BYTES, "FLP_CALL_WORK_BYTES is too small");
FLP_CALL_FUNCTIONS(flp_linear_cross_entropy)

/* ---- of a shard ---- */

static flp_status check_shard(const void *problem)
{
    if (((const flp_linear_cross_entropy_problem *)problem)->backward.forward.vocab_total > 0)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "problem.vocab_total: got 0, wanted that of a shard");
}

/* plan: NULL for a call of no rows. */
static flp_status check_partials(const flp_plan *plan, const void *problem, const void *args, void *work)
{
    if (plan)
        *(flp_cross_entropy_call *)work = (flp_cross_entropy_call){ .args = args, .program = &flp_linear_cross_entropy_plan_of(plan)->program };
    return check_shard(problem);
}

static flp_status run_partials_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count; /* the merge counts them */
    (void)bad_first;
    return flp_linear_cross_entropy_cpu_partials(plan->context->pool, flp_plan_problem(plan), work);
}

static const flp_operator_calls partials_calls = {
    .op = &flp_linear_cross_entropy_operator,
    .arguments = &partials_arguments,
    .take = flp_linear_cross_entropy_take_args,
    .check = check_partials,
    .makes_work = 1,
    .launch = flp_linear_cross_entropy_launch_partials,
    .run_on_cpu = run_partials_on_cpu,
};

static flp_status check_merge(const flp_plan *plan, const void *problem, const void *args, void *work)
{
    flp_status status = check_shard(problem);

    if (status == FLP_OK)
        status = flp_linear_logp_shard_check_ranks(((const flp_linear_cross_entropy_args *)args)->ranks);
    return status == FLP_OK ? check_losses(plan, problem, args, work) : status;
}

static flp_status run_merge_on_cpu(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_cross_entropy_cpu_merge(plan->context->pool, flp_plan_problem(plan), work, bad_count, bad_first);
}

static const flp_operator_calls merge_calls = {
    .op = &flp_linear_cross_entropy_operator,
    .arguments = &arguments,
    .take = flp_linear_cross_entropy_take_args,
    .check = check_merge,
    .makes_work = 1,
    .writes_without_rows = 1,
    .launch = flp_linear_cross_entropy_launch_merge,
    .run_on_cpu = run_merge_on_cpu,
};

#define OF_SHARD(X)                                                                                                                            \
    flp_status flp_linear_cross_entropy_##X##_sized(flp_context *context, const flp_linear_cross_entropy_problem *problem,                     \
                                                    const flp_linear_cross_entropy_args *args, const flp_sizes *sizes)                         \
    {                                                                                                                                          \
        return flp_call_run(&X##_calls, context, problem, args, sizes);                                                                        \
    }                                                                                                                                          \
    flp_status flp_linear_cross_entropy_execute_##X##_sized(flp_plan *plan, const flp_linear_cross_entropy_args *args, const flp_sizes *sizes) \
    {                                                                                                                                          \
        return flp_call_execute(&X##_calls, plan, args, sizes);                                                                                \
    }
OF_SHARD(partials)
OF_SHARD(merge)
