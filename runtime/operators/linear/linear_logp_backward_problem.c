/* The problem of linear_logp's backward: its fields, a row each, and what holds between them. */
#include "operators/linear/linear_logp_backward_problem.h"

#include <float.h>
#include <inttypes.h>

#include "base/dtype.h"
#include "base/status.h"
#include "operators/linear/linear_budget.h"
#include "operators/linear/linear_logp_problem.h"

#define AT(field) offsetof(flp_linear_logp_backward_problem, field)

/* One problem has one string, so what only the forward writes is not there. */
const flp_field flp_linear_logp_backward_field_forward[] = {
    { "forward.argmax", FLP_FIELD_CHOICE, AT(forward.argmax), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0: only linear_logp itself writes it" },
    { "forward.entropy", FLP_FIELD_CHOICE, AT(forward.entropy), .allowed = FLP_FIELD_ALLOWS(0), .wanted = "0: only linear_logp itself writes it" },
    { .name = NULL }
};
const flp_field flp_linear_logp_backward_field_gradients[] = {
    { "grad_hidden", FLP_FIELD_DTYPE, AT(grad_hidden), .prefix = "gh_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_weight", FLP_FIELD_DTYPE, AT(grad_weight), .prefix = "gw_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_bias", FLP_FIELD_DTYPE, AT(grad_bias), .prefix = "gb_", FLP_FIELD_FLOAT_OR_NONE },
    { "grad_hidden_stride", FLP_FIELD_STRIDE, AT(grad_hidden_stride), .prefix = "ghs", .value_name = "stride", .rows_at = AT(forward.rows),
      .columns_at = AT(forward.hidden), .dtype_at = AT(grad_hidden), .like_at = AT(forward.hidden_stride) },
    { "grad_weight_stride", FLP_FIELD_STRIDE, AT(grad_weight_stride), .prefix = "gws", .value_name = "stride", .rows_at = AT(forward.vocab),
      .columns_at = AT(forward.hidden), .transposed_at = AT(forward.weight_layout), .dtype_at = AT(grad_weight), .like_at = AT(forward.weight_stride) },
    { "accumulate", FLP_FIELD_BITS, AT(accumulate), .words = { "acc_hidden", "acc_weight", "acc_bias" }, .allowed = 255 },
    { .name = NULL }
};
_Static_assert(FLP_ACCUMULATE_HIDDEN == 1u << 0 && FLP_ACCUMULATE_WEIGHT == 1u << 1 && FLP_ACCUMULATE_BIAS == 1u << 2, "bits in the order of their words");
const flp_field flp_linear_logp_backward_field_budget[] = { { "memory_budget", FLP_FIELD_COUNT, AT(memory_budget), .prefix = "budget", .value_name = "bytes" },
                                                            { "grad_filter_eps", FLP_FIELD_NUMBER, AT(grad_filter_eps), .prefix = "filter",
                                                              .value_name = "number", .least = 0, .most = FLT_MAX, .wanted = "0 or a finite number above" },
                                                            { .name = NULL } };
static const flp_field upstream[] = { { "g_lse", FLP_FIELD_CHOICE, AT(g_lse), .words = { [1] = "g_lse" }, FLP_FIELD_FLAG },
                                      { "g_entropy", FLP_FIELD_CHOICE, AT(g_entropy), .words = { [1] = "g_entropy" }, FLP_FIELD_FLAG },
                                      { .name = NULL } };
static const flp_field with_forward[] = { { "with_forward", FLP_FIELD_CHOICE, AT(with_forward), .words = { [1] = "forward" }, FLP_FIELD_FLAG, .takes_plan = 1 },
                                          { .name = NULL } };

const flp_field *const flp_linear_logp_backward_fields[] = { flp_linear_logp_field_inputs,
                                                             flp_linear_logp_backward_field_forward,
                                                             flp_linear_logp_field_precision,
                                                             flp_linear_logp_backward_field_gradients,
                                                             upstream,
                                                             flp_linear_logp_backward_field_budget,
                                                             with_forward,
                                                             flp_linear_logp_field_backend,
                                                             NULL };

static flp_status check_stride(const char *field, flp_dtype dtype, int64_t stride)
{
    if (dtype != FLP_NONE || stride == 0)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted 0: the gradient is not asked for", field, stride);
}

static flp_status check_accumulate(const flp_linear_logp_backward_problem *problem)
{
    const unsigned possible = (problem->grad_hidden ? FLP_ACCUMULATE_HIDDEN : 0u) | (problem->grad_weight ? FLP_ACCUMULATE_WEIGHT : 0u) |
                              (problem->grad_bias ? FLP_ACCUMULATE_BIAS : 0u);

    if (!(problem->accumulate & ~possible))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "accumulate: got 0x%x, wanted no bits but 0x%x, of the gradients asked for", problem->accumulate, possible);
}

flp_status flp_linear_logp_backward_problem_check_gradients(flp_linear_logp_backward_problem *normal)
{
    flp_status status = flp_linear_logp_problem_check(&normal->forward);

    if (status == FLP_OK && normal->grad_bias != FLP_NONE && normal->forward.bias_dtype == FLP_NONE)
        status =
            flp_status_fail(FLP_BAD_ARGUMENT, "grad_bias: got %s, wanted FLP_NONE: the forward's bias_dtype is FLP_NONE", flp_dtype_name(normal->grad_bias));
    if (status == FLP_OK && normal->grad_hidden == FLP_NONE && normal->grad_weight == FLP_NONE && normal->grad_bias == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden, grad_weight, grad_bias: got FLP_NONE for all, wanted one of them");
    if (status == FLP_OK)
        status = check_accumulate(normal);
    if (status == FLP_OK)
        status = check_stride("grad_hidden_stride", normal->grad_hidden, normal->grad_hidden_stride);
    return status == FLP_OK ? check_stride("grad_weight_stride", normal->grad_weight, normal->grad_weight_stride) : status;
}

flp_status flp_linear_logp_backward_problem_check(void *normal)
{
    flp_status status = flp_linear_logp_backward_problem_check_gradients(normal);
    flp_linear_work work;

    if (status != FLP_OK)
        return status;
    work = flp_linear_budget_backward_work(normal);
    return flp_linear_budget_check(&work);
}
