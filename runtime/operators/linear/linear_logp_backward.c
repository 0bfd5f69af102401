/* linear_logp's backward, and the forward of a plan that has one: their calls. */
#include <inttypes.h>
#include <math.h>
#include <stddef.h>

#include "base/status.h"
#include "operators/linear/linear_logp_backward_cpu.h"
#include "operators/linear/linear_logp_cpu.h"
#include "core/call.h"
#include "operators/linear/linear_logp_args.h"
#include "operators/linear/linear_logp_backward_launch.h"
#include "operators/linear/linear_logp_backward_plan.h"

#define AT(argument) offsetof(flp_linear_logp_backward_args, argument)
#define ASKED(field) offsetof(flp_linear_logp_backward_problem, field)

/* As both halves of a pair have it. */
static flp_status check_workspace(const flp_plan *plan, int64_t rows, const void *workspace, size_t bytes, const char *wanted)
{
    if (!workspace)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace: got NULL, wanted %s", wanted);
    return flp_arguments_check_workspace(workspace, bytes, flp_plan_workspace_bytes(plan, rows), rows);
}

/* ---- the forward of a plan that has one ---- */

static flp_status check_forward(const flp_plan *plan, const void *normal, const void *given, void *work)
{
    const flp_linear_logp_backward_problem *problem = normal;
    const flp_linear_logp_args *args = given;
    flp_status status;

    (void)work;
    if (!problem->with_forward)
        return flp_status_fail(FLP_BAD_ARGUMENT, "plan: got one of a problem whose with_forward is 0, wanted 1");
    status = flp_arguments_check(&flp_linear_logp_operator, &flp_linear_logp_arguments, &flp_linear_logp_backward_plan_of(plan)->forward.problem, args);
    if (status != FLP_OK || args->rows == 0)
        return status;
    status = check_workspace(plan, args->rows, args->workspace, args->workspace_bytes, "memory that is left alone until the backward");
    return status == FLP_OK ? flp_arguments_check_address("lse", args->lse, sizeof(float)) : status;
}

static void leave_mark(const flp_plan *plan, const flp_linear_logp_args *args)
{
    const flp_linear_logp_backward_args shared = {
        .rows = args->rows, .ignore_index = args->ignore_index, .temperature = args->temperature, .row_temperature = args->row_temperature, .flags = args->flags
    };

    ((flp_backward_cpu_workspace *)args->workspace)->counts.mark = flp_packed_rows_mark(plan, &shared);
}

/* A target that the forward had no part for and the backward has is NaN, as on other paths. */
static void clear_shares(flp_row_shares *shares, int64_t rows)
{
    for (int64_t i = 0; i < rows; i++)
        shares[i] = (flp_row_shares){ .origin = NAN, .log2_sum = NAN, .lse = NAN, .entropy = NAN, .logp = NAN };
}

static flp_status run_forward_on_cpu(const flp_plan *plan, const void *given, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_logp_args *args = given;
    flp_row_shares *shares = ((flp_backward_cpu_workspace *)args->workspace)->shares;
    const flp_linear_logp_more more = { .shares = shares, .blanks_others = 1 };
    flp_status status;

    clear_shares(shares, args->rows);
    status = flp_linear_logp_cpu(plan->context->pool, &flp_linear_logp_backward_plan_of(plan)->forward.problem, args, &more, bad_count, bad_first);
    if (status == FLP_OK)
        leave_mark(plan, args);
    return status;
}

/* Its arrays are checked against the forward's problem, which the plan has. */
static const flp_argument *const no_arrays[] = { NULL };
static const flp_arguments forward_arguments = {
    .args_struct = &flp_sized_linear_logp_args,
    .arrays = no_arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_logp_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_logp_args),
    .target_dtype_at = ASKED(forward.target_dtype),
    .vocab_at = ASKED(forward.vocab),
};

