/* linear_logp_backward, and the forward of a plan with_forward: the order of their launches, their arguments and their calls. */
#include "operators/linear/linear_logp_backward.h"

#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <string.h>

#include "base/status.h"
#include "core/call.h"
#include "operators/linear/linear_logp.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_cpu.h"

/* `more` is left for the caller to fill in. */
static flp_backward_execution begin(const flp_packed_call *call, const flp_packed_rows *rows)
{
    const flp_linear_logp_backward_plan *plan = call->plan;
    flp_backward_execution run = { .call = *call, .rows = *rows, .problem = &plan->problem, .forward = &plan->problem.forward, .chunks = &plan->work.chunks };

    run.factor = &flp_backward_counts_of(&run)->factor;
    run.inverse_factor = &flp_backward_counts_of(&run)->inverse_factor;
    run.row_factor = flp_backward_at(&run, FLP_PART_ROW_FACTOR);
    return run;
}

/* All launches after the valid rows are known, but for end_chunk's. flp_backward_differentiate_rows comes first, because it checks whether the workspace is that
 * of this backward's forward. With saved exponentials, the rows are gathered later, times the factors that it computes. */
static flp_status launch_rest(const flp_backward_execution *run)
{
    const flp_linear_logp_backward_plan *plan = run->call.plan;
    flp_status status = flp_backward_differentiate_rows(run);

    if (status == FLP_OK && run->gathers && !run->row_factor && run->rows.rows > 0)
        status = flp_backward_gather_rows(run, FLP_STEP_GATHER_AGAIN, 1);
    if (status == FLP_OK && plan->target_order && run->rows.rows > 0)
        status = flp_backward_order_targets(run);
    if (status == FLP_OK && plan->other_shards && run->rows.rows > 0)
        status = flp_backward_clear_other_shards(run);
    return status == FLP_OK ? flp_backward_run_chunks(run) : status;
}

/* grad_hidden of the chunk of rows, from its products. */
static flp_status end_chunk(const flp_backward_execution *run, int is_beside)
{
    const int has_parts = run->chunks->part_columns > 0 && !run->chunks->in_forward; /* in_forward: the forward has added them */
    const int finishes = run->call.plan->finish && !flp_backward_is_direct(run) && !flp_backward_finishes_first(run);
    flp_status status = FLP_OK;

    if (run->rows.rows == 0)
        return FLP_OK;
    if (has_parts)
        status = flp_backward_sum_parts(run, is_beside ? FLP_STEP_CHUNK_BEFORE : FLP_STEP_SAVED_EXP_SUM, run->row_factor, is_beside);
    if (status == FLP_OK && finishes)
        status = flp_backward_finish_grad_hidden(run, is_beside ? FLP_STEP_CHUNK_BEFORE : FLP_STEP_FINISH, is_beside && !has_parts);
    return status;
}

/* After the last chunk of rows. run: that of all rows. */
static flp_status launch_end(const flp_backward_execution *run)
{
    flp_status status = flp_backward_is_direct(run) && run->rows.rows > 0 ? flp_backward_scatter_grad_hidden(run) : FLP_OK;

    return status == FLP_OK && !flp_backward_finishes_first(run) ? flp_backward_mark_grad_hidden(run->call.args) : status;
}

flp_status flp_linear_logp_backward_launch_rows(const flp_packed_call *call)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    const flp_backward_execution run = begin(call, &all);
    flp_status status = flp_packed_rows_index(call);

    /* With saved exponentials grad_hidden's sums are zeroed later: their room may hold what the forward needs. */
    return status == FLP_OK ? flp_backward_gather_rows(&run, FLP_STEP_GATHER, run.row_factor == NULL) : status;
}

flp_status flp_linear_logp_backward_launch_chunk(const flp_packed_call *call, const flp_backward_launch_more *more, int64_t first)
{
    const flp_packed_rows rows = flp_packed_rows_chunk(call, first);
    flp_backward_execution run = begin(call, &rows);
    flp_status status = call->args->rows == 0 ? flp_packed_rows_index(call) : FLP_OK;

    run.more = more;
    run.is_handed_over = 1;
    return status == FLP_OK ? launch_rest(&run) : status;
}

