/* Rules that the arguments of all operators share. */
#include "ops/arguments.h"

#include <inttypes.h>
#include <math.h>

#include "base/dtype.h"
#include "base/status.h"
#include "plan/workspace.h"

flp_status flp_arguments_check_address(const char *argument, const void *address, int wanted)
{
    if (!address)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got NULL, wanted an address", argument);
    if ((uintptr_t)address % (unsigned)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted a multiple of %d bytes", argument, address, wanted);
    return FLP_OK;
}

flp_status flp_arguments_check_optional(const char *argument, const void *address, int wanted)
{
    return address ? flp_arguments_check_address(argument, address, wanted) : FLP_OK;
}

flp_status flp_arguments_check_absent(const char *argument, const void *address, const char *field)
{
    if (!address)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %p, wanted NULL: the problem's %s", argument, address, field);
}

flp_status flp_arguments_check_rows(int64_t rows, int64_t most)
{
    if (rows >= 0 && rows <= most)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "rows: got %" PRId64 ", wanted 0 .. %" PRId64 ", the plan's rows", rows, most);
}

/* An ignore_index that nothing looks at is most likely meant to be ignored. */
flp_status flp_arguments_check_flags(unsigned flags, unsigned more, int64_t ignore_index)
{
    const unsigned known = FLP_CHECK_TARGETS | FLP_IGNORE_INDEX | more;

    if (flags & ~known)
        return flp_status_fail(FLP_BAD_ARGUMENT, "flags: got 0x%x, wanted no bits but 0x%x", flags, known);
    if (ignore_index != 0 && !(flags & FLP_IGNORE_INDEX))
        return flp_status_fail(FLP_BAD_ARGUMENT, "ignore_index: got %" PRId64 " without FLP_IGNORE_INDEX in flags, wanted the flag, or 0 to ignore none",
                               ignore_index);
    return FLP_OK;
}

int flp_arguments_ignore(unsigned flags)
{
    return (flags & FLP_IGNORE_INDEX) != 0;
}

double flp_arguments_temperature(double temperature)
{
    return temperature == 0 ? 1 : temperature;
}

float flp_arguments_scale(double temperature)
{
    return (float)(M_LOG2E / flp_arguments_temperature(temperature));
}

/* KEEP IN STEP: temperatures. */
flp_status flp_arguments_check_temperature(double temperature, const float *row_temperature)
{
    const double shared = flp_arguments_temperature(temperature);

    if (!(shared >= 0x1p-64 && shared <= 0x1p64))
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g, wanted 0 (for 1) or 2^-64 .. 2^64", temperature);
    if (row_temperature && shared != 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "temperature: got %g beside row_temperature, wanted 0 or 1", temperature);
    return FLP_OK;
}

flp_status flp_arguments_check_workspace(const void *workspace, size_t bytes, int64_t wanted, int64_t rows)
{
    if (bytes < (uint64_t)wanted)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace_bytes: got %zu, wanted at least %" PRId64 " for %" PRId64 " rows", bytes,
                               wanted, rows);
    return flp_arguments_check_address("workspace", workspace, FLP_WORKSPACE_ALIGNMENT);
}

const void *flp_arguments_advance(const void *address, int64_t elements, flp_dtype dtype)
{
    return address ? (const char *)address + elements * flp_dtype_bytes(dtype) : NULL;
}
