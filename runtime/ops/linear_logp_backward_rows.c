/* linear_logp's backward on a GPU path: the launches that prepare rows and bring grad_hidden home. */
#include "base/dtype.h"
#include "ops/arguments.h"
#include "ops/call.h"
#include "ops/linear_logp_backward_execution.h"
#include "ops/linear_logp_backward_mark.h"
#include "params/linear_logp_backward.h"

enum {
    BLOCKS_A_MULTIPROCESSOR = 8 /* of the kernels that only move rows */
};

flp_backward_execution flp_backward_begin(const flp_plan *common, const flp_linear_logp_backward_args *args, const flp_workspace *workspace)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    flp_backward_execution run = {
        .plan = plan, .problem = &plan->problem, .forward = &plan->problem.forward, .args = args, .chunks = &plan->work.chunks,
        .workspace = workspace, .compact_stride = flp_linear_work_compact_stride(&plan->work), .all_rows = args->rows,
    };

    run.count = &flp_backward_counts_of(&run)->count;
    run.factor = &flp_backward_counts_of(&run)->factor;
    run.inverse_factor = &flp_backward_counts_of(&run)->inverse_factor;
    run.compact = flp_backward_at(&run, FLP_PART_COMPACT);
    if (!run.compact)
        run.compact = args->rows > 0 ? args->grad_hidden : workspace->memory;
    run.row_factor = flp_backward_at(&run, FLP_PART_ROW_FACTOR);
    return run;
}

flp_backward_execution flp_backward_rows_from(const flp_backward_execution *all, int64_t first, flp_linear_logp_backward_args *args)
{
    const int64_t most = all->chunks->row_chunk, left = all->all_rows - first;
    flp_backward_execution run = *all;

    if (most == 0 || all->all_rows <= most)
        return run;
    *args = *all->args;
    args->rows = left < most ? left : most;
    run.args = args;
    run.first = first;
    run.count = (const int32_t *)flp_backward_at(all, FLP_PART_CHUNK_COUNTS) + first / most;
    run.compact += first * all->compact_stride * flp_dtype_bytes(all->forward->dtype);
    return run;
}

static unsigned moving_blocks(const flp_backward_execution *run)
{
    const int64_t most = (int64_t)run->plan->common.device.facts.multiprocessors * BLOCKS_A_MULTIPROCESSOR;

    return (unsigned)(run->args->rows < 1 ? 1 : run->args->rows < most ? run->args->rows : most);
}

static void use_stash(const flp_backward_execution *run, flp_backward_rows_params *params)
{
    params->row_factor = run->row_factor;
    params->stash_columns = (int32_t)run->chunks->stash_columns;
    params->stash_offset = (float *)flp_backward_at(run, FLP_PART_STASH_OFFSET) + run->first;
}

/* Where the rows of the chunk stand in hidden. */
static int32_t *source_rows(const flp_backward_execution *run)
{
    return (int32_t *)flp_backward_at(run, FLP_PART_ROW) + run->first;
}

/* A plan without rows leaves nothing. */
static void use_mark(const flp_backward_execution *run, flp_backward_rows_params *params)
{
    flp_backward_counts *counts = flp_backward_counts_of(run);

    if (!run->problem->with_forward || run->args->rows == 0)
        return;
    params->mark = &counts->mark;
    params->mark_value = flp_backward_mark(&run->plan->common, run->args);
    params->count = &counts->count;
    params->taken = &counts->taken;
    params->unmatched = (flp_tally *)(uintptr_t)flp_tally_at(&run->plan->common, FLP_TALLY_UNMATCHED);
}

static flp_status launch_rows(const flp_backward_execution *run, flp_linear_step step, unsigned blocks)
{
    const int places = step == FLP_STEP_PLACE_ROWS;
    const flp_linear_logp_backward_args *args = run->args;
    flp_backward_rows_params params = {
        .target = args->target, .row_temperature = args->row_temperature, .lse = args->lse, .logp = args->logp, .entropy = args->entropy,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .g_sum = run->more ? run->more->g_sum : NULL,
        .gradient = flp_backward_at(run, FLP_PART_GRADIENT), .row = source_rows(run),
        .place = flp_backward_at(run, FLP_PART_PLACE), .count = (int32_t *)(uintptr_t)run->count,
        .factor = run->factor, .inverse_factor = run->inverse_factor,
        .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags),
        .target_errors = run->problem->with_forward ? NULL : (flp_tally *)(uintptr_t)run->plan->common.target_errors,
        .rows = (int32_t)args->rows, .vocab = (int32_t)run->forward->vocab, .target_bytes = flp_dtype_bytes(run->forward->target_dtype),
        .scale = flp_arguments_scale(args->temperature), .inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature)),
        .scales = run->forward->dtype == FLP_F16, .places = places, .differentiates = !places, .is_handed_over = run->is_handed_over,
        .targets = flp_backward_at(run, FLP_PART_TARGETS), .chunk_counts = flp_backward_at(run, FLP_PART_CHUNK_COUNTS),
        .chunk_rows = (int32_t)flp_linear_work_chunk_rows(&run->plan->work, run->all_rows),
    };
    void *parameters[] = { &params };

    use_mark(run, &params);
    if (run->row_factor)
        use_stash(run, &params);
    flp_workspace_begin_step(run->workspace, step);
    return flp_call_launch(run->plan->rows, blocks, args->stream, parameters);
}