static const flp_operator_calls forward_calls = {
    .op = &flp_linear_logp_backward_operator,
    .arguments = &forward_arguments,
    .check = check_forward,
    .launch = flp_linear_logp_backward_launch_forward,
    .run_on_cpu = run_forward_on_cpu,
};

flp_status flp_linear_logp_backward_execute_forward_sized(flp_plan *plan, const flp_linear_logp_args *args, const flp_sizes *sizes)
{
    return flp_call_execute(&forward_calls, plan, args, sizes);
}

/* ---- the backward ---- */

static const flp_argument list[] = { { "grad_weight", AT(grad_weight), .dtype_at = ASKED(grad_weight), .asked_at = ASKED(grad_weight), .decides = 1,
                                       .without_rows = 1 },
                                     { "grad_bias", AT(grad_bias), .dtype_at = ASKED(grad_bias), .asked_at = ASKED(grad_bias), .without_rows = 1 },
                                     { "grad_hidden", AT(grad_hidden), .dtype_at = ASKED(grad_hidden), .asked_at = ASKED(grad_hidden), .decides = 1 },
                                     { "lse", AT(lse), .bytes = sizeof(float) },
                                     { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1 },
                                     { "g_logp", AT(g_logp), .bytes = sizeof(float) },
                                     { "g_lse", AT(g_lse), .bytes = sizeof(float), .asked_at = ASKED(g_lse) },
                                     { "g_entropy", AT(g_entropy), .bytes = sizeof(float), .asked_at = ASKED(g_entropy) },
                                     { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(g_entropy) },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, list, NULL };
static const flp_arguments arguments = {
    .args_struct = &flp_sized_linear_logp_backward_args,
    .arrays = arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_logp_backward_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_logp_backward_args),
    .target_dtype_at = ASKED(forward.target_dtype),
    .vocab_at = ASKED(forward.vocab),
};

static flp_status check(const flp_plan *plan, const void *normal, const void *given, void *work)
{
    const flp_linear_logp_backward_problem *problem = normal;
    const flp_linear_logp_backward_args *args = given;

    (void)work;
    if (!problem->with_forward || args->rows == 0)
        return FLP_OK;
    return check_workspace(plan, args->rows, args->workspace, args->workspace_bytes, "that of the forward");
}

static flp_status take_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args)
{
    flp_backward_counts *counts = &((flp_backward_cpu_workspace *)args->workspace)->counts;

    if (counts->mark != flp_packed_rows_mark(plan, args))
        return flp_status_fail(FLP_BAD_ARGUMENT,
                               "workspace: got one without the mark of this plan's forward, of %" PRId64 " rows with this "
                               "temperature and ignore_index, that no backward has taken yet: run the forward, once for each backward",
                               args->rows);
    counts->mark = 0;
    return FLP_OK;
}

/* With a forward, this has counted the bad targets, and says more of the rows than lse. */
static flp_status run_on_cpu(const flp_plan *plan, const void *given, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_logp_backward_problem *problem = flp_plan_problem(plan);
    const flp_linear_logp_backward_args *args = given;
    const int takes = problem->with_forward && args->rows > 0;
    const flp_backward_more more = { .shares = takes ? ((flp_backward_cpu_workspace *)args->workspace)->shares : NULL };
    flp_status status = takes ? take_mark(plan, args) : FLP_OK;

    if (status != FLP_OK)
        return status;
    return flp_linear_logp_backward_cpu(plan->context->pool, problem, args, &more, takes ? NULL : bad_count, takes ? NULL : bad_first);
}

static const flp_operator_calls flp_linear_logp_backward_calls = {
    .op = &flp_linear_logp_backward_operator,
    .arguments = &arguments,
    .check = check,
    .writes_without_rows = 1,
    .launch = flp_linear_logp_backward_launch,
    .run_on_cpu = run_on_cpu,
};
FLP_CALL_FUNCTIONS(flp_linear_logp_backward)
