/* Checks weighted_sum's problems field by field and fills in their defaults. */
#include "plan/weighted_sum_problem.h"

#include <stddef.h>

#include "base/status.h"
#include "cpu/convert.h"

#define AT(field) offsetof(flp_weighted_sum_problem, field)
#define BACKWARD_AT(field) offsetof(flp_weighted_sum_backward_problem, field)

/* ---- forward ---- */

static const flp_problem_part sizes[] = {
    { "n", FLP_PART_SIZE, AT(rows), .value_name = "rows" },
    { "d", FLP_PART_SIZE, AT(columns), .value_name = "columns" },
    { .word = NULL }
};
static const flp_problem_part options[] = {
    { "xs", FLP_PART_SIZE, AT(x_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, AT(pointer_alignment), .value_name = "bytes" },
    { "w_", FLP_PART_DTYPE, AT(w_dtype), .value_name = "dtype" },
    { "y_", FLP_PART_DTYPE, AT(y_dtype), .value_name = "dtype" },
    { "sm_90a", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, AT(backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_weighted_sum_problem_syntax = { AT(dtype), sizes, options };

/* otherwise: for FLP_NONE. */
static flp_status fill_dtype(const char *field, flp_dtype otherwise, flp_dtype *dtype)
{
    if (*dtype == FLP_NONE)
        *dtype = otherwise;
    return flp_problem_check_float(field, *dtype);
}

static flp_status normalize(flp_weighted_sum_problem *normal)
{
    flp_status status = flp_problem_check_float("dtype", normal->dtype);

    if (status == FLP_OK)
        status = fill_dtype("w_dtype", normal->dtype, &normal->w_dtype);
    if (status == FLP_OK)
        status = fill_dtype("y_dtype", normal->dtype, &normal->y_dtype);
    if (status == FLP_OK)
        status = flp_problem_check_rows(normal->rows);
    if (status == FLP_OK)
        status = flp_problem_check_extent("columns", normal->columns);
    if (status == FLP_OK)
        status = flp_problem_check_backend(normal->backend);
    if (status == FLP_OK)
        status = flp_problem_fill_alignment(flp_dtype_bytes(normal->dtype), &normal->pointer_alignment);
    if (status != FLP_OK)
        return status;
    return flp_problem_fill_stride("x_stride", normal->rows, normal->columns, flp_dtype_bytes(normal->dtype), &normal->x_stride);
}

flp_status flp_weighted_sum_problem_normalize(const void *problem, void *filled)
{
    flp_weighted_sum_problem *normal = filled;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_weighted_sum_problem");
    *normal = *(const flp_weighted_sum_problem *)problem;
    return normalize(normal);
}

int flp_weighted_sum_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_weighted_sum_problem *problem = given;
    const unsigned choices[] = {
        (unsigned)problem->dtype, (unsigned)(problem->w_dtype ? problem->w_dtype : problem->dtype),
        (unsigned)(problem->y_dtype ? problem->y_dtype : problem->dtype), (unsigned)problem->backend
    };

    key->sizes[0] = (uint64_t)problem->columns;
    key->sizes[1] = (uint64_t)(problem->x_stride ? problem->x_stride : problem->columns);
    return flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}

/* ---- backward ---- */

static const flp_problem_part backward_sizes[] = {
    { "n", FLP_PART_SIZE, BACKWARD_AT(forward.rows), .value_name = "rows" },
    { "d", FLP_PART_SIZE, BACKWARD_AT(forward.columns), .value_name = "columns" },
    { .word = NULL }
};
static const flp_problem_part backward_options[] = {
    { "xs", FLP_PART_SIZE, BACKWARD_AT(forward.x_stride), .value_name = "stride" },
    { "align", FLP_PART_INT, BACKWARD_AT(forward.pointer_alignment), .value_name = "bytes" },
    { "w_", FLP_PART_DTYPE, BACKWARD_AT(forward.w_dtype), .value_name = "dtype" },
    { "y_", FLP_PART_DTYPE, BACKWARD_AT(forward.y_dtype), .value_name = "dtype" },
    { "gx_", FLP_PART_DTYPE, BACKWARD_AT(grad_x), .value_name = "dtype" },
    { "gw_", FLP_PART_DTYPE, BACKWARD_AT(grad_w), .value_name = "dtype" },
    { "gxs", FLP_PART_SIZE, BACKWARD_AT(grad_x_stride), .value_name = "stride" },
    { "accumulate", FLP_PART_WORD, BACKWARD_AT(accumulate), .value = 1 },
    { "sm_90a", FLP_PART_WORD, BACKWARD_AT(forward.backend), .value = FLP_BACKEND_SM90A },
    { "portable", FLP_PART_WORD, BACKWARD_AT(forward.backend), .value = FLP_BACKEND_PORTABLE },
    { "cpu", FLP_PART_WORD, BACKWARD_AT(forward.backend), .value = FLP_BACKEND_CPU },
    { .word = NULL }
};
const flp_problem_syntax flp_weighted_sum_backward_problem_syntax = { BACKWARD_AT(forward.dtype), backward_sizes, backward_options };

static flp_status check_gradient(const char *field, flp_dtype dtype)
{
    if (dtype == FLP_NONE || flp_problem_check_float(field, dtype) == FLP_OK)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "%s: got %d, wanted FLP_NONE, FLP_BF16, FLP_F16 or FLP_F32", field, (int)dtype);
}

static flp_status check_gradients(const flp_weighted_sum_backward_problem *problem)
{
    flp_status status = check_gradient("grad_x", problem->grad_x);

    if (status == FLP_OK)
        status = check_gradient("grad_w", problem->grad_w);
    if (status == FLP_OK && problem->grad_x == FLP_NONE && problem->grad_w == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "grad_x, grad_w: got FLP_NONE for both, wanted a gradient");
    if (status == FLP_OK)
        status = flp_problem_check_flag("accumulate", problem->accumulate);
    if (status == FLP_OK && problem->accumulate && problem->grad_w == FLP_NONE)
        status = flp_status_fail(FLP_BAD_ARGUMENT, "accumulate: got 1 without grad_w, wanted 0");
    return status;
}

static flp_status fill_gradient_stride(flp_weighted_sum_backward_problem *normal)
{
    const flp_weighted_sum_problem *forward = &normal->forward;

    if (normal->grad_x == FLP_NONE && normal->grad_x_stride != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_x_stride: got %lld without grad_x, wanted 0", (long long)normal->grad_x_stride);
    if (normal->grad_x == FLP_NONE)
        return FLP_OK;
    if (normal->grad_x_stride == 0)
        normal->grad_x_stride = forward->x_stride;
    return flp_problem_fill_stride("grad_x_stride", forward->rows, forward->columns, flp_dtype_bytes(normal->grad_x),
                                   &normal->grad_x_stride);
}

flp_status flp_weighted_sum_backward_problem_normalize(const void *problem, void *filled)
{
    flp_weighted_sum_backward_problem *normal = filled;
    flp_status status;

    if (!problem)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem: got NULL, wanted a pointer to flp_weighted_sum_backward_problem");
    *normal = *(const flp_weighted_sum_backward_problem *)problem;
    status = normalize(&normal->forward);
    if (status == FLP_OK)
        status = check_gradients(normal);
    return status == FLP_OK ? fill_gradient_stride(normal) : status;
}

int flp_weighted_sum_backward_problem_pack(const void *given, flp_dispatch_key *key)
{
    const flp_weighted_sum_backward_problem *problem = given;
    const flp_weighted_sum_problem *forward = &problem->forward;
    const unsigned choices[] = {
        (unsigned)forward->dtype, (unsigned)(forward->w_dtype ? forward->w_dtype : forward->dtype),
        (unsigned)(forward->y_dtype ? forward->y_dtype : forward->dtype), (unsigned)forward->backend, (unsigned)problem->grad_x,
        (unsigned)problem->grad_w, (unsigned)problem->accumulate
    };
    const int64_t x_stride = forward->x_stride ? forward->x_stride : forward->columns;

    key->sizes[0] = (uint64_t)forward->columns;
    key->sizes[1] = (uint64_t)x_stride;
    key->sizes[2] = (uint64_t)(problem->grad_x_stride || problem->grad_x == FLP_NONE ? problem->grad_x_stride : x_stride);
    return flp_dispatch_key_choose(key, choices, sizeof(choices) / sizeof(choices[0]));
}
