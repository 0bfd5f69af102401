/* linear_cross_entropy: losses and token losses with their gradients, and the same from shards of the vocabulary. */
#include "torch_linear.h"
#include <stdio.h>
#include <string.h>

#define CROSS_ENTROPY                                                                                                                           \
    FLP_TORCH_LINEAR                                                                                                                            \
    "Tensor? class_weight, Tensor? token_weight, Tensor? g_loss, Tensor? token_inputs, float[] token_parameters, int token_loss, "              \
    "int reduction, float label_smoothing, float z_loss, bool entropy, bool want_hidden, bool want_weight, bool want_bias, int memory_budget, " \
    "float filter_eps"
enum {
    CLASS_WEIGHT = FLP_TORCH_LINEAR_INPUTS,
    TOKEN_WEIGHT,
    G_LOSS,
    TOKEN_INPUTS,
    TOKEN_PARAMETERS,
    TOKEN_LOSS,
    REDUCTION,
    LABEL_SMOOTHING,
    Z_LOSS,
    CE_ENTROPY,
    CE_WANT_HIDDEN,
    CE_WANT_WEIGHT,
    CE_WANT_BIAS,
    CE_MEMORY_BUDGET,
    CE_FILTER_EPS,
    CROSS_ENTROPY_INPUTS
};

/* Reads the arrays and numbers of a token loss into inputs and parameters, which args then points to. They point into the token loss and the frame. */
static int read_token_loss(flp_torch_frame *frame, const flp_torch_linear *l, flp_linear_cross_entropy_problem *problem, flp_token_input inputs[8],
                           flp_token_parameter parameters[8], flp_linear_cross_entropy_args *args)
{
    const flp_torch_value *in = frame->inputs, *arrays = &in[TOKEN_INPUTS], *numbers = &in[TOKEN_PARAMETERS];
    flp_status status;
    const flp_torch_plans_token_loss *loss;

    if (in[TOKEN_LOSS].integer == 0)
        return 0;
    loss = flp_torch_plans_token_loss_find(frame->device, in[TOKEN_LOSS].integer, &status);
    if (!loss && status == FLP_BAD_ARGUMENT && !*flp_error_message())
        return flp_torch_fail(frame, "token_loss: no such number; fusedlogp.TokenLoss makes one");
    if (!loss)
        return flp_torch_check_status(frame, status);
    if (loss->input_count > 0 && (!flp_torch_given(arrays) || flp_torch_check_matrix(frame, "token_inputs", arrays, loss->input_count, l->rows, FLP_TORCH_F32)))
        return frame->error[0] ? 1 : flp_torch_fail(frame, "token_inputs: nothing, wanted [%d, %lld]", loss->input_count, (long long)l->rows);
    if (numbers->count != loss->parameter_count)
        return flp_torch_fail(frame, "token_parameters has %lld numbers, wanted %d", (long long)numbers->count, loss->parameter_count);
    snprintf(problem->token_loss, sizeof(problem->token_loss), "%s", loss->name);
    for (int i = 0; i < loss->input_count; i++)
        inputs[i] = (flp_token_input){ loss->inputs[i],
                                       l->rows > 0 ? (const float *)arrays->data + i * flp_torch_row_stride(arrays) : (const float *)flp_torch_nothing };
    for (int i = 0; i < loss->parameter_count; i++)
        parameters[i] = (flp_token_parameter){ loss->parameters[i], numbers->numbers[i] };
    args->token_inputs = inputs, args->token_input_count = loss->input_count;
    args->token_parameters = parameters, args->token_parameter_count = loss->parameter_count;
    return 0;
}

/* Reads main_grad, to which the gradient of weight is added. It must be stored in the same order as weight. */
static int read_main_grad(flp_torch_frame *frame, const flp_torch_linear *l, const flp_torch_value *main_grad, flp_linear_logp_backward_problem *problem,
                          void **data)
{
    const uintptr_t element = problem->forward.dtype == FLP_F32 ? sizeof(float) : sizeof(uint16_t);
    uintptr_t address = (uintptr_t)main_grad->data;

    if (flp_torch_check_tensor(frame, "main_grad", main_grad, 2, FLP_TORCH_FLOATS))
        return 1;
    if (main_grad->sizes[0] != l->vocab || main_grad->sizes[1] != l->columns)
        return flp_torch_fail(frame, "main_grad has shape [%lld, %lld], wanted weight's [%lld, %lld]", (long long)main_grad->sizes[0],
                              (long long)main_grad->sizes[1], (long long)l->vocab, (long long)l->columns);
    if (l->vocab > 0 && flp_torch_lies_transposed(main_grad) != l->transposed)
        return flp_torch_fail(frame, "main_grad's strides are in another order than weight's");
    problem->grad_weight = main_grad->dtype, problem->grad_weight_stride = flp_torch_weight_stride(main_grad, l->transposed);
    problem->accumulate |= FLP_ACCUMULATE_WEIGHT;
    if (address & (element - 1))
        address = element; /* main_grad's elements may be smaller than weight's; the alignment is at least one of weight's */
    problem->forward.pointer_alignment = flp_torch_alignment_of((void *)(uintptr_t)problem->forward.pointer_alignment, (void *)address);
    *data = main_grad->data;
    return 0;
}

