/* weighted_sum_backward: its calls. */
#include <stddef.h>

#include "base/status.h"
#include "cpu/weighted_sum_backward_cpu.h"
#include "ops/call.h"
#include "ops/weighted_sum_backward_launch.h"
#include "plan/weighted_sum_backward_plan.h"

#define AT(argument) offsetof(flp_weighted_sum_backward_args, argument)
#define ASKED(field) offsetof(flp_weighted_sum_backward_problem, field)

/* With no rows grad_w is written all the same. */
static const flp_argument list[] = {
    { "g", AT(g), .dtype_at = ASKED(forward.y_dtype) },
    { "grad_x", AT(grad_x), .dtype_at = ASKED(grad_x), .asked_at = ASKED(grad_x), .decides = 1 },
    { "w", AT(w), .dtype_at = ASKED(forward.w_dtype), .asked_at = ASKED(grad_x), .is_unread = 1 },
    { "grad_w", AT(grad_w), .dtype_at = ASKED(grad_w), .asked_at = ASKED(grad_w), .without_rows = 1 },
    { "x", AT(x), .asked_at = ASKED(grad_w), .is_unread = 1, .decides = 1 },
    { .name = NULL }
};
static const flp_argument *const arrays[] = { list, NULL };
static const flp_arguments arguments = {
    .args_struct = &flp_sized_weighted_sum_backward_args, .arrays = arrays, FLP_ARGUMENTS_WORKSPACE(flp_weighted_sum_backward_args)
};

static flp_status check(const flp_plan *plan, const void *problem, const void *given, void *work)
{
    const flp_weighted_sum_backward_problem *normal = problem;
    const flp_weighted_sum_backward_args *args = given;

    (void)plan, (void)work;
    if (normal->grad_x == FLP_NONE || args->rows == 0 || args->grad_x != args->x ||
        (normal->grad_x == normal->forward.dtype && normal->grad_x_stride == normal->forward.x_stride))
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "grad_x: got x with another dtype or stride, wanted x's or another array");
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    (void)bad_count, (void)bad_first;
    return flp_weighted_sum_backward_cpu(plan->context->pool, flp_plan_problem(plan), args);
}

static const flp_operator_calls flp_weighted_sum_backward_calls = {
    .operator = &flp_weighted_sum_backward_operator,
    .arguments = &arguments,
    .check = check,
    .writes_without_rows = 1,
    .launch = flp_weighted_sum_backward_launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_weighted_sum_backward)