flp_status flp_linear_logp_backward_end_chunk(const flp_packed_call *call, int64_t first, int is_beside)
{
    const flp_packed_rows rows = flp_packed_rows_chunk(call, first);
    const flp_backward_execution run = begin(call, &rows);

    return end_chunk(&run, is_beside);
}

flp_status flp_linear_logp_backward_launch_end(const flp_packed_call *call)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    const flp_backward_execution run = begin(call, &all);

    return launch_end(&run);
}

flp_status flp_linear_logp_backward_launch_merged(const flp_packed_call *call, const flp_backward_launch_more *more)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    flp_backward_execution run = begin(call, &all);
    flp_status status;

    run.more = more;
    run.gathers = 1;
    status = launch_rest(&run);
    if (status == FLP_OK)
        status = end_chunk(&run, 0);
    return status == FLP_OK ? launch_end(&run) : status;
}

/* The packed rows for a forward that is a call of its own: where the backward's would be in grad_hidden, which such a call does not have, these are in a part
 * of their own. */
static flp_packed_rows forwards_rows(const flp_packed_call *call)
{
    flp_packed_rows all = flp_packed_rows_all(call);

    if (flp_workspace_at(call->workspace, FLP_PART_FORWARD_ROWS)) {
        all.hidden = flp_workspace_at(call->workspace, FLP_PART_FORWARD_ROWS);
        all.stride = flp_linear_work_forward_stride(&call->plan->work);
    }
    return all;
}

/* The inputs that the backward of this forward is given, too. */
static flp_linear_logp_backward_args shared_args(const flp_linear_logp_args *forward)
{
    flp_linear_logp_backward_args args = { .stream = forward->stream };

    memcpy(&args, forward, FLP_LINEAR_INPUT_BYTES);
    return args;
}

/* grad_hidden's product of a chunk of rows, of which the forward has just stored the saved exponentials. */
static flp_status launch_product(const flp_packed_call *call, const flp_packed_rows *rows)
{
    flp_backward_execution run = begin(call, rows);

    run.inverse_factor = NULL;
    return flp_backward_run_in_forward(&run);
}

/* Where that product has parts: adds these. */
static flp_status sum_forwards_parts(const flp_packed_call *call, int64_t first, int is_beside)
{
    const flp_packed_rows rows = flp_packed_rows_chunk(call, first);
    flp_backward_execution run = begin(call, &rows);

    run.inverse_factor = NULL;
    if (run.chunks->part_columns == 0)
        return FLP_OK;
    return flp_backward_sum_parts(&run, is_beside ? FLP_STEP_CHUNK_BEFORE : FLP_STEP_FORWARD_SUM, NULL, is_beside);
}

/* The forward in chunks of rows, each followed by its product of grad_hidden, whose parts are added beside the end of the next chunk's tiles. */
static flp_status launch_forward_chunks(const flp_packed_call *call, const flp_linear_logp_args *args, const flp_saved_exp *saved_exp)
{
    const int64_t chunk = flp_linear_work_chunk_rows(&call->plan->work, args->rows);
    flp_status status = FLP_OK;
    int64_t first = 0;

    for (; status == FLP_OK && first < args->rows; first += chunk) {
        const flp_packed_rows rows = flp_packed_rows_chunk(call, first);
        const flp_linear_logp_launch_more more = { .rows = &rows, .saved_exp = saved_exp, .blanks_others = first == 0 };
        flp_linear_logp_forward forward;

        status = flp_linear_logp_prepare_forward(&call->plan->forward.common, args, &more, call->workspace, &forward);
        if (status == FLP_OK)
            status = flp_linear_logp_launch_tiles(&forward);
        if (status == FLP_OK && first > 0)
            status = sum_forwards_parts(call, first - chunk, 1);
        if (status == FLP_OK)
            status = flp_linear_logp_launch_combine(&forward);
        if (status == FLP_OK)
            status = launch_product(call, &rows);
    }
    return status == FLP_OK ? sum_forwards_parts(call, first - chunk, 0) : status;
}

