/* Checks logits_logp's arguments and makes a call of them. */
#include "operators/logits/logits_logp_args.h"

#include <stddef.h>

#include "base/status.h"

#define AT(argument) offsetof(flp_logits_logp_args, argument)
#define ASKED(field) offsetof(flp_logits_logp_problem, field)
#define BACKWARD_AT(argument) offsetof(flp_logits_logp_backward_args, argument)
#define BACKWARD_ASKED(field) offsetof(flp_logits_logp_backward_problem, field)

static const flp_argument forward[] = { { "logits", AT(logits), .decides = 1 },
                                        { "target", AT(target), .dtype_at = ASKED(target_dtype) },
                                        { "row_index", AT(row_index), .bytes = sizeof(int64_t), .is_optional = 1 },
                                        { "row_temperature", AT(row_temperature), .bytes = sizeof(float), .is_optional = 1 },
                                        { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1 },
                                        { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1 },
                                        { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1 },
                                        { "argmax", AT(argmax), .bytes = sizeof(int32_t), .asked_at = ASKED(argmax), .is_optional = 1 },
                                        { .name = NULL } };
static const flp_argument *const forward_arrays[] = { forward, NULL };
const flp_arguments flp_logits_logp_arguments = {
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
static const flp_argument backward[] = { { "logits", BACKWARD_AT(logits), .decides = 1 },
                                         { "target", BACKWARD_AT(target), .dtype_at = BACKWARD_ASKED(target_dtype) },
                                         { "row_index", BACKWARD_AT(row_index), .bytes = sizeof(int64_t), .is_optional = 1 },
                                         { "row_temperature", BACKWARD_AT(row_temperature), .bytes = sizeof(float), .is_optional = 1 },
                                         { "grad_logits", BACKWARD_AT(grad_logits), .decides = 1 },
                                         { "g_logp", BACKWARD_AT(g_logp), .bytes = sizeof(float) },
                                         { "g_lse", BACKWARD_AT(g_lse), .bytes = sizeof(float), .is_optional = 1 },
                                         { "g_entropy", BACKWARD_AT(g_entropy), .bytes = sizeof(float), .asked_at = BACKWARD_ASKED(entropy), .is_optional = 1 },
                                         { "logp", BACKWARD_AT(logp), .bytes = sizeof(float), .is_optional = 1 },
                                         { "lse", BACKWARD_AT(lse), .bytes = sizeof(float), .optional_at = BACKWARD_ASKED(fused) },
                                         { "entropy", BACKWARD_AT(entropy), .bytes = sizeof(float), .asked_at = BACKWARD_ASKED(entropy),
                                           .optional_at = BACKWARD_ASKED(fused) },
                                         { .name = NULL } };
static const flp_argument *const backward_arrays[] = { backward, NULL };
const flp_arguments flp_logits_logp_backward_arguments = {
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

flp_status flp_logits_logp_args_fill(const flp_logits_logp_problem *normal, const flp_logits_logp_args *args, flp_logits_logp_call *call)
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

flp_status flp_logits_logp_args_fill_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args,
                                              flp_logits_logp_call *call)
{
    flp_status status;

    fill_backward(normal, args, call);
    status = check_index(call);
    return status == FLP_OK && args->rows > 0 ? check_in_place(normal, call) : status;
}
