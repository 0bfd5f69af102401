/* scale as an operator: the table of its problem's fields, and its plans' kernel, launch, description and numerics. */
#include "operators/scale/scale_plan.h"

#include <stddef.h>

#include "base/int64.h"
#include "core/plan.h"
#include "params/scale.h"

#define AT(field) offsetof(flp_scale_problem, field)

static const flp_field list[] = { { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
                                  FLP_FIELD_ROWS(AT(rows)),
                                  FLP_FIELD_EXTENT("columns", AT(columns), "d"),
                                  { "x_stride", FLP_FIELD_STRIDE, AT(x_stride), .prefix = "xs", .value_name = "stride", .rows_at = AT(rows),
                                    .columns_at = AT(columns) },
                                  FLP_FIELD_POINTERS(AT(pointer_alignment)),
                                  FLP_FIELD_BACKEND(AT(backend)),
                                  { .name = NULL } };
static const flp_field *const fields[] = { list, NULL };

int64_t flp_scale_parts(flp_dtype dtype, int64_t columns)
{
    return flp_int64_divide_up(columns, FLP_SCALE_PART_BYTES / (int64_t)flp_dtype_bytes(dtype));
}

unsigned flp_scale_plan_blocks(const flp_scale_plan *plan, int64_t rows)
{
    const flp_scale_shape shape = flp_scale_shape_of(&plan->problem, rows);

    return (unsigned)flp_int64_smaller(INT32_MAX, shape.rows * flp_scale_parts(plan->problem.dtype, shape.columns));
}

static flp_status set_up(flp_plan *common)
{
    flp_scale_plan *plan = (flp_scale_plan *)(void *)common;
    flp_status status = flp_plan_check_kernels(common, FLP_ROLE_SET(SCALE), 0);

    if (status == FLP_OK)
        plan->scale = common->kernels[FLP_ROLE_SCALE];
    return status;
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    flp_text_append(text, "%s", flp_plan_on_gpu(common) ? flp_scale_plan_of(common)->scale->manifest.numerics : flp_scale_cpu_numerics());
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_scale_plan *plan = flp_scale_plan_of(common);

    flp_describe_kernel(text, "scale", &plan->scale->manifest);
    flp_text_append(text, "scale blocks: %u\n", flp_scale_plan_blocks(plan, plan->problem.rows));
}

const flp_operator flp_scale_operator = {
    FLP_OPERATOR_OF(scale, ), .fields = fields, .set_up = set_up, .describe = describe, .write_numerics = write_numerics,
};
