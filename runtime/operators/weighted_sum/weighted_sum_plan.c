/* weighted_sum as an operator: the tables of its problems' fields, both directions, and its plans' kernels, description and numerics. */
#include "operators/weighted_sum/weighted_sum_plan.h"

#include <stddef.h>

#include "base/int64.h"
#include "base/status.h"
#include "core/plan.h"

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

static const flp_field *const fields[] = { inputs, backend, NULL };
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

/* With enough rows, blocks are short, so that memory is read in order, but long enough to be worth their start. */
enum { ROWS_PER_BLOCK = 32, WAVES = 16 /* the most blocks for each one that the device holds at once */ };

unsigned flp_weighted_sum_plan_blocks(const flp_weighted_sum_plan *plan, int64_t rows)
{
    const flp_manifest *manifest = &plan->sum->manifest;
    const int64_t resident = (int64_t)plan->common.device.facts.multiprocessors * manifest->resident_blocks;
    const int64_t teams = flp_int64_divide_up(rows, manifest->block_rows);
    const int64_t blocks = flp_int64_smaller(flp_int64_larger(flp_int64_divide_up(rows, ROWS_PER_BLOCK), resident), WAVES * resident);

    return (unsigned)flp_int64_larger(1, flp_int64_smaller(blocks, teams));
}

static flp_status set_up(flp_plan *common)
{
    flp_weighted_sum_plan *plan = (flp_weighted_sum_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, FLP_ROLE_SET(SUM), 0);
    const flp_manifest *manifest;

    if (status != FLP_OK)
        return status;
    plan->sum = common->kernels[FLP_ROLE_SUM];
    manifest = &plan->sum->manifest;
    if (manifest->block_rows >= 1 && manifest->resident_blocks >= 1)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: block_rows %d, resident_blocks %d; wanted at least 1", manifest->variant, manifest->block_rows,
                           manifest->resident_blocks);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s", flp_weighted_sum_plan_of(common)->sum->manifest.numerics);
    else
        flp_text_append(text, "%s", flp_weighted_sum_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_weighted_sum_plan *plan = flp_weighted_sum_plan_of(common);
    const flp_manifest *manifest = &plan->sum->manifest;

    flp_describe_kernel(text, "sum", manifest);
    flp_text_append(text, "sum team: %d threads a row, %d rows a block at a time\n", manifest->threads / manifest->block_rows, manifest->block_rows);
    flp_text_append(text, "sum blocks: %u\n", flp_weighted_sum_plan_blocks(plan, plan->problem.rows));
}

const flp_operator flp_weighted_sum_operator = {
    FLP_OPERATOR_OF(weighted_sum, ), .fields = fields, .set_up = set_up, .describe = describe, .write_numerics = write_numerics,
};
