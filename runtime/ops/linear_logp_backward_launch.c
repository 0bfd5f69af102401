/* linear_logp's backward on a GPU path, in one go or in two halves. */
#include "ops/linear_logp_backward_launch.h"

#include "ops/linear_logp_backward_execution.h"

/* The rows that count have been placed. What a forward has left is looked at before it is used; with a stash the rows are gathered when their
 * factors are known. */
static flp_status launch_rest(const flp_backward_execution *run)
{
    flp_status status = flp_backward_differentiate_rows(run);

    if (status == FLP_OK && run->gathers && !run->row_factor && run->args->rows > 0)
        status = flp_backward_gather_rows(run, FLP_STEP_GATHER_AGAIN, 1);
    if (status == FLP_OK && run->plan->terms && run->args->rows > 0)
        status = flp_backward_order_targets(run);
    if (status == FLP_OK)
        status = flp_backward_run_chunks(run);
    if (status == FLP_OK && run->plan->finish && run->args->rows > 0 && !flp_backward_is_direct(run))
        status = flp_backward_finish_grad_hidden(run);
    return status;
}

/* Behind the last chunk of rows; run: of all of them. */
static flp_status launch_end(const flp_backward_execution *run)
{
    return flp_backward_is_direct(run) && run->all_rows > 0 ? flp_backward_spread_grad_hidden(run) : FLP_OK;
}

static flp_compact_rows compact_rows(const flp_backward_execution *run)
{
    return (flp_compact_rows){
        .hidden = run->compact, .stride = run->compact_stride, .row = (int32_t *)flp_backward_at(run, FLP_PART_ROW) + run->first,
        .place = flp_backward_at(run, FLP_PART_PLACE), .count = run->count, .first = run->first, .rows = run->args->rows,
        .gradient = flp_backward_at(run, FLP_PART_GRADIENT),
    };
}

flp_status flp_linear_logp_backward_launch_rows(const flp_plan *plan, const flp_linear_logp_backward_args *args, const flp_workspace *workspace)
{
    const flp_backward_execution run = flp_backward_begin(plan, args, workspace);
    flp_status status = flp_backward_place_rows(&run);

    /* With a stash grad_hidden's sums are zeroed later: their room may hold what the forward needs. */
    return status == FLP_OK ? flp_backward_gather_rows(&run, FLP_STEP_GATHER, run.row_factor == NULL) : status;
}

flp_compact_rows flp_linear_logp_backward_all_rows(const flp_plan *plan, const flp_linear_logp_backward_args *args, const flp_workspace *workspace)
{
    const flp_backward_execution all = flp_backward_begin(plan, args, workspace);

    return compact_rows(&all);
}

flp_compact_rows flp_linear_logp_backward_rows_from(const flp_plan *plan, const flp_linear_logp_backward_args *args, int64_t first, const flp_workspace *workspace)
{
    const flp_backward_execution all = flp_backward_begin(plan, args, workspace);
    flp_linear_logp_backward_args part;
    const flp_backward_execution run = flp_backward_rows_from(&all, first, &part);

    return compact_rows(&run);
}

flp_stash flp_linear_logp_backward_stash(const flp_plan *plan, int64_t rows, const flp_workspace *workspace)
{
    const flp_linear_work *work = &flp_linear_logp_backward_plan_of(plan)->work;

    return (flp_stash){
        .terms = flp_workspace_at(workspace, FLP_PART_DLOGIT), .rows = flp_linear_work_chunk_rows(work, rows), .columns = work->chunks.stash_columns,
        .offset = flp_workspace_at(workspace, FLP_PART_STASH_OFFSET), .overflow = flp_workspace_at(workspace, FLP_PART_OVERFLOW),
        .block_overflow = flp_workspace_at(workspace, FLP_PART_BLOCK_OVERFLOW),
    };
}

flp_status flp_linear_logp_backward_launch_chunk(const flp_plan *plan, const flp_linear_logp_backward_args *args,
                                                 const flp_backward_launch_more *more, int64_t first, const flp_workspace *workspace)
{
    flp_backward_execution all = flp_backward_begin(plan, args, workspace), run;
    flp_linear_logp_backward_args part;
    flp_status status = FLP_OK;

    all.more = more;
    all.is_handed_over = 1;
    if (args->rows == 0)
        status = flp_backward_place_rows(&all);
    run = flp_backward_rows_from(&all, first, &part);
    return status == FLP_OK ? launch_rest(&run) : status;
}

flp_status flp_linear_logp_backward_launch_end(const flp_plan *plan, const flp_linear_logp_backward_args *args, const flp_workspace *workspace)
{
    const flp_backward_execution run = flp_backward_begin(plan, args, workspace);

    return launch_end(&run);
}

/* The compact rows lie where they need not stay: the backward's place for them may be grad_hidden. */
flp_status flp_linear_logp_backward_launch_forward(const flp_plan *common, const void *data, const flp_workspace *workspace)
{
    const flp_linear_logp_args *args = data;
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    const flp_linear_logp_backward_args shared = { .rows = args->rows, .hidden = args->hidden, .target = args->target,
                                                   .ignore_index = args->ignore_index, .temperature = args->temperature,
                                                   .row_temperature = args->row_temperature, .stream = args->stream, .flags = args->flags };
    const flp_stash stash = flp_linear_logp_backward_stash(common, args->rows, workspace);
    flp_backward_execution run = flp_backward_begin(common, &shared, workspace);
    flp_compact_rows compact;
    const flp_linear_logp_launch_more more = { .compact = &compact, .stash = run.chunks->stashes ? &stash : NULL, .blanks_others = 1 };
    flp_status status;

    if (flp_workspace_at(workspace, FLP_PART_FORWARD_ROWS)) {
        run.compact = flp_workspace_at(workspace, FLP_PART_FORWARD_ROWS);
        run.compact_stride = flp_linear_work_forward_stride(&plan->work);
    }
    compact = compact_rows(&run);
    status = flp_backward_place_rows(&run);
    if (status == FLP_OK)
        status = flp_backward_gather_rows(&run, FLP_STEP_GATHER, 0);
    if (status == FLP_OK && run.chunks->stashes)
        status = flp_linear_logp_launch_offsets(&plan->forward.common, args, &more, workspace);
    return status == FLP_OK ? flp_linear_logp_launch_with(&plan->forward.common, args, &more, workspace) : status;
}

flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace)
{
    const flp_backward_launch_more none = { 0 };
    flp_backward_execution run = flp_backward_begin(plan, args, workspace);
    flp_status status = FLP_OK;

    run.more = &none;
    run.is_handed_over = run.problem->with_forward;
    run.takes = run.problem->with_forward && run.args->rows > 0;
    if (run.takes)
        run.count = &flp_backward_counts_of(&run)->taken;
    else
        status = flp_backward_place_rows(&run);
    run.gathers = 1;
    if (status == FLP_OK)
        status = launch_rest(&run);
    return status == FLP_OK ? launch_end(&run) : status;
}
