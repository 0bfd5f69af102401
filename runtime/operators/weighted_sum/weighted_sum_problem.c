/* weighted_sum's problems, both directions: their fields, a row each, and what holds between them. */
#include "operators/weighted_sum/weighted_sum_problem.h"

#include "base/status.h"

#define AT(field) offsetof(flp_weighted_sum_problem, field)
#define BACKWARD_AT(field) offsetof(flp_weighted_sum_backward_problem, field)

static const flp_field inputs[] = { { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
                                    FLP_FIELD_ROWS(AT(rows)),
                                    FLP_FIELD_EXTENT("columns", AT(columns), "d"),
                                    { "x_stride", FLP_FIELD_STRIDE, AT(x_stride), .prefix = "xs", .value_name = "stride", .rows_at = AT(rows),
                                      .columns_at = AT(columns) },
                                    FLP_FIELD_POINTERS(AT(pointer_alignment)),
                                    { "w_dtype", FLP_FIELD_DTYPE, AT(w_dtype), .prefix = "w_", FLP_FIELD_FLOAT, .otherwise = FLP_FIELD_AS_DTYPE },
                                    { "y_dtype", FLP_FIELD_DTYPE, AT(y_dtype), .prefix = "y_", FLP_FIELD_FLOAT, .otherwise = FLP_FIELD_AS_DTYPE },
                                    { .name = NULL } };
static const flp_field backend[] = { FLP_FIELD_BACKEND(AT(backend)), { .name = NULL } };
static const flp_field gradients[] = { { "grad_x", FLP_FIELD_DTYPE, BACKWARD_AT(grad_x), .prefix = "gx_", FLP_FIELD_FLOAT_OR_NONE },
                                       { "grad_w", FLP_FIELD_DTYPE, BACKWARD_AT(grad_w), .prefix = "gw_", FLP_FIELD_FLOAT_OR_NONE },
                                       { "grad_x_stride", FLP_FIELD_STRIDE, BACKWARD_AT(grad_x_stride), .prefix = "gxs", .value_name = "stride",
                                         .rows_at = BACKWARD_AT(forward.rows), .columns_at = BACKWARD_AT(forward.columns), .dtype_at = BACKWARD_AT(grad_x),
                                         .like_at = BACKWARD_AT(forward.x_stride) },
                                       { "accumulate", FLP_FIELD_CHOICE, BACKWARD_AT(accumulate), .words = { [1] = "accumulate" }, FLP_FIELD_FLAG },
                                       { .name = NULL } };

const flp_field *const flp_weighted_sum_fields[] = { inputs, backend, NULL };
const flp_field *const flp_weighted_sum_backward_fields[] = { inputs, gradients, backend, NULL };

flp_status flp_weighted_sum_backward_problem_check(void *normal)
{
    const flp_weighted_sum_backward_problem *problem = normal;

    if (problem->grad_x == FLP_NONE && problem->grad_w == FLP_NONE)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_x, grad_w: got FLP_NONE for both, wanted a gradient");
    if (problem->accumulate && problem->grad_w == FLP_NONE)
        return flp_status_fail(FLP_BAD_ARGUMENT, "accumulate: got 1 without grad_w, wanted 0");
    if (problem->grad_x == FLP_NONE && problem->grad_x_stride != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "grad_x_stride: got %lld without grad_x, wanted 0", (long long)problem->grad_x_stride);
    return FLP_OK;
}
