/* linear_logp's backward on a GPU path, in one go or in two halves. */
#include "operators/linear/linear_logp_backward_launch.h"

#include "operators/linear/linear_logp_backward_execution.h"

/* more is left to be filled in. */
static flp_backward_execution begin(const flp_packed_call *call, const flp_packed_rows *rows)
{
    const flp_linear_logp_backward_plan *plan = call->plan;
    flp_backward_execution run = { .call = *call, .rows = *rows, .problem = &plan->problem, .forward = &plan->problem.forward, .chunks = &plan->work.chunks };

    run.factor = &flp_backward_counts_of(&run)->factor;
    run.inverse_factor = &flp_backward_counts_of(&run)->inverse_factor;
    run.row_factor = flp_backward_at(&run, FLP_PART_ROW_FACTOR);
    return run;
}

/* The valid rows are known. What a forward has left is looked at before it is used; with saved exponentials the rows are gathered when their factors are
 * known. */
static flp_status launch_rest(const flp_backward_execution *run)
{
    const flp_linear_logp_backward_plan *plan = run->call.plan;
    flp_status status = flp_backward_differentiate_rows(run);

    if (status == FLP_OK && run->gathers && !run->row_factor && run->rows.rows > 0)
        status = flp_backward_gather_rows(run, FLP_STEP_GATHER_AGAIN, 1);
    if (status == FLP_OK && plan->target_order && run->rows.rows > 0)
        status = flp_backward_order_targets(run);
    if (status == FLP_OK)
        status = flp_backward_run_chunks(run);
    if (status == FLP_OK && plan->finish && run->rows.rows > 0 && !flp_backward_is_direct(run))
        status = flp_backward_finish_grad_hidden(run);
    return status;
}

/* Behind the last chunk of rows; run: of all of them. */
static flp_status launch_end(const flp_backward_execution *run)
{
    return flp_backward_is_direct(run) && run->rows.rows > 0 ? flp_backward_scatter_grad_hidden(run) : FLP_OK;
}

flp_status flp_linear_logp_backward_launch_rows(const flp_packed_call *call)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    const flp_backward_execution run = begin(call, &all);
    flp_status status = flp_packed_rows_index(call);

    /* With saved exponentials grad_hidden's sums are zeroed later: their room may hold what the forward needs. */
    return status == FLP_OK ? flp_backward_gather_rows(&run, FLP_STEP_GATHER, run.row_factor == NULL) : status;
}

flp_saved_exp flp_linear_logp_backward_saved_exp(const flp_packed_call *call)
{
    const flp_linear_work *work = &call->plan->work;
    const flp_workspace *workspace = call->workspace;

    return (flp_saved_exp){
        .terms = flp_workspace_at(workspace, FLP_PART_DLOGIT),
        .rows = flp_linear_work_chunk_rows(work, call->args->rows),
        .columns = work->chunks.saved_columns,
        .offset = flp_workspace_at(workspace, FLP_PART_SAVED_EXP_OFFSET),
        .overflow = flp_workspace_at(workspace, FLP_PART_OVERFLOW),
        .block_overflow = flp_workspace_at(workspace, FLP_PART_BLOCK_OVERFLOW),
    };
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

flp_status flp_linear_logp_backward_launch_end(const flp_packed_call *call)
{
    const flp_packed_rows all = flp_packed_rows_all(call);
    const flp_backward_execution run = begin(call, &all);

    return launch_end(&run);
}

/* The packed rows lie where they need not stay: the backward's place for them may be grad_hidden. */
static flp_packed_rows forwards_rows(const flp_packed_call *call)
{
    flp_packed_rows all = flp_packed_rows_all(call);

    if (flp_workspace_at(call->workspace, FLP_PART_FORWARD_ROWS)) {
        all.hidden = flp_workspace_at(call->workspace, FLP_PART_FORWARD_ROWS);
        all.stride = flp_linear_work_forward_stride(&call->plan->work);
    }
    return all;
}

flp_status flp_linear_logp_backward_launch_forward(const flp_plan *common, const void *data, const flp_workspace *workspace)
{
    const flp_linear_logp_args *args = data;
    const flp_linear_logp_backward_args shared = { .rows = args->rows,
                                                   .hidden = args->hidden,
                                                   .target = args->target,
                                                   .ignore_index = args->ignore_index,
                                                   .temperature = args->temperature,
                                                   .row_temperature = args->row_temperature,
                                                   .stream = args->stream,
                                                   .flags = args->flags };
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
    return status == FLP_OK ? flp_linear_logp_launch_with(forward, args, &more, workspace) : status;
}

flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace)
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
    else
        status = flp_packed_rows_index(&call);
    if (status == FLP_OK)
        status = launch_rest(&run);
    return status == FLP_OK ? launch_end(&run) : status;
}
