/* Rules that the problems of all operators share. */
#include "plan/problem.h"

#include <inttypes.h>

#include "base/status.h"

enum { ALIGNMENT_MAX = 16 }; /* the widest load of any path */

flp_status flp_problem_check_range(const char *field, int64_t got, int64_t low, int64_t high)
{
    if (got >= low && got <= high)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted %" PRId64 " .. %" PRId64, field, got, low, high);
}

flp_status flp_problem_check_rows(int64_t rows)
{
    return flp_problem_check_range("rows", rows, 0, FLP_PROBLEM_ROWS_MAX);
}

flp_status flp_problem_check_extent(const char *field, int64_t got)
{
    return flp_problem_check_range(field, got, 1, INT32_MAX);
}

flp_status flp_problem_check_flag(const char *field, int got)
{
    if (got == 0 || got == 1)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted 0 or 1", field, got);
}

flp_status flp_problem_check_float(const char *field, flp_dtype got)
{
    if (got == FLP_BF16 || got == FLP_F16 || got == FLP_F32)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted FLP_BF16, FLP_F16 or FLP_F32", field, (int)got);
}

/* c and 1 / c both stay normal floats in the kernels. */
flp_status flp_problem_check_softcap(double softcap)
{
    if (softcap == 0 || (softcap >= 0x1p-126 && softcap <= 0x1p126))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "softcap: got %g, wanted 0 or 2^-126 .. 2^126", softcap);
}

flp_status flp_problem_check_backend(flp_backend backend)
{
    if ((unsigned)backend <= FLP_BACKEND_CPU)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT,
                           "backend: got %d, wanted FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU",
                           (int)backend);
}

flp_status flp_problem_fill_target_dtype(flp_dtype *target_dtype)
{
    if (*target_dtype == FLP_NONE)
        *target_dtype = FLP_I64;
    if (*target_dtype == FLP_I32 || *target_dtype == FLP_I64)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "target_dtype: got %d, wanted FLP_I32 or FLP_I64", (int)*target_dtype);
}

flp_status flp_problem_fill_alignment(int element_bytes, int *alignment)
{
    if (*alignment == 0)
        *alignment = ALIGNMENT_MAX;
    if (*alignment < element_bytes || (*alignment & (*alignment - 1)))
        return flp_status_fail(FLP_BAD_ARGUMENT, "pointer_alignment: got %d, wanted 0 or a power of two from %d bytes, one element",
                               *alignment, element_bytes);
    if (*alignment > ALIGNMENT_MAX)
        *alignment = ALIGNMENT_MAX;
    return FLP_OK;
}

flp_status flp_problem_fill_stride(const char *field, int64_t rows, int64_t columns, int element_bytes, int64_t *stride)
{
    int64_t bytes;

    if (*stride == 0)
        *stride = columns;
    if (*stride < columns)
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted 0 or at least the row's %" PRId64 " elements", field,
                               *stride, columns);
    if (__builtin_mul_overflow(*stride, rows, &bytes) || __builtin_mul_overflow(bytes, element_bytes, &bytes))
        return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted %" PRId64 " rows of that size to stay below 2^63 bytes",
                               field, *stride, rows);
    return FLP_OK;
}