static int check_cross_entropy(flp_torch_frame *frame, const flp_torch_linear *l)
{
    const flp_torch_value *in = frame->inputs;
    const int64_t classes = l->problem.vocab_total > 0 ? l->problem.vocab_total : l->vocab;

    if (in[REDUCTION].integer < FLP_REDUCE_MEAN || in[REDUCTION].integer > FLP_REDUCE_NONE)
        return flp_torch_fail(frame, "reduction is %lld, wanted 0 (mean), 1 (sum) or 2 (none)", (long long)in[REDUCTION].integer);
    return flp_torch_check_optional_vector(frame, "class_weight", &in[CLASS_WEIGHT], classes, FLP_TORCH_FLOATS) ||
           flp_torch_check_optional_vector(frame, "token_weight", &in[TOKEN_WEIGHT], l->rows, FLP_TORCH_F32) ||
           flp_torch_check_optional_vector(frame, "g_loss", &in[G_LOSS], in[REDUCTION].integer == FLP_REDUCE_NONE ? l->rows : 1, FLP_TORCH_F32);
}

/* A call of linear_cross_entropy or of its operators for shards, with what its args point to. */
typedef struct {
    flp_torch_linear l;
    flp_linear_cross_entropy_problem problem;
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[8];
    flp_token_parameter parameters[8];
} cross_entropy;

/* Reads the inputs. shard: `first` of flp_torch_read_shard; -1: there are no shards. */
static int read_cross_entropy(flp_torch_frame *frame, int shard, cross_entropy *c)
{
    const flp_torch_value *in = frame->inputs;
    flp_linear_cross_entropy_problem *problem = &c->problem;
    const flp_torch_linear *l = &c->l;

    if (flp_torch_read_linear(frame, &c->l) || (shard >= 0 && flp_torch_read_shard(frame, shard, &c->l)) || check_cross_entropy(frame, l))
        return 1;
    memset(problem, 0, sizeof(*problem)); /* its bytes are the plan's key */
    problem->backward.forward = l->problem;
    problem->reduction = (flp_reduction)in[REDUCTION].integer;
    problem->label_smoothing = in[LABEL_SMOOTHING].number != 0;
    problem->class_weights = flp_torch_dtype_of(&in[CLASS_WEIGHT]);
    problem->token_weights = flp_torch_given(&in[TOKEN_WEIGHT]);
    problem->entropy = in[CE_ENTROPY].integer != 0;
    c->args = (flp_linear_cross_entropy_args){
        FLP_TORCH_LINEAR_ARGS(l),
        .class_weights = flp_torch_data_of(&in[CLASS_WEIGHT]),
        .token_weights = problem->token_weights ? flp_torch_some(in[TOKEN_WEIGHT].data) : NULL,
        .label_smoothing = in[LABEL_SMOOTHING].number,
        .lse_square_scale = in[Z_LOSS].number,
        .g_loss = flp_torch_given(&in[G_LOSS]) ? flp_torch_some(in[G_LOSS].data) : NULL,
        .stream = frame->stream,
    };
    return read_token_loss(frame, l, problem, c->inputs, c->parameters, &c->args);
}

/* Makes the outputs. */
static int make_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad, cross_entropy *c)
{
    const flp_torch_value *in = frame->inputs;
    const bool wanted[3] = { in[CE_WANT_HIDDEN].integer, !main_grad && in[CE_WANT_WEIGHT].integer, in[CE_WANT_BIAS].integer };
    const bool of_rows = c->problem.reduction == FLP_REDUCE_NONE;
    const flp_torch_linear *l = &c->l;
    flp_linear_cross_entropy_args *args = &c->args;
    int64_t one = 1;
    void *grads[3];

    if (flp_torch_make(frame, 0, FLP_F32, of_rows, of_rows ? &l->rows : NULL, of_rows ? &one : NULL, (void **)&args->loss) ||
        flp_torch_make_vector(frame, 1, FLP_F32, l->rows, true, (void **)&args->logp) ||
        flp_torch_make_vector(frame, 2, FLP_F32, l->rows, true, (void **)&args->lse) ||
        flp_torch_make_vector(frame, 3, FLP_F32, l->rows, c->problem.entropy, (void **)&args->entropy) ||
        flp_torch_make_gradients(frame, l, 4, wanted, &c->problem.backward, grads))
        return 1;
    if (main_grad && read_main_grad(frame, l, main_grad, &c->problem.backward, &grads[1]))
        return 1;
    /* Only gradients use these, so a call without gradients leaves them out of its problem, which is the plan's key. */
    if (main_grad || wanted[0] || wanted[1] || wanted[2]) {
        c->problem.backward.memory_budget = in[CE_MEMORY_BUDGET].integer;
        c->problem.backward.grad_filter_eps = in[CE_FILTER_EPS].number;
    }
    args->grad_hidden = grads[0], args->grad_weight = grads[1], args->grad_bias = grads[2];
    args->loss = (float *)flp_torch_some(args->loss);
    return 0;
}