flp_status flp_backward_place_rows(const flp_backward_execution *run)
{
    return launch_rows(run, FLP_STEP_PLACE_ROWS, 1);
}

flp_status flp_backward_differentiate_rows(const flp_backward_execution *run)
{
    const int64_t threads = run->plan->rows->manifest.threads;

    return launch_rows(run, FLP_STEP_DIFFERENTIATE, (unsigned)(run->args->rows < 1 ? 1 : (run->args->rows + threads - 1) / threads));
}

flp_status flp_backward_order_targets(const flp_backward_execution *run)
{
    const int64_t rows = run->plan->terms->manifest.threads / FLP_TERMS_ROW_THREADS; /* of a block */
    flp_backward_terms_params params = {
        .targets = flp_backward_at(run, FLP_PART_TARGETS), .row = source_rows(run), .row_count = run->count,
        .terms = flp_backward_at(run, FLP_PART_TERMS), .rows = (int32_t)run->args->rows,
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->workspace, FLP_STEP_ORDER_TARGETS);
    return flp_call_launch(run->plan->terms, (unsigned)((run->args->rows + rows - 1) / rows), run->args->stream, parameters);
}

/* Every backward gathers at least once, behind the kernel that looks at the mark: there it is cleared. */
static unsigned long long *taken_mark(const flp_backward_execution *run)
{
    return run->takes ? &flp_backward_counts_of(run)->mark : NULL;
}

/* hidden's rows that count, times their factors (NULL: 1), into compact; sums (may be NULL) to 0. */
static flp_status gather(const flp_backward_execution *run, flp_linear_step step, float *sums, const float *row_factor)
{
    flp_backward_gather_params params = {
        .hidden = run->args->hidden, .compact = run->compact, .sums = sums, .hidden_stride = run->forward->hidden_stride,
        .compact_stride = run->compact_stride, .row = source_rows(run), .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .row_factor = row_factor, .mark = taken_mark(run),
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->workspace, step);
    return flp_call_launch(run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_gather_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums)
{
    return gather(run, step, with_sums ? flp_backward_at(run, FLP_PART_SUMS) : NULL, NULL);
}

flp_status flp_backward_scale_rows(const flp_backward_execution *run)
{
    return gather(run, FLP_STEP_SCALE_ROWS, NULL, run->row_factor);
}

/* ---- grad_hidden, from where its products are to its rows' places ---- */

static flp_status launch_finish(const flp_backward_execution *run, flp_linear_step step, flp_backward_finish_params *params)
{
    void *parameters[] = { params };

    params->sums_stride = params->hidden_size = (int32_t)run->forward->hidden;
    params->out = run->args->grad_hidden;
    params->out_stride = run->problem->grad_hidden_stride;
    params->place = flp_backward_at(run, FLP_PART_PLACE);
    params->rows = (int32_t)run->all_rows;
    flp_workspace_begin_step(run->workspace, step);
    return flp_call_launch(run->plan->finish, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run)
{
    flp_backward_finish_params params = {
        .sums = flp_backward_at(run, FLP_PART_SUMS), .targets = flp_backward_at(run, FLP_PART_TARGETS), .weight = run->args->weight,
        .weight_stride = run->forward->weight_stride, .factor = run->inverse_factor, .first_place = (int32_t)run->first,
        .places = (int32_t)run->args->rows,
    };

    return launch_finish(run, FLP_STEP_FINISH, &params);
}

/* The products of all rows that count, into the stash. */
static flp_status stage_rows(const flp_backward_execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = flp_backward_at(run, FLP_PART_DLOGIT), .hidden_stride = run->compact_stride,
        .compact_stride = run->forward->hidden, .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .skips_whole = 1, .mark = taken_mark(run),
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->workspace, FLP_STEP_STAGE);
    return flp_call_launch(run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_spread_grad_hidden(const flp_backward_execution *run)
{
    flp_backward_finish_params params = {
        .sums = flp_backward_at(run, FLP_PART_DLOGIT), .count = run->count, .places = (int32_t)run->args->rows,
    };
    flp_status status = stage_rows(run);

    return status == FLP_OK ? launch_finish(run, FLP_STEP_SPREAD, &params) : status;
}
