/* Checks a problem field by field and fills in its defaults. */
#include "plan/problem.h"

#include <inttypes.h>
#include <math.h>

#include "base/status.h"
#include "cpu/convert.h"

enum { ALIGNMENT_MAX = 16 }; /* the widest load of any path */

static const int64_t extent_max = INT32_MAX;

static int is_float(flp_dtype dtype)
{
    return dtype == FLP_BF16 || dtype == FLP_F16 || dtype == FLP_F32;
}

static flp_status check_range(const char *field, int64_t got, int64_t low, int64_t high)
{
    if (got >= low && got <= high)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %" PRId64 ", wanted %" PRId64 " .. %" PRId64, field, got, low, high);
}

static flp_status check_sizes(const flp_linear_logp_problem *problem)
{
    flp_status status = check_range("rows", problem->rows, 0, FLP_PROBLEM_ROWS_MAX);

    if (status == FLP_OK)
        status = check_range("hidden", problem->hidden, 1, extent_max);
    if (status == FLP_OK)
        status = check_range("vocab", problem->vocab, 1, extent_max);
    return status;
}

static flp_status check_dtypes(const flp_linear_logp_problem *problem)
{
    if (!is_float(problem->dtype))
        return flp_status_fail(FLP_BAD_ARGUMENT, "dtype: got %d, wanted FLP_BF16, FLP_F16 or FLP_F32", (int)problem->dtype);
    if (problem->bias_dtype != FLP_NONE && !is_float(problem->bias_dtype))
        return flp_status_fail(FLP_BAD_ARGUMENT, "bias_dtype: got %d, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32",
                               (int)problem->bias_dtype);
    if (problem->target_dtype != FLP_NONE && problem->target_dtype != FLP_I32 && problem->target_dtype != FLP_I64)
        return flp_status_fail(FLP_BAD_ARGUMENT, "target_dtype: got %d, wanted FLP_I32 or FLP_I64", (int)problem->target_dtype);
    return FLP_OK;
}

/* c and 1 / c both stay normal floats in the kernels. */
static flp_status check_softcap(double softcap)
{
    if (softcap == 0 || (softcap >= 0x1p-126 && softcap <= 0x1p126))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "softcap: got %g, wanted 0 or 2^-126 .. 2^126", softcap);
}

static flp_status check_options(const flp_linear_logp_problem *problem)
{
    flp_status status = check_softcap(problem->softcap);

    if (status != FLP_OK)
        return status;
    if (problem->weight_layout != FLP_VOCAB_HIDDEN && problem->weight_layout != FLP_HIDDEN_VOCAB)
        return flp_status_fail(FLP_BAD_ARGUMENT, "weight_layout: got %d, wanted FLP_VOCAB_HIDDEN or FLP_HIDDEN_VOCAB",
                               (int)problem->weight_layout);
    if (problem->argmax != 0 && problem->argmax != 1)
        return flp_status_fail(FLP_BAD_ARGUMENT, "argmax: got %d, wanted 0 or 1", problem->argmax);
    if (problem->precision != FLP_PRECISION_TENSOR && problem->precision != FLP_PRECISION_EXACT)
        return flp_status_fail(FLP_BAD_ARGUMENT, "precision: got %d, wanted FLP_PRECISION_TENSOR or FLP_PRECISION_EXACT",
                               (int)problem->precision);
    if (problem->precision == FLP_PRECISION_EXACT && problem->dtype != FLP_F32)
        return flp_status_fail(FLP_BAD_ARGUMENT, "precision: got FLP_PRECISION_EXACT with dtype %s, wanted it with f32 only",
                               flp_dtype_name(problem->dtype));
    if ((unsigned)problem->backend > FLP_BACKEND_CPU)
        return flp_status_fail(FLP_BAD_ARGUMENT,
                               "backend: got %d, wanted FLP_BACKEND_AUTO, FLP_BACKEND_SM90A, FLP_BACKEND_PORTABLE or FLP_BACKEND_CPU",
                               (int)problem->backend);
    return FLP_OK;
}

/* rows x stride stays an int64 count of bytes. */
static flp_status fill_stride(const char *field, int64_t rows, int64_t columns, int element_bytes, int64_t *stride)
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

static flp_status fill_alignment(int element_bytes, int *alignment)
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

int flp_problem_element_bytes(const flp_linear_logp_problem *normal)
{
    return flp_dtype_bytes(normal->dtype);
}

flp_status flp_problem_normalize(const flp_linear_logp_problem *problem, flp_linear_logp_problem *normal)
{
    flp_status status;
    int bytes, transposed;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_linear_logp_problem");
    *normal = *problem;
    status = check_dtypes(problem);
    if (status == FLP_OK)
        status = check_sizes(problem);
    if (status == FLP_OK)
        status = check_options(problem);
    if (status != FLP_OK)
        return status;
    bytes = flp_problem_element_bytes(problem);
    transposed = problem->weight_layout == FLP_HIDDEN_VOCAB;
    if (normal->target_dtype == FLP_NONE)
        normal->target_dtype = FLP_I64;
    status = fill_alignment(bytes, &normal->pointer_alignment);
    if (status == FLP_OK)
        status = fill_stride("hidden_stride", normal->rows, normal->hidden, bytes, &normal->hidden_stride);
    if (status == FLP_OK)
        status = fill_stride("weight_stride", transposed ? normal->hidden : normal->vocab,
                             transposed ? normal->vocab : normal->hidden, bytes, &normal->weight_stride);
    return status;
}
