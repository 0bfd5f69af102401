/* scale: the table of its arguments, its launch and its calls. */
#include <stddef.h>

#include "core/call.h"
#include "operators/scale/scale_plan.h"
#include "params/scale.h"

#define AT(argument) offsetof(flp_scale_args, argument)

static const flp_argument list[] = { { "x", AT(x), .extent_at = offsetof(flp_scale_problem, x_stride), .values = FLP_VALUES_NORMAL },
                                     { "factor", AT(factor), .bytes = sizeof(float), .values = FLP_VALUES_FACTOR },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { list, NULL };
static const flp_arguments arguments = { .args_struct = &flp_sized_scale_args, .arrays = arrays, .stream_at = AT(stream) };

static flp_status launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_scale_args *args = given;
    const flp_scale_plan *plan = flp_scale_plan_of(common);
    const flp_scale_shape shape = flp_scale_shape_of(&plan->problem, args->rows);
    flp_scale_params params = {
        .x = args->x,
        .factor = args->factor,
        .rows = shape.rows,
        .columns = shape.columns,
        .x_stride = shape.stride,
        .parts = flp_scale_parts(plan->problem.dtype, shape.columns),
    };
    void *parameters[] = { &params };

    (void)workspace;
    return flp_call_launch(plan->scale, flp_scale_plan_blocks(plan, args->rows), args->stream, parameters);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    flp_scale_cpu(plan->context->pool, flp_plan_problem(plan), args);
    return FLP_OK;
}

const flp_operator_calls flp_scale_calls = {
    .op = &flp_scale_operator,
    .arguments = &arguments,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_scale)
