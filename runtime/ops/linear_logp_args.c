/* Checks linear_logp's arguments against the plan's problem. */
#include "ops/linear_logp_args.h"

#include "base/dtype.h"
#include "ops/arguments.h"
#include "plan/problem.h"

static flp_status check_scalars(const flp_linear_logp_problem *normal, const flp_linear_logp_args *args)
{
    flp_status status = flp_arguments_check_rows(args->rows, normal->rows);

    if (status == FLP_OK)
        status = flp_arguments_check_flags(args->flags, 0, args->ignore_index);
    return status == FLP_OK ? flp_arguments_check_temperature(args->temperature, args->row_temperature) : status;
}

static flp_status check_inputs(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = flp_arguments_check_address("hidden", args->hidden, problem->pointer_alignment);

    if (status == FLP_OK)
        status = flp_arguments_check_address("weight", args->weight, problem->pointer_alignment);
    if (status == FLP_OK && problem->bias_dtype != FLP_NONE)
        status = flp_arguments_check_address("bias", args->bias, flp_dtype_bytes(problem->bias_dtype));
    if (status == FLP_OK && problem->bias_dtype == FLP_NONE)
        status = flp_arguments_check_absent("bias", args->bias, "bias_dtype is FLP_NONE");
    if (status == FLP_OK)
        status = flp_arguments_check_address("target", args->target, flp_dtype_bytes(problem->target_dtype));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("row_temperature", args->row_temperature, sizeof(float));
    return status;
}

static flp_status check_outputs(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = flp_arguments_check_address("logp", args->logp, sizeof(float));

    if (status == FLP_OK)
        status = flp_arguments_check_optional("lse", args->lse, sizeof(float));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("entropy", args->entropy, sizeof(float));
    if (status == FLP_OK && !problem->entropy)
        status = flp_arguments_check_absent("entropy", args->entropy, "entropy is 0");
    if (status == FLP_OK)
        status = flp_arguments_check_optional("argmax", args->argmax, sizeof(int32_t));
    if (status == FLP_OK && !problem->argmax)
        status = flp_arguments_check_absent("argmax", args->argmax, "argmax is 0");
    return status;
}

flp_status flp_linear_logp_args_check(const flp_linear_logp_problem *normal, const flp_linear_logp_args *args)
{
    flp_status status = check_scalars(normal, args);

    if (status == FLP_OK && args->rows > 0)
        status = check_inputs(normal, args);
    if (status == FLP_OK && args->rows > 0)
        status = check_outputs(normal, args);
    return status;
}

flp_status flp_linear_logp_args_check_elements(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = flp_problem_check_float("dtype", problem->dtype);

    if (status == FLP_OK)
        status = flp_arguments_check_address("hidden", args->hidden, flp_dtype_bytes(problem->dtype));
    return status == FLP_OK ? flp_arguments_check_address("weight", args->weight, flp_dtype_bytes(problem->dtype)) : status;
}