/* The forward of a plan with_forward. */
static flp_status launch_forward(const flp_plan *common, const void *data, const flp_workspace *workspace)
{
    const flp_linear_logp_args *args = data;
    const flp_linear_logp_backward_args shared = shared_args(args);
    const flp_packed_call call = { flp_linear_logp_backward_plan_of(common), &shared, workspace };
    const flp_packed_rows rows = forwards_rows(&call);
    const flp_packed_gather gather = { .step = FLP_STEP_GATHER };
    const flp_plan *forward = &call.plan->forward.common;
    const flp_saved_exp saved_exp = flp_linear_logp_backward_saved_exp(&call);
    const int saves_exp = call.plan->work.chunks.saves_exp;
    const flp_linear_logp_launch_more more = { .rows = &rows, .saved_exp = saves_exp ? &saved_exp : NULL, .blanks_others = 1 };
    flp_status status = flp_packed_rows_index(&call);

    if (status == FLP_OK)
        status = flp_packed_rows_gather(&call, &rows, &gather);
    if (status == FLP_OK && saves_exp)
        status = flp_linear_logp_launch_offsets(forward, args, &more, workspace);
    if (status == FLP_OK && call.plan->work.chunks.in_forward)
        return launch_forward_chunks(&call, args, &saved_exp);
    return status == FLP_OK ? flp_linear_logp_launch_with(forward, args, &more, workspace) : status;
}

static flp_status find_targets(const flp_packed_call *call)
{
    flp_linear_logp_args inputs = { .stream = call->args->stream };

    memcpy(&inputs, call->args, FLP_LINEAR_INPUT_BYTES);
    return flp_linear_logp_shard_find_targets(call->plan->shard_targets, &call->plan->problem.forward, &inputs, call->workspace);
}

/* The whole backward; for a plan with_forward, what its forward has not done. rows >= 0. */
static flp_status launch(const flp_plan *plan, const void *args, const flp_workspace *workspace)
{
    const flp_backward_launch_more none = { 0 };
    const flp_packed_call call = { flp_linear_logp_backward_plan_of(plan), args, workspace };
    const flp_packed_rows all = flp_packed_rows_all(&call);
    flp_backward_execution run = begin(&call, &all);
    flp_status status = FLP_OK;

    run.more = &none;
    run.is_handed_over = run.problem->with_forward;
    run.takes = run.problem->with_forward && all.rows > 0;
    run.gathers = 1;
    if (run.takes)
        run.rows.count = &flp_backward_counts_of(&run)->taken;
    if (all.rows > 0 && run.call.plan->shard_targets)
        status = find_targets(&call);
    if (status == FLP_OK && !run.takes)
        status = flp_packed_rows_index(&call);
    if (status == FLP_OK)
        status = launch_rest(&run);
    if (status == FLP_OK)
        status = end_chunk(&run, 0);
    return status == FLP_OK ? launch_end(&run) : status;
}

#define AT(argument) offsetof(flp_linear_logp_backward_args, argument)
#define ASKED(field) offsetof(flp_linear_logp_backward_problem, field)

/* For the forward and the backward of a plan with_forward, which share a workspace of the caller's. */
static flp_status check_workspace(const flp_plan *plan, int64_t rows, const void *workspace, size_t bytes, const char *wanted)
{
    if (!workspace)
        return flp_status_fail(FLP_BAD_ARGUMENT, "workspace: got NULL, wanted %s", wanted);
    return flp_arguments_check_workspace(workspace, bytes, flp_plan_workspace_bytes(plan, rows), rows);
}

/* ---- the forward of a plan with_forward ---- */

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
    const flp_linear_logp_backward_args shared = shared_args(args);

    ((flp_backward_cpu_workspace *)args->workspace)->counts.mark = flp_packed_rows_mark(plan, &shared);
}

/* The rows that are not valid in the forward stay NaN: if such a row is valid in the backward, its gradients are NaN, as on the other paths. */
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

