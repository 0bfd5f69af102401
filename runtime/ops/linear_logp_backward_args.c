/* Checks the arguments of linear_logp's backward against the plan's problem. */
#include "ops/linear_logp_backward_args.h"

#include "base/dtype.h"
#include "ops/arguments.h"
#include "plan/problem.h"

static flp_status check_scalars(const flp_linear_logp_problem *forward, const flp_linear_logp_backward_args *args)
{
    flp_status status = flp_arguments_check_rows(args->rows, forward->rows);

    if (status == FLP_OK)
        status = flp_arguments_check_flags(args->flags, 0, args->ignore_index);
    return status == FLP_OK ? flp_arguments_check_temperature(args->temperature, args->row_temperature) : status;
}

static flp_status check_forward_inputs(const flp_linear_logp_problem *forward, const flp_linear_logp_backward_args *args)
{
    flp_status status = flp_arguments_check_address("hidden", args->hidden, forward->pointer_alignment);

    if (status == FLP_OK)
        status = flp_arguments_check_address("weight", args->weight, forward->pointer_alignment);
    if (status == FLP_OK && forward->bias_dtype != FLP_NONE)
        status = flp_arguments_check_address("bias", args->bias, flp_dtype_bytes(forward->bias_dtype));
    if (status == FLP_OK && forward->bias_dtype == FLP_NONE)
        status = flp_arguments_check_absent("bias", args->bias, "bias_dtype is FLP_NONE");
    if (status == FLP_OK)
        status = flp_arguments_check_address("target", args->target, flp_dtype_bytes(forward->target_dtype));
    if (status == FLP_OK)
        status = flp_arguments_check_optional("row_temperature", args->row_temperature, sizeof(float));
    return status;
}

/* wanted: whether the problem has asked for it; else `field` says that it has not. */
static flp_status check_either(const char *argument, const void *address, int alignment, int wanted, const char *field)
{
    return wanted ? flp_arguments_check_address(argument, address, alignment) : flp_arguments_check_absent(argument, address, field);
}

static flp_status check_upstream(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args)
{
    flp_status status = flp_arguments_check_address("lse", args->lse, sizeof(float));

    if (status == FLP_OK)
        status = flp_arguments_check_optional("logp", args->logp, sizeof(float));
    if (status == FLP_OK)
        status = flp_arguments_check_address("g_logp", args->g_logp, sizeof(float));
    if (status == FLP_OK)
        status = check_either("g_lse", args->g_lse, sizeof(float), problem->g_lse, "g_lse is 0");
    if (status == FLP_OK)
        status = check_either("g_entropy", args->g_entropy, sizeof(float), problem->g_entropy, "g_entropy is 0");
    if (status == FLP_OK)
        status = check_either("entropy", args->entropy, sizeof(float), problem->g_entropy, "g_entropy is 0");
    return status;
}

static int larger(int a, int b)
{
    return a > b ? a : b;
}

static flp_status check_gradients(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args)
{
    const int alignment = problem->forward.pointer_alignment;
    flp_status status = check_either("grad_weight", args->grad_weight, larger(alignment, flp_dtype_bytes(problem->grad_weight)),
                                     problem->grad_weight != FLP_NONE, "grad_weight is FLP_NONE");

    if (status == FLP_OK)
        status = check_either("grad_bias", args->grad_bias, flp_dtype_bytes(problem->grad_bias), problem->grad_bias != FLP_NONE,
                              "grad_bias is FLP_NONE");
    if (status == FLP_OK && args->rows > 0)
        status = check_either("grad_hidden", args->grad_hidden, larger(alignment, flp_dtype_bytes(problem->grad_hidden)),
                              problem->grad_hidden != FLP_NONE, "grad_hidden is FLP_NONE");
    return status;
}

flp_status flp_linear_logp_backward_args_check_shared(const flp_linear_logp_backward_problem *normal,
                                                      const flp_linear_logp_backward_args *args)
{
    flp_status status = check_scalars(&normal->forward, args);

    if (status == FLP_OK && args->rows > 0)
        status = check_forward_inputs(&normal->forward, args);
    return status == FLP_OK ? check_gradients(normal, args) : status;
}

flp_status flp_linear_logp_backward_args_check(const flp_linear_logp_backward_problem *normal, const flp_linear_logp_backward_args *args)
{
    flp_status status = flp_linear_logp_backward_args_check_shared(normal, args);

    return status == FLP_OK && args->rows > 0 ? check_upstream(normal, args) : status;
}

/* Without an address, too: the elements' size is that of a dtype. */
static flp_status check_elements(const char *argument, const void *address, const char *field, flp_dtype dtype)
{
    flp_status status = dtype == FLP_NONE ? FLP_OK : flp_problem_check_float(field, dtype);

    if (status == FLP_OK && dtype != FLP_NONE)
        status = flp_arguments_check_optional(argument, address, flp_dtype_bytes(dtype));
    return status;
}

flp_status flp_linear_logp_backward_args_check_elements(const flp_linear_logp_backward_problem *problem,
                                                        const flp_linear_logp_backward_args *args)
{
    flp_status status = check_elements("hidden", args->hidden, "dtype", problem->forward.dtype);

    if (status == FLP_OK)
        status = check_elements("weight", args->weight, "dtype", problem->forward.dtype);
    if (status == FLP_OK)
        status = check_elements("grad_hidden", args->grad_hidden, "grad_hidden", problem->grad_hidden);
    return status == FLP_OK ? check_elements("grad_weight", args->grad_weight, "grad_weight", problem->grad_weight) : status;
}
