/* Checks the problem of linear_logp's backward field by field and fills in its defaults. */
#include "plan/linear_logp_backward_problem.h"

#include <float.h>
#include <inttypes.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "plan/linear_budget.h"
#include "plan/linear_logp_problem.h"

#define AT(field) offsetof(flp_linear_logp_backward_problem, field)

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(forward.rows), .value_name = "rows" },
    { "d", FLP_PART_SIZE, AT(forward.hidden), .value_name = "hidden" },
    { "v", FLP_PART_SIZE, AT(forward.vocab), .value_name = "vocab" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "dv", FLP_PART_WORD, AT(forward.weight_layout), .value = FLP_HIDDEN_VOCAB },
    { "hs", FLP_PART_SIZE, AT(forward.hidden_stride), .value_name = "stride" },
    { "ws", FLP_PART_SIZE, AT(forward.weight_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(forward.pointer_alignment), .value_name = "bytes" },
    { "bias_", FLP_PART_DTYPE, AT(forward.bias_dtype), .value_name = "dtype" },
    { "target_i32", FLP_PART_WORD, AT(forward.target_dtype), .value = FLP_I32 },
    { "softcap", FLP_PART_NUMBER, AT(forward.softcap), .value_name = "number" },
    { "exact", FLP_PART_WORD, AT(forward.precision), .value = FLP_PRECISION_EXACT },
    { "gh_", FLP_PART_DTYPE, AT(grad_hidden), .value_name = "dtype" },
    { "gw_", FLP_PART_DTYPE, AT(grad_weight), .value_name = "dtype" },
    { "gb_", FLP_PART_DTYPE, AT(grad_bias), .value_name = "dtype" },
    { "ghs", FLP_PART_SIZE, AT(grad_hidden_stride), .value_name = "stride" },
    { "gws", FLP_PART_SIZE, AT(grad_weight_stride), .value_name = "stride" },
    { "acc_hidden", FLP_PART_BIT, AT(accumulate), .value = FLP_ACCUMULATE_HIDDEN },
    { "acc_weight", FLP_PART_BIT, AT(accumulate), .value = FLP_ACCUMULATE_WEIGHT },
    { "acc_bias", FLP_PART_BIT, AT(accumulate), .value = FLP_ACCUMULATE_BIAS },
    { "g_lse", FLP_PART_WORD, AT(g_lse), .value = 1 },
    { "g_entropy", FLP_PART_WORD, AT(g_entropy), .value = 1 },
    { "budget", FLP_PART_SIZE, AT(memory_budget), .value_name = "bytes" },
    { "filter", FLP_PART_NUMBER, AT(grad_filter_eps), .value_name = "number" },
    { "forward", FLP_PART_WORD, AT(with_forward), .value = 1 },
    { "sm_90a", FLP_PART_WORD, AT(forward.backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(forward.backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(forward.backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_linear_logp_backward_problem_syntax = { AT(forward.dtype), sizes, options };

/* One problem has one string, so what only the forward writes is not there. */
static flp_status check_forward(const flp_linear_logp_problem *forward)
{
    const char *field = forward->argmax ? "argmax" : "entropy";

    if (!forward->argmax && !forward->entropy)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "forward.%s: got %d, wanted 0: only linear_logp itself writes it", field,
                           forward->argmax ? forward->argmax : forward->entropy);
}

static flp_status check_gradient(const char *field, flp_dtype dtype)
{
    if (dtype == FLP_NONE || flp_problem_check_float(field, dtype) == FLP_OK)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32", field, (int)dtype);
}

static flp_status check_gradients(const flp_linear_logp_backward_problem *problem)
{
    flp_status status = check_gradient("grad_hidden", problem->grad_hidden);

    if (status == FLP_OK)
        status = check_gradient("grad_weight", problem->grad_weight);
    if (status == FLP_OK)
        status = check_gradient("grad_bias", problem->grad_bias);
    if (status == FLP_OK && problem->grad_bias != FLP_NONE && problem->forward.bias_dtype == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_bias: got %s, wanted FLP_NONE: the forward's bias_dtype is FLP_NONE",
                                 flp_dtype_name(problem->grad_bias));
    if (status == FLP_OK && problem->grad_hidden == FLP_NONE && problem->grad_weight == FLP_NONE && problem->grad_bias == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_hidden, grad_weight, grad_bias: got FLP_NONE for all, wanted one of them");
    return status;
}

static flp_status check_options(const flp_linear_logp_backward_problem *problem)
{
    const unsigned possible = (problem->grad_hidden ? FLP_ACCUMULATE_HIDDEN : 0u) | (problem->grad_weight ? FLP_ACCUMULATE_WEIGHT : 0u) |
                              (problem->grad_bias ? FLP_ACCUMULATE_BIAS : 0u);
    flp_status status = flp_problem_check_flag("g_lse", problem->g_lse);

    if (status == FLP_OK)
        status = flp_problem_check_flag("g_entropy", problem->g_entropy);
    if (status == FLP_OK)
        status = flp_problem_check_flag("with_forward", problem->with_forward);
    if (status == FLP_OK && !(problem->grad_filter_eps >= 0 && problem->grad_filter_eps <= FLT_MAX))
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_filter_eps: got %g, wanted 0 or a finite number above", problem->grad_filter_eps);
    if (status == FLP_OK && problem->accumulate & ~possible)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "accumulate: got 0x%x, wanted no bits but 0x%x, of the gradients asked for",
                                 problem->accumulate, possible);
    return status;
}

/* like: the stride of the input whose gradient it is. */
static flp_status fill_stride(const char *field, flp_dtype dtype, int64_t rows, int64_t columns, int64_t like, int64_t *stride)
{
    if (dtype == FLP_NONE && *stride != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted 0: the gradient is not asked for", field, *stride);
    if (dtype == FLP_NONE)
        return FLP_OK;
    if (*stride == 0)
        *stride = like;
    return flp_problem_fill_stride(field, rows, columns, flp_dtype_bytes(dtype), stride);
}

static flp_status fill_strides(flp_linear_logp_backward_problem *normal)
{
    const flp_linear_logp_problem *forward = &normal->forward;
    const int transposed = forward->weight_layout == FLP_HIDDEN_VOCAB;
    flp_status status = fill_stride("grad_hidden_stride", normal->grad_hidden, forward->rows, forward->hidden, forward->hidden_stride,
                                    &normal->grad_hidden_stride);

    if (status == FLP_OK)
        status = fill_stride("grad_weight_stride", normal->grad_weight, transposed ? forward->hidden : forward->vocab,
                             transposed ? forward->vocab : forward->hidden, forward->weight_stride, &normal->grad_weight_stride);
    return status;
}

flp_status flp_linear_logp_backward_problem_fill(const flp_linear_logp_backward_problem *problem, flp_linear_logp_backward_problem *normal)
{
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_linear_logp_backward_problem");
    *normal = *problem;
    status = check_forward(&problem->forward);
    if (status == FLP_OK)
        status = flp_linear_logp_problem_normalize(&problem->forward, &normal->forward);
    if (status == FLP_OK)
        status = check_gradients(problem);
    if (status == FLP_OK)
        status = check_options(problem);
    if (status == FLP_OK)
        status = fill_strides(normal);
    return status;
}

/* A budget of 0 stays: the default is another for other rows, and a problem with a larger bound on them is the same to dispatch. */
flp_status flp_linear_logp_backward_problem_normalize(const void *given, void *filled)
{
    flp_linear_logp_backward_problem *normal = filled;
    flp_status status = flp_linear_logp_backward_problem_fill(given, normal);
    flp_linear_work work;

    if (status != FLP_OK)
        return status;
    work = flp_linear_budget_backward_work(normal);
    return flp_linear_budget_check(&work);
}

/* Two-valued fields, one bit each; 0 where one of them has another value. */
static int pack_flags(const flp_linear_logp_backward_problem *problem, unsigned *flags)
{
    const flp_linear_logp_problem *forward = &problem->forward;
    const unsigned layout = (unsigned)forward->weight_layout, precision = (unsigned)forward->precision;
    const unsigned g_lse = (unsigned)problem->g_lse, g_entropy = (unsigned)problem->g_entropy;

    *flags = layout | precision << 1 | g_lse << 2 | g_entropy << 3 | problem->accumulate << 4;
    return layout <= 1 && precision <= 1 && g_lse <= 1 && g_entropy <= 1 && problem->accumulate <= 7 && !forward->argmax && !forward->entropy &&
           !problem->with_forward;
}

int flp_linear_logp_backward_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_linear_logp_backward_problem *problem = given;
    const flp_linear_logp_problem *forward = &problem->forward;
    unsigned flags;
    const int known = pack_flags(problem, &flags);
    const unsigned choices[] = {
        (unsigned)forward->dtype, (unsigned)forward->bias_dtype, (unsigned)(forward->target_dtype ? forward->target_dtype : FLP_I64),
        (unsigned)forward->backend, (unsigned)problem->grad_hidden, (unsigned)problem->grad_weight, (unsigned)problem->grad_bias, flags
    };
    const int64_t weight_columns = forward->weight_layout == FLP_HIDDEN_VOCAB ? forward->vocab : forward->hidden;
    const int64_t hidden_stride = forward->hidden_stride ? forward->hidden_stride : forward->hidden;
    const int64_t weight_stride = forward->weight_stride ? forward->weight_stride : weight_columns;

    key->sizes[0] = (uint64_t)forward->hidden;
    key->sizes[1] = (uint64_t)forward->vocab;
    key->sizes[2] = (uint64_t)hidden_stride;
    key->sizes[3] = (uint64_t)weight_stride;
    memcpy(&key->sizes[4], &forward->softcap, sizeof(double));
    key->sizes[5] = (uint64_t)(problem->grad_hidden_stride || !problem->grad_hidden ? problem->grad_hidden_stride : hidden_stride);
    key->sizes[6] = (uint64_t)(problem->grad_weight_stride || !problem->grad_weight ? problem->grad_weight_stride : weight_stride);
    key->sizes[7] = (uint64_t)problem->memory_budget;
    memcpy(&key->sizes[8], &problem->grad_filter_eps, sizeof(double));
    return known && flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}
