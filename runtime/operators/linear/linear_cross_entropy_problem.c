/* The problem of linear_cross_entropy: its fields, a row each, and what holds between them. */
#include "operators/linear/linear_cross_entropy_problem.h"

#include <inttypes.h>
#include <string.h>

#include "base/status.h"
#include "operators/linear/linear_logp_backward_problem.h"
#include "operators/linear/linear_logp_problem.h"

#define AT(field) offsetof(flp_linear_cross_entropy_problem, field)

/* What the loss decides; check_gradients refuses more than 0. */
static const flp_field upstream[] = { { "backward.g_lse", FLP_FIELD_CHOICE, AT(backward.g_lse), FLP_FIELD_FLAG },
                                      { "backward.g_entropy", FLP_FIELD_CHOICE, AT(backward.g_entropy), FLP_FIELD_FLAG },
                                      { "backward.with_forward", FLP_FIELD_CHOICE, AT(backward.with_forward), .allowed = FLP_FIELD_ALLOWS(0),
                                        .wanted = "0: it is in the same call" },
                                      { "reserved", FLP_FIELD_CHOICE, AT(reserved), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0" },
                                      { .name = NULL } };
static const flp_field outputs[] = { { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG }, { .name = NULL } };
static const flp_field loss[] = { { "reduction", FLP_FIELD_CHOICE, AT(reduction), .words = { [FLP_REDUCE_SUM] = "sum", [FLP_REDUCE_NONE] = "none" },
                                    .allowed = FLP_FIELD_ALLOWS(FLP_REDUCE_MEAN) | FLP_FIELD_ALLOWS(FLP_REDUCE_SUM) | FLP_FIELD_ALLOWS(FLP_REDUCE_NONE),
                                    .wanted = "FLP_REDUCE_MEAN, FLP_REDUCE_SUM or FLP_REDUCE_NONE" },
                                  { "label_smoothing", FLP_FIELD_CHOICE, AT(label_smoothing), .words = { [1] = "smoothing" }, FLP_FIELD_FLAG },
                                  { "class_weights", FLP_FIELD_DTYPE, AT(class_weights), .prefix = "classes_", FLP_FIELD_FLOAT_OR_NONE },
                                  { "token_weights", FLP_FIELD_CHOICE, AT(token_weights), .words = { [1] = "tokens" }, FLP_FIELD_FLAG },
                                  { "token_loss", FLP_FIELD_NAME, AT(token_loss), .prefix = "loss_", .value_name = "name" },
                                  { .name = NULL } };

const flp_field *const flp_linear_cross_entropy_fields[] = { flp_linear_logp_field_inputs,
                                                             outputs,
                                                             flp_linear_logp_field_precision,
                                                             flp_linear_logp_backward_field_forward,
                                                             upstream,
                                                             flp_linear_logp_backward_field_gradients,
                                                             flp_linear_logp_backward_field_budget,
                                                             loss,
                                                             flp_linear_logp_field_backend,
                                                             NULL };

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
static flp_status check_without_gradients(const flp_linear_logp_backward_problem *backward)
{
    const struct {
        const char *name;
        int64_t value;
    } fields[] = { { "grad_hidden_stride", backward->grad_hidden_stride },
                   { "grad_weight_stride", backward->grad_weight_stride },
                   { "accumulate", (int64_t)backward->accumulate },
                   { "memory_budget", backward->memory_budget } };

    if (backward->grad_filter_eps != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.grad_filter_eps: got %g, wanted 0: no gradient is asked for", backward->grad_filter_eps);
    for (size_t i = 0; i < sizeof(fields) / sizeof(*fields); i++)
        if (fields[i].value != 0)
            return flp_status_fail(FLP_BAD_ARGUMENT, "backward.%s: got %" PRId64 ", wanted 0: no gradient is asked for", fields[i].name, fields[i].value);
    return FLP_OK;
}

static flp_status check_gradients(flp_linear_cross_entropy_problem *normal)
{
    flp_linear_logp_backward_problem *backward = &normal->backward;
    flp_status status;

    if (backward->g_lse || backward->g_entropy)
        return flp_status_fail(FLP_BAD_ARGUMENT, "backward.g_lse, backward.g_entropy: got %d, %d, wanted 0, 0: the loss decides", backward->g_lse,
                               backward->g_entropy);
    if (flp_linear_cross_entropy_problem_has_gradients(normal))
        return flp_linear_logp_backward_problem_check_gradients(backward);
    status = check_without_gradients(backward);
    return status == FLP_OK ? flp_linear_logp_problem_check(&backward->forward) : status;
}

flp_status flp_linear_cross_entropy_problem_check(void *filled)
{
    flp_linear_cross_entropy_problem *normal = filled;
    char *name = normal->token_loss;
    const size_t length = strnlen(name, FLP_TOKEN_LOSS_NAME_BYTES);
    flp_status status = check_gradients(normal);

    if (status != FLP_OK)
        return status;
    if (length == FLP_TOKEN_LOSS_NAME_BYTES || strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") != length ||
        (length > 0 && (name[0] < 'a' || name[0] > 'z')))
        return flp_status_fail(FLP_BAD_ARGUMENT, "token_loss: got \"%.*s\", wanted at most %d letters a to z, digits and _, a letter first", (int)length, name,
                               FLP_TOKEN_LOSS_NAME_BYTES - 1);
    if (length > 0 && normal->label_smoothing)
        return flp_status_fail(FLP_BAD_ARGUMENT, "label_smoothing: got 1, wanted 0: %s says what the loss is", name);
    memset(name + length, 0, FLP_TOKEN_LOSS_NAME_BYTES - length);
    return FLP_OK;
}