/* Without arrays: check_forward checks these against the forward's problem, which is part of the plan. */
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
    .launch = launch_forward,
    .run_on_cpu = run_forward_on_cpu,
};

flp_status flp_linear_logp_backward_execute_forward_sized(flp_plan *plan, const flp_linear_logp_args *args, const flp_sizes *sizes)
{
    return flp_call_execute(&forward_calls, plan, args, sizes);
}

/* The forward writes logp, lse and entropy to the arrays from which the backward then reads them. */
static flp_status execute_forward_before(flp_plan *plan, const void *given)
{
    const flp_linear_logp_backward_args *args = given;
    flp_linear_logp_args forward = { .logp = (float *)(uintptr_t)args->logp,
                                     .lse = (float *)(uintptr_t)args->lse,
                                     .entropy = (float *)(uintptr_t)args->entropy,
                                     .workspace = args->workspace,
                                     .workspace_bytes = args->workspace_bytes,
                                     .stream = args->stream };

    memcpy(&forward, args, FLP_LINEAR_INPUT_BYTES);
    return flp_linear_logp_backward_plan_of(plan)->problem.with_forward ? flp_linear_logp_backward_execute_forward(plan, &forward) : FLP_OK;
}

/* ---- the backward ---- */

static const flp_argument list[] = { { "grad_weight", AT(grad_weight), .dtype_at = ASKED(grad_weight), .asked_at = ASKED(grad_weight), .decides = 1,
                                       .by_elements = 1, .extent_at = ASKED(grad_weight_stride), .entries_at = ASKED(forward.vocab), .without_rows = 1 },
                                     { "grad_bias", AT(grad_bias), .dtype_at = ASKED(grad_bias), .asked_at = ASKED(grad_bias), .without_rows = 1,
                                       .extent_at = ASKED(forward.vocab), .entries_at = ASKED(forward.vocab) },
                                     { "grad_hidden", AT(grad_hidden), .dtype_at = ASKED(grad_hidden), .asked_at = ASKED(grad_hidden), .decides = 1,
                                       .by_elements = 1, .extent_at = ASKED(grad_hidden_stride) },
                                     { "lse", AT(lse), .bytes = sizeof(float), .values = FLP_VALUES_LSE },
                                     { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1, .optional_at = ASKED(with_forward),
                                       .values = FLP_VALUES_ABSENT },
                                     { "g_logp", AT(g_logp), .bytes = sizeof(float), .values = FLP_VALUES_NORMAL },
                                     { "g_lse", AT(g_lse), .bytes = sizeof(float), .asked_at = ASKED(g_lse), .values = FLP_VALUES_NORMAL },
                                     { "g_entropy", AT(g_entropy), .bytes = sizeof(float), .asked_at = ASKED(g_entropy), .values = FLP_VALUES_NORMAL },
                                     { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(g_entropy), .values = FLP_VALUES_ENTROPY },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, list, NULL };
static const flp_arguments arguments = {
    .args_struct = &flp_sized_linear_logp_backward_args,
    .arrays = arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_logp_backward_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_logp_backward_args),
    .target_dtype_at = ASKED(forward.target_dtype),
    .vocab_at = ASKED(forward.vocab),
    .vocab_total_at = ASKED(forward.vocab_total),
};

static flp_status check(const flp_plan *plan, const void *normal, const void *given, void *work)
{
    const flp_linear_logp_backward_problem *problem = normal;
    const flp_linear_logp_backward_args *args = given;

    (void)work;
    if (args->multiprocessors_left < 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "multiprocessors_left: got %" PRId64 ", wanted 0 or more", args->multiprocessors_left);
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

/* A forward has already counted the bad targets, and its shares say more of the rows than lse does. */
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

const flp_operator_calls flp_linear_logp_backward_calls = {
    .op = &flp_linear_logp_backward_operator,
    .arguments = &arguments,
    .check = check,
    .writes_without_rows = 1,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
    .execute_before = execute_forward_before,
    .tune = flp_tune_first_use,
};
FLP_CALL_FUNCTIONS(flp_linear_logp_backward)
