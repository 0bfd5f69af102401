/* Checks logits_logp's arguments and makes a call of them. */
#include "ops/logits_logp_args.h"

#include "base/dtype.h"
#include "base/status.h"
#include "ops/arguments.h"
#include "plan/problem.h"

/* What both directions have. */
static flp_status check_scalars(const flp_logits_logp_call *call, int64_t most, double temperature, unsigned flags)
{
    flp_status status = flp_arguments_check_rows(call->rows, most);

    if (status == FLP_OK)
        status = flp_arguments_check_flags(flags, FLP_SCATTER, call->ignore_index);
    if (status == FLP_OK && call->scatter && !call->row_index)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "flags: got FLP_SCATTER without a row_index, wanted both");
    if (status == FLP_OK && call->row_index)
        status = flp_problem_check_range("logits_rows", call->logits_rows, 0, FLP_PROBLEM_ROWS_MAX);
    return status == FLP_OK ? flp_arguments_check_temperature(temperature, call->row_temperature) : status;
}

static flp_status check_inputs(const flp_logits_logp_call *call, int pointer_alignment)
{
    flp_status status = flp_arguments_check_address("logits", call->logits, pointer_alignment);

    if (status == FLP_OK)
        status = flp_arguments_check_address("target", call->target, flp_dtype_bytes(call->target_dtype));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("row_index", call->row_index, sizeof(int64_t));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("row_temperature", call->row_temperature, sizeof(float));
    return status;
}

static flp_status check_results(const flp_logits_logp_call *call)
{
    flp_status status = flp_arguments_check_optional("logp", call->logp, sizeof(float));

    if (status == FLP_OK)
        status = flp_arguments_check_optional("lse", call->lse, sizeof(float));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("entropy", call->entropy, sizeof(float));
    return status == FLP_OK ? flp_arguments_check_optional("argmax", call->argmax, sizeof(int32_t)) : status;
}

flp_status flp_logits_logp_args_check(const flp_logits_logp_problem *normal, const flp_logits_logp_args *args, flp_logits_logp_call *call)
{
    flp_status status;

    *call = (flp_logits_logp_call){
        .dtype = normal->dtype, .target_dtype = normal->target_dtype, .rows = args->rows, .vocab = normal->vocab,
        .logits_stride = normal->logits_stride, .softcap = normal->softcap, .temperature = flp_arguments_temperature(args->temperature),
        .logits = args->logits, .target = args->target, .row_index = args->row_index, .logits_rows = args->logits_rows,
        .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags), .scatter = (args->flags & FLP_SCATTER) != 0,
        .row_temperature = args->row_temperature,
        .logp = args->logp, .lse = args->lse, .entropy = args->entropy, .argmax = args->argmax
    };
    status = check_scalars(call, normal->rows, args->temperature, args->flags);
    if (status != FLP_OK || args->rows == 0)
        return status;
    status = check_inputs(call, normal->pointer_alignment);
    if (status == FLP_OK)
        status = check_results(call);
    if (status == FLP_OK && !call->logp && !call->lse && !call->entropy && !call->argmax)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "logp, lse, entropy, argmax: got NULL for all, wanted a result");
    if (status == FLP_OK && !normal->entropy)
        status = flp_arguments_check_absent("entropy", args->entropy, "entropy is 0");
    if (status == FLP_OK && !normal->argmax)
        status = flp_arguments_check_absent("argmax", args->argmax, "argmax is 0");
    return status;
}

/* lse and entropy are results of a fused call, else given. */
static void fill_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args,
                          flp_logits_logp_call *call)
{
    *call = (flp_logits_logp_call){
        .dtype = normal->dtype, .target_dtype = normal->target_dtype, .rows = args->rows, .vocab = normal->vocab,
        .logits_stride = normal->logits_stride, .grad_stride = normal->grad_stride, .softcap = normal->softcap,
        .temperature = flp_arguments_temperature(args->temperature), .logits = args->logits, .target = args->target,
        .row_index = args->row_index, .logits_rows = args->logits_rows,
        .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags),
        .scatter = (args->flags & FLP_SCATTER) != 0, .row_temperature = args->row_temperature,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .grad_logits = args->grad_logits
    };
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

static flp_status check_upstream(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args)
{
    flp_status status = flp_arguments_check_address("g_logp", args->g_logp, sizeof(float));

    if (status == FLP_OK)
        status = flp_arguments_check_optional("g_lse", args->g_lse, sizeof(float));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("g_entropy", args->g_entropy, sizeof(float));
    if (status == FLP_OK && !normal->entropy)
        status = flp_arguments_check_absent("g_entropy", args->g_entropy, "entropy is 0");
    if (status == FLP_OK && !normal->entropy)
        status = flp_arguments_check_absent("entropy", args->entropy, "entropy is 0");
    if (status == FLP_OK && !normal->fused)
        status = flp_arguments_check_address("lse", args->lse, sizeof(float));
    if (status == FLP_OK && !normal->fused)
        status = flp_arguments_check_optional("logp", args->logp, sizeof(float));
    if (status == FLP_OK && !normal->fused && normal->entropy)
        status = flp_arguments_check_address("entropy", args->entropy, sizeof(float));
    return status;
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

flp_status flp_logits_logp_args_check_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args,
                                               flp_logits_logp_call *call)
{
    flp_status status;

    fill_backward(normal, args, call);
    status = check_scalars(call, normal->rows, args->temperature, args->flags);
    if (status != FLP_OK || args->rows == 0)
        return status;
    status = check_inputs(call, normal->pointer_alignment);
    if (status == FLP_OK)
        status = flp_arguments_check_address("grad_logits", call->grad_logits, normal->pointer_alignment);
    if (status == FLP_OK)
        status = check_in_place(normal, call);
    if (status == FLP_OK)
        status = check_results(call);
    return status == FLP_OK ? check_upstream(normal, args) : status;
}
