/* weighted_sum: the table of its arguments, its launch and its calls. */
#include <stddef.h>

#include "core/call.h"
#include "params/weighted_sum.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

#define AT(argument) offsetof(flp_weighted_sum_args, argument)

static const flp_argument list[] = { { "x", AT(x), .decides = 1, .extent_at = offsetof(flp_weighted_sum_problem, x_stride), .values = FLP_VALUES_NORMAL },
                                     { "w", AT(w), .dtype_at = offsetof(flp_weighted_sum_problem, w_dtype),
                                       .extent_at = offsetof(flp_weighted_sum_problem, columns), .values = FLP_VALUES_NORMAL },
                                     { "y", AT(y), .dtype_at = offsetof(flp_weighted_sum_problem, y_dtype) },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { list, NULL };
static const flp_arguments arguments = { .args_struct = &flp_sized_weighted_sum_args, .arrays = arrays, .stream_at = AT(stream) };

static flp_status launch(const flp_plan *common, const void *given, const flp_workspace *workspace)
{
    const flp_weighted_sum_args *args = given;
    const flp_weighted_sum_plan *plan = flp_weighted_sum_plan_of(common);
    flp_weighted_sum_params params = {
        .x = args->x,
        .w = args->w,
        .y = args->y,
        .rows = args->rows,
        .x_stride = plan->problem.x_stride,
        .columns = (int32_t)plan->problem.columns,
    };
    void *parameters[] = { &params };

    (void)workspace;
    return flp_call_launch(plan->sum, flp_weighted_sum_plan_blocks(plan, args->rows), args->stream, parameters);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    flp_weighted_sum_cpu(plan->context->pool, flp_plan_problem(plan), args);
    return FLP_OK;
}

const flp_operator_calls flp_weighted_sum_calls = {
    .op = &flp_weighted_sum_operator,
    .arguments = &arguments,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
FLP_CALL_FUNCTIONS(flp_weighted_sum)
