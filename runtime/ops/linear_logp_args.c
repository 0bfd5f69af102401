/* Checks linear_logp's arguments against the plan's problem. */
#include "ops/linear_logp_args.h"

#include <inttypes.h>

#include "base/status.h"
#include "cpu/convert.h"
#include "plan/workspace.h"

/* wanted: alignment in bytes. */
static flp_status check_address(const char *argument, const void *address, int wanted)
{
    if (!address)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL, wanted an address", argument);
    if ((uintptr_t)address % (unsigned)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted a multiple of %d bytes", argument, address, wanted);
    return FLP_OK;
}

static flp_status check_optional(const char *argument, const void *address, int wanted)
{
    return address ? check_address(argument, address, wanted) : FLP_OK;
}

double flp_linear_logp_args_temperature(const flp_linear_logp_args *args)
{
    return args->temperature == 0 ? 1 : args->temperature;
}

/* log2(e) / temperature stays a normal float. */
static flp_status check_temperature(const flp_linear_logp_args *args)
{
    double temperature = flp_linear_logp_args_temperature(args);

    if (!(temperature >= 0x1p-125 && temperature <= 0x1p125))
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g, wanted 0 (for 1) or 2^-125 .. 2^125", args->temperature);
    if (args->row_temperature && temperature != 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g beside row_temperature, wanted 0 or 1", args->temperature);
    return FLP_OK;
}

static flp_status check_scalars(const flp_linear_logp_problem *normal, const flp_linear_logp_args *args)
{
    if (args->rows < 0 || args->rows > normal->rows)
        return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", wanted 0 .. %" PRId64 ", the plan's rows", args->rows,
                               normal->rows);
    if (args->flags & ~(unsigned)FLP_CHECK_TARGETS)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got 0x%x, wanted no bits but 0x%x", args->flags, FLP_CHECK_TARGETS);
    return check_temperature(args);
}

static flp_status check_inputs(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = check_address("hidden", args->hidden, problem->pointer_alignment);

    if (status == FLP_OK)
        status = check_address("weight", args->weight, problem->pointer_alignment);
    if (status == FLP_OK && problem->bias_dtype != FLP_NONE)
        status = check_address("bias", args->bias, flp_dtype_bytes(problem->bias_dtype));
    if (status == FLP_OK && problem->bias_dtype == FLP_NONE && args->bias)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "bias: got %p, wanted NULL: the problem's bias_dtype is FLP_NONE", args->bias);
    if (status == FLP_OK)
        status = check_address("target", args->target, flp_dtype_bytes(problem->target_dtype));
    if (status == FLP_OK)
        status = check_optional("row_temperature", args->row_temperature, sizeof(float));
    return status;
}

static flp_status check_outputs(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args)
{
    flp_status status = check_address("logp", args->logp, sizeof(float));

    if (status == FLP_OK)
        status = check_optional("lse", args->lse, sizeof(float));
    if (status == FLP_OK)
        status = check_optional("argmax", args->argmax, sizeof(int32_t));
    if (status == FLP_OK && args->argmax && !problem->argmax)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "argmax: got %p, wanted NULL: the problem's argmax is 0", (void *)args->argmax);
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
    int bytes;
    flp_status status;

    if (problem->dtype != FLP_BF16 && problem->dtype != FLP_F16 && problem->dtype != FLP_F32)
        return flp_status_fail(FLP_BAD_ARGUMENT, "dtype: got %d, wanted FLP_BF16, FLP_F16 or FLP_F32", (int)problem->dtype);
    bytes = flp_dtype_bytes(problem->dtype);
    status = check_address("hidden", args->hidden, bytes);
    return status == FLP_OK ? check_address("weight", args->weight, bytes) : status;
}

flp_status flp_linear_logp_args_check_workspace(const flp_linear_logp_args *args, int64_t wanted)
{
    if (args->workspace_bytes < (uint64_t)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace_bytes: got %zu, wanted at least %" PRId64 " for %" PRId64 " rows",
                               args->workspace_bytes, wanted, args->rows);
    return check_address("workspace", args->workspace, FLP_WORKSPACE_ALIGNMENT);
}
