/* Checks the problem of linear_cross_entropy field by field and fills in its defaults. */
#include "plan/linear_cross_entropy_problem.h"

#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "plan/linear_logp_backward_problem.h"
#include "plan/linear_logp_problem.h"
#include "plan/problem.h"

#define AT(field) offsetof(flp_linear_cross_entropy_problem, field)

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(backward.forward.rows), .value_name = "rows" },
    { "d", FLP_PART_SIZE, AT(backward.forward.hidden), .value_name = "hidden" },
    { "v", FLP_PART_SIZE, AT(backward.forward.vocab), .value_name = "vocab" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "dv", FLP_PART_WORD, AT(backward.forward.weight_layout), .value = FLP_HIDDEN_VOCAB },
    { "hs", FLP_PART_SIZE, AT(backward.forward.hidden_stride), .value_name = "stride" },
    { "ws", FLP_PART_SIZE, AT(backward.forward.weight_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(backward.forward.pointer_alignment), .value_name = "bytes" },
    { "bias_", FLP_PART_DTYPE, AT(backward.forward.bias_dtype), .value_name = "dtype" },
    { "target_i32", FLP_PART_WORD, AT(backward.forward.target_dtype), .value = FLP_I32 },
    { "softcap", FLP_PART_NUMBER, AT(backward.forward.softcap), .value_name = "number" },
    { "entropy", FLP_PART_WORD, AT(entropy), .value = 1 },
    { "exact", FLP_PART_WORD, AT(backward.forward.precision), .value = FLP_PRECISION_EXACT },
    { "gh_", FLP_PART_DTYPE, AT(backward.grad_hidden), .value_name = "dtype" },
    { "gw_", FLP_PART_DTYPE, AT(backward.grad_weight), .value_name = "dtype" },
    { "gb_", FLP_PART_DTYPE, AT(backward.grad_bias), .value_name = "dtype" },
    { "ghs", FLP_PART_SIZE, AT(backward.grad_hidden_stride), .value_name = "stride" },
    { "gws", FLP_PART_SIZE, AT(backward.grad_weight_stride), .value_name = "stride" },
    { "acc_hidden", FLP_PART_BIT, AT(backward.accumulate), .value = FLP_ACCUMULATE_HIDDEN },
    { "acc_weight", FLP_PART_BIT, AT(backward.accumulate), .value = FLP_ACCUMULATE_WEIGHT },
    { "acc_bias", FLP_PART_BIT, AT(backward.accumulate), .value = FLP_ACCUMULATE_BIAS },
    { "budget", FLP_PART_SIZE, AT(backward.memory_budget), .value_name = "bytes" },
    { "filter", FLP_PART_NUMBER, AT(backward.grad_filter_eps), .value_name = "number" },
    { "sum", FLP_PART_WORD, AT(reduction), .value = FLP_REDUCE_SUM },
    { "none", FLP_PART_WORD, AT(reduction), .value = FLP_REDUCE_NONE },
    { "smoothing", FLP_PART_WORD, AT(label_smoothing), .value = 1 },
    { "classes_", FLP_PART_DTYPE, AT(class_weights), .value_name = "dtype" },
    { "tokens", FLP_PART_WORD, AT(token_weights), .value = 1 },
    { "loss_", FLP_PART_NAME, AT(token_loss), .value_name = "name" },
    { "sm_90a", FLP_PART_WORD, AT(backward.forward.backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(backward.forward.backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(backward.forward.backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_linear_cross_entropy_problem_syntax = { AT(backward.forward.dtype), sizes, options };

int flp_linear_cross_entropy_problem_has_gradients(const flp_linear_cross_entropy_problem *problem)
{
    const flp_linear_logp_backward_problem *backward = &problem->backward;

    return backward->grad_hidden != FLP_NONE || backward->grad_weight != FLP_NONE || backward->grad_bias != FLP_NONE;
}

const char *flp_linear_cross_entropy_problem_loss(const flp_linear_cross_entropy_problem *normal)
{
    if (normal->token_loss[0])
        return normal->token_loss;
    return normal->label_smoothing ? "smoothed_cross_entropy" : "cross_entropy";
}

/* The loss alone: what belongs to gradients has no meaning. */
static flp_status normalize_forward(const flp_linear_logp_backward_problem *backward, flp_linear_logp_backward_problem *normal)
{
    const struct {
        const char *name;
        int64_t value;
    } fields[] = {
        { "forward.argmax", backward->forward.argmax }, { "forward.entropy", backward->forward.entropy },
        { "grad_hidden_stride", backward->grad_hidden_stride }, { "grad_weight_stride", backward->grad_weight_stride },
        { "accumulate", (int64_t)backward->accumulate }, { "memory_budget", backward->memory_budget }
    };

    if (backward->grad_filter_eps != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.grad_filter_eps: got %g, wanted 0: no gradient is asked for", backward->grad_filter_eps);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].value != 0)
            return flp_status_fail(FLP_BAD_ARGUMENT, "backward.%s: got %" PRId64 ", wanted 0: no gradient is asked for", fields[i].name,
                                   fields[i].value);
    return flp_linear_logp_problem_normalize(&backward->forward, &normal->forward);
}

static flp_status normalize_backward(const flp_linear_cross_entropy_problem *problem, flp_linear_logp_backward_problem *normal)
{
    const flp_linear_logp_backward_problem *backward = &problem->backward;

    if (backward->with_forward)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.with_forward: got %d, wanted 0: it is in the same call", backward->with_forward);
    if (backward->g_lse || backward->g_entropy)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.g_lse, backward.g_entropy: got %d, %d, wanted 0, 0: the loss decides",
                               backward->g_lse, backward->g_entropy);
    if (flp_linear_cross_entropy_problem_has_gradients(problem))
        return flp_linear_logp_backward_problem_fill(backward, normal);
    return normalize_forward(backward, normal);
}

static flp_status check_options(const flp_linear_cross_entropy_problem *problem)
{
    flp_status status = flp_problem_check_flag("label_smoothing", problem->label_smoothing);

    if (status == FLP_OK)
        status = flp_problem_check_flag("token_weights", problem->token_weights);
    if (status == FLP_OK)
        status = flp_problem_check_flag("entropy", problem->entropy);
    if (status == FLP_OK && problem->reduction != FLP_REDUCE_MEAN && problem->reduction != FLP_REDUCE_SUM &&
        problem->reduction != FLP_REDUCE_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "reduction: got %d, wanted FLP_REDUCE_MEAN, FLP_REDUCE_SUM or FLP_REDUCE_NONE",
                                 (int)problem->reduction);
    if (status == FLP_OK && problem->reserved != 0)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "reserved: got %d, wanted 0", problem->reserved);
    if (status == FLP_OK && problem->class_weights != FLP_NONE && flp_problem_check_float("class_weights", problem->class_weights) != FLP_OK)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "class_weights: got %d, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32",
                                 (int)problem->class_weights);
    return status;
}

static flp_status fill_token_loss(const flp_linear_cross_entropy_problem *problem, char name[FLP_TOKEN_LOSS_NAME_BYTES])
{
    const size_t length = strnlen(problem->token_loss, FLP_TOKEN_LOSS_NAME_BYTES);

    if (length == FLP_TOKEN_LOSS_NAME_BYTES || strspn(problem->token_loss, "abcdefghijklmnopqrstuvwxyz0123456789_") != length ||
        (length > 0 && (problem->token_loss[0] < 'a' || problem->token_loss[0] > 'z')))
        return flp_status_fail(FLP_BAD_ARGUMENT, "token_loss: got \"%.*s\", wanted at most %d letters a to z, digits and _, a letter first",
                               (int)length, problem->token_loss, FLP_TOKEN_LOSS_NAME_BYTES - 1);
    if (length > 0 && problem->label_smoothing)
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got 1, wanted 0: %s says what the loss is", problem->token_loss);
    memset(name, 0, FLP_TOKEN_LOSS_NAME_BYTES);
    memcpy(name, problem->token_loss, length);
    return FLP_OK;
}

flp_status flp_linear_cross_entropy_problem_normalize(const void *given, void *filled)
{
    const flp_linear_cross_entropy_problem *problem = given;
    flp_linear_cross_entropy_problem *normal = filled;
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_linear_cross_entropy_problem");
    *normal = *problem;
    status = normalize_backward(problem, &normal->backward);
    if (status == FLP_OK)
        status = check_options(problem);
    return status == FLP_OK ? fill_token_loss(problem, normal->token_loss) : status;
}

int flp_linear_cross_entropy_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_linear_cross_entropy_problem *problem = given;
    const unsigned reduction = (unsigned)problem->reduction, classes = (unsigned)problem->class_weights;
    const unsigned smoothing = (unsigned)problem->label_smoothing, tokens = (unsigned)problem->token_weights;
    const unsigned entropy = (unsigned)problem->entropy;
    const size_t length = strnlen(problem->token_loss, FLP_TOKEN_LOSS_NAME_BYTES);
    int known = flp_linear_logp_backward_problem_pack(&problem->backward, key);

    key->choices = key->choices << 7 | reduction | classes << 2 | smoothing << 4 | tokens << 5 | entropy << 6;
    memcpy(&key->sizes[9], problem->token_loss, length);
    return known && reduction <= FLP_REDUCE_NONE && classes <= FLP_F32 && smoothing <= 1 && tokens <= 1 && entropy <= 1 && problem->reserved == 0 &&
           length < FLP_TOKEN_LOSS_NAME_BYTES;
}
_Static_assert((FLP_DISPATCH_SIZES - 9) * sizeof(uint64_t) == FLP_TOKEN_LOSS_NAME_BYTES, "a dispatch key holds a token loss' name");
