/* linear_logp over shards of the vocabulary: a shard's launches other than the tile kernel's, and the merge of all shards' partials by the plan of one of
 * them. */
#include "operators/linear/linear_logp.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/arguments.h"
#include "core/call.h"
#include "operators/linear/row_set.h"
#include "operators/linear/vocab_shard.h"

flp_status flp_linear_logp_shard_find_targets(const flp_kernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs,
                                              const flp_workspace *workspace)
{
    flp_shard_targets_params params = {
        .target = inputs->target,
        .entry = flp_workspace_at(workspace, FLP_PART_ENTRY),
        .rows = inputs->rows,
        .ignore_index = inputs->ignore_index,
        .vocab_first = problem->vocab_first,
        .vocab_total = problem->vocab_total,
        .vocab = (int32_t)problem->vocab,
        .target_bytes = flp_dtype_bytes(problem->target_dtype),
        .ignores = flp_arguments_ignore(inputs->flags),
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(workspace, FLP_STEP_SHARD_TARGETS);
    return flp_call_launch(kernel, (unsigned)flp_int64_divide_up(inputs->rows, kernel->manifest.threads), inputs->stream, parameters);
}

flp_status flp_linear_logp_shard_leave_partials(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *workspace)
{
    flp_linear_partials_params params = {
        .partial = flp_workspace_at(workspace, FLP_PART_PARTIAL),
        .best = flp_workspace_at(workspace, FLP_PART_BEST),
        .moment = flp_workspace_at(workspace, FLP_PART_MOMENT),
        .logit_sums = flp_workspace_at(workspace, FLP_PART_LOGIT_SUMS),
        .target_logit = flp_workspace_at(workspace, FLP_PART_TARGET_LOGIT),
        .entry = flp_workspace_at(workspace, FLP_PART_ENTRY),
        .out = (flp_linear_partial *)(void *)args->partials,
        .rows = args->rows,
        .vocab = (int32_t)plan->problem.vocab,
        .vocab_first = (int32_t)plan->problem.vocab_first,
        .splits = plan->split.splits,
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(workspace, FLP_STEP_COMBINE);
    return flp_call_launch(plan->combine, flp_linear_logp_plan_shape(plan, args->rows).combine_blocks, args->stream, parameters);
}

/* ---- the merge ---- */

#define AT(argument) offsetof(flp_linear_logp_merge_args, argument)
#define ASKED(field) offsetof(flp_linear_logp_problem, field)

static const flp_argument list[] = { { "partials", AT(partials), .bytes = sizeof(float) },
                                     { "target", AT(target), .dtype_at = ASKED(target_dtype) },
                                     { "logp", AT(logp), .bytes = sizeof(float), .is_optional = 1 },
                                     { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1 },
                                     { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1 },
                                     { "argmax", AT(argmax), .bytes = sizeof(int32_t), .asked_at = ASKED(argmax), .is_optional = 1 },
                                     { .name = NULL } };
static const flp_argument *const arrays[] = { list, NULL };

static const flp_arguments arguments = {
    .args_struct = &flp_sized_linear_logp_merge_args,
    .arrays = arrays,
    .stream_at = AT(stream),
    .target_at = AT(target),
    .ignore_index_at = AT(ignore_index),
    .flags_at = AT(flags),
    .target_dtype_at = ASKED(target_dtype),
    .vocab_at = ASKED(vocab),
    .vocab_total_at = ASKED(vocab_total),
};

flp_status flp_linear_logp_shard_check_ranks(int64_t ranks)
{
    return ranks >= 1 && ranks <= INT32_MAX ? FLP_OK : flp_status_fail(FLP_BAD_ARGUMENT, "ranks: got %" PRId64 ", wanted at least 1", ranks);
}

static flp_status check(const flp_plan *plan, const void *normal, const void *given, void *work)
{
    const flp_linear_logp_problem *problem = normal;
    const flp_linear_logp_merge_args *args = given;

    (void)plan;
    (void)work;
    if (problem->vocab_total == 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "problem.vocab_total: got 0, wanted that of a shard: nothing else leaves partials");
    return flp_linear_logp_shard_check_ranks(args->ranks);
}

/* ---- the CPU path ---- */

enum { UNIT_ROWS = 1024 };

typedef struct {
    const flp_linear_logp_problem *problem;
    const flp_linear_logp_merge_args *args;
    flp_linear_logp_args inputs; /* of which target, ignore_index and flags are read */
} job;

static flp_row_kind kind_of(const job *work, int64_t row)
{
    return flp_row_kind_of(work->problem, &work->inputs, flp_row_set_target(work->problem, &work->inputs, row));
}

static void merge_row(const job *work, int64_t row)
{
    const flp_linear_logp_merge_args *args = work->args;
    const flp_row_kind kind = kind_of(work, row);
    const flp_vocab_shard_row merged = flp_vocab_shard_merge((const flp_linear_partial *)(const void *)args->partials + row, args->ranks, args->rows);

    if (args->logp)
        args->logp[row] = kind == FLP_ROW_IGNORED ? 0 : (float)merged.shares.logp;
    if (args->lse)
        args->lse[row] = (float)merged.shares.lse;
    if (args->entropy)
        args->entropy[row] = (float)merged.shares.entropy;
    if (args->argmax)
        args->argmax[row] = merged.largest_index;
}

static void merge_unit(void *data, int64_t unit, int thread)
{
    const job *work = data;

    (void)thread;
    for (int64_t row = unit * UNIT_ROWS; row < (unit + 1) * UNIT_ROWS && row < work->args->rows; row++)
        merge_row(work, row);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *given, int64_t *bad_count, int64_t *bad_first)
{
    const flp_linear_logp_merge_args *args = given;
    job work = { flp_plan_problem(plan), args, { .target = args->target, .ignore_index = args->ignore_index, .flags = args->flags } };

    for (int64_t row = 0; row < args->rows; row++)
        if (kind_of(&work, row) == FLP_ROW_BAD)
            flp_row_count_bad(row, bad_count, bad_first);
    flp_thread_pool_run(plan->context->pool, (args->rows + UNIT_ROWS - 1) / UNIT_ROWS, merge_unit, &work);
    return FLP_OK;
}

/* ---- calls ---- */

flp_status flp_linear_logp_shard_merge(const flp_linear_logp_plan *plan, const flp_linear_logp_merge_args *args)
{
    flp_linear_merge_params params = {
        .partials = (const flp_linear_partial *)(const void *)args->partials,
        .target = args->target,
        .logp = args->logp,
        .lse = args->lse,
        .entropy = args->entropy,
        .argmax = args->argmax,
        .target_errors = (flp_tally *)(uintptr_t)plan->common.target_errors,
        .rows = args->rows,
        .ignore_index = args->ignore_index,
        .vocab_total = plan->problem.vocab_total,
        .ranks = args->ranks,
        .target_bytes = flp_dtype_bytes(plan->problem.target_dtype),
        .ignores = flp_arguments_ignore(args->flags),
    };
    void *parameters[] = { &params };

    return flp_call_launch(plan->merge, (unsigned)flp_int64_divide_up(args->rows, plan->merge->manifest.threads), args->stream, parameters);
}

static flp_status launch(const flp_plan *plan, const void *args, const flp_workspace *workspace)
{
    (void)workspace;
    return flp_linear_logp_shard_merge(flp_linear_logp_plan_of(plan), args);
}

static const flp_operator_calls calls = {
    .op = &flp_linear_logp_operator,
    .arguments = &arguments,
    .check = check,
    .takes_no_workspace = 1,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
};

flp_status flp_linear_logp_merge_sized(flp_context *context, const flp_linear_logp_problem *problem, const flp_linear_logp_merge_args *args,
                                       const flp_sizes *sizes)
{
    return flp_call_run(&calls, context, problem, args, sizes);
}

flp_status flp_linear_logp_execute_merge_sized(flp_plan *plan, const flp_linear_logp_merge_args *args, const flp_sizes *sizes)
{
    return flp_call_execute(&calls, plan, args, sizes);
}