static int plan_cross_entropy(flp_torch_frame *frame, cross_entropy *c, flp_plan **plan)
{
    return flp_torch_find_plan(frame, FLP_TORCH_PLANS_LINEAR_CROSS_ENTROPY, &c->problem, plan) ||
           flp_torch_make_workspace(frame, -1, *plan, c->l.rows, &c->args.workspace, &c->args.workspace_bytes);
}

static int run_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, -1, &c) || make_cross_entropy(frame, main_grad, &c) || plan_cross_entropy(frame, &c, &plan))
        return 1;
    return flp_torch_check_status(frame, flp_linear_cross_entropy_execute(plan, &c.args));
}

static int linear_cross_entropy(flp_torch_frame *frame)
{
    return run_cross_entropy(frame, NULL);
}

static int linear_cross_entropy_accumulate(flp_torch_frame *frame)
{
    return run_cross_entropy(frame, &frame->inputs[CROSS_ENTROPY_INPUTS]);
}

/* ---- the same over shards of the vocabulary */

static int linear_cross_entropy_partials(flp_torch_frame *frame)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, CROSS_ENTROPY_INPUTS, &c) ||
        flp_torch_make_matrix(frame, 0, FLP_F32, c.l.rows, FLP_PARTIAL_FLOATS, false, true, (void **)&c.args.partials))
        return 1;
    if (c.l.rows == 0)
        return 0;
    return plan_cross_entropy(frame, &c, &plan) || flp_torch_check_status(frame, flp_linear_cross_entropy_execute_partials(plan, &c.args));
}

enum { CE_PARTIALS = CROSS_ENTROPY_INPUTS + 2, CE_EVENT, CE_MULTIPROCESSORS_LEFT, CE_MERGE_INPUTS };
_Static_assert(CE_MERGE_INPUTS + 1 <= FLP_TORCH_INPUTS_MAX, "the operator with the most inputs has more than a frame");

static int merge_cross_entropy(flp_torch_frame *frame, const flp_torch_value *main_grad)
{
    flp_plan *plan;
    cross_entropy c;

    if (read_cross_entropy(frame, CROSS_ENTROPY_INPUTS, &c) || flp_torch_read_partials(frame, &frame->inputs[CE_PARTIALS], c.l.rows, &c.args.ranks) ||
        make_cross_entropy(frame, main_grad, &c) || plan_cross_entropy(frame, &c, &plan))
        return 1;
    c.args.partials = (float *)frame->inputs[CE_PARTIALS].data;
    c.args.grad_hidden_event = (void *)(uintptr_t)frame->inputs[CE_EVENT].integer;
    c.args.multiprocessors_left = frame->inputs[CE_MULTIPROCESSORS_LEFT].integer;
    return flp_torch_check_status(frame, flp_linear_cross_entropy_execute_merge(plan, &c.args));
}

static int linear_cross_entropy_merge(flp_torch_frame *frame)
{
    return merge_cross_entropy(frame, NULL);
}

static int linear_cross_entropy_merge_accumulate(flp_torch_frame *frame)
{
    return merge_cross_entropy(frame, &frame->inputs[CE_MERGE_INPUTS]);
}

/* ---- what torch registers */

const flp_torch_operator flp_torch_linear_cross_entropy = { "linear_cross_entropy(" CROSS_ENTROPY
                                                            ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
                                                            CROSS_ENTROPY_INPUTS, 7, linear_cross_entropy };

const flp_torch_operator flp_torch_linear_cross_entropy_accumulate = { "linear_cross_entropy_accumulate(" CROSS_ENTROPY
                                                                       ", Tensor(a!) main_grad) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
                                                                       CROSS_ENTROPY_INPUTS + 1, 7, linear_cross_entropy_accumulate };

const flp_torch_operator flp_torch_linear_cross_entropy_partials = { "linear_cross_entropy_partials(" CROSS_ENTROPY ", " FLP_TORCH_SHARD ") -> Tensor",
                                                                     CROSS_ENTROPY_INPUTS + 2, 1, linear_cross_entropy_partials };

const flp_torch_operator flp_torch_linear_cross_entropy_merge = { "linear_cross_entropy_merge(" CROSS_ENTROPY ", " FLP_TORCH_SHARD
                                                                  ", Tensor partials, " FLP_TORCH_EXCHANGE
                                                                  ") -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
                                                                  CE_MERGE_INPUTS, 7, linear_cross_entropy_merge };

const flp_torch_operator flp_torch_linear_cross_entropy_merge_accumulate = {
    "linear_cross_entropy_merge_accumulate(" CROSS_ENTROPY ", " FLP_TORCH_SHARD ", Tensor partials, " FLP_TORCH_EXCHANGE
    ", Tensor(a!) main_grad) -> (Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor)",
    CE_MERGE_INPUTS + 1, 7, linear_cross_entropy_merge_accumulate
};
