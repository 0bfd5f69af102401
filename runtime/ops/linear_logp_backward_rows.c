/* linear_logp's backward on a GPU path: the launches that prepare rows and bring grad_hidden home. */
#include "cpu/convert.h"
#include "ops/arguments.h"
#include "ops/launch.h"
#include "ops/linear_logp_backward_execution.h"
#include "ops/linear_logp_backward_params.h"

enum {
    BLOCKS_A_MULTIPROCESSOR = 8, /* of the kernels that only move rows */
    ORDER_THREADS = 8            /* for each row; KEEP IN STEP: templates/any/linear_logp_backward_terms.cuh */
};

flp_backward_execution flp_backward_begin(const flp_plan *common, const flp_linear_logp_backward_args *args, char *workspace)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    flp_backward_execution run = {
        .plan = plan, .problem = &plan->problem, .forward = &plan->problem.forward, .args = args, .workspace = workspace,
        .layout = flp_linear_logp_backward_plan_lay_out(plan, args->rows), .all_rows = args->rows,
    };

    run.count = flp_backward_inside(&run, run.layout.counts);
    run.factor = (float *)flp_backward_inside(&run, run.layout.counts) + 1;
    run.inverse_factor = run.factor + 1;
    run.compact = run.layout.compact >= 0 ? flp_backward_inside(&run, run.layout.compact) : args->rows > 0 ? args->grad_hidden : workspace;
    run.row_factor = run.layout.stash_columns > 0 ? flp_backward_inside(&run, run.layout.row_factor) : NULL;
    return run;
}

flp_backward_execution flp_backward_rows_from(const flp_backward_execution *all, int64_t first, flp_linear_logp_backward_args *args)
{
    const int64_t most = all->layout.chunk_rows, left = all->all_rows - first;
    flp_backward_execution run = *all;

    if (all->plan->row_chunk == 0 || all->all_rows <= all->plan->row_chunk)
        return run;
    *args = *all->args;
    args->rows = left < most ? left : most;
    run.args = args;
    run.first = first;
    run.count = (const int32_t *)flp_backward_inside(all, all->layout.chunk_counts) + first / most;
    run.compact += first * all->layout.compact_stride * flp_dtype_bytes(all->forward->dtype);
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
    params->stash_columns = (int32_t)run->layout.stash_columns;
    params->stash_offset = (float *)flp_backward_inside(run, run->layout.offset) + run->first;
}

/* Where the rows of the chunk stand in hidden. */
static int32_t *source_rows(const flp_backward_execution *run)
{
    return (int32_t *)flp_backward_inside(run, run->layout.row) + run->first;
}

static flp_status launch_rows(const flp_backward_execution *run, int places, unsigned blocks)
{
    const flp_linear_logp_backward_args *args = run->args;
    flp_backward_rows_params params = {
        .target = args->target, .row_temperature = args->row_temperature, .lse = args->lse, .logp = args->logp, .entropy = args->entropy,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .g_sum = run->more ? run->more->g_sum : NULL,
        .gradient = flp_backward_inside(run, run->layout.gradient), .row = source_rows(run),
        .place = flp_backward_inside(run, run->layout.place), .count = (int32_t *)(uintptr_t)run->count,
        .factor = run->factor, .inverse_factor = run->inverse_factor,
        .ignore_index = args->ignore_index, .ignores = flp_arguments_ignore(args->flags),
        .target_errors = run->problem->with_forward ? NULL : (unsigned long long *)(uintptr_t)run->plan->common.target_errors,
        .rows = (int32_t)args->rows, .vocab = (int32_t)run->forward->vocab, .target_bytes = flp_dtype_bytes(run->forward->target_dtype),
        .scale = flp_arguments_scale(args->temperature), .inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature)), .scales = run->forward->dtype == FLP_F16,
        .places = places, .differentiates = !places, .is_handed_over = run->is_handed_over, .targets = flp_backward_inside(run, run->layout.targets),
        .chunk_counts = flp_backward_inside(run, run->layout.chunk_counts), .chunk_rows = (int32_t)run->layout.chunk_rows,
    };
    void *parameters[] = { &params };

    if (run->row_factor)
        use_stash(run, &params);
    return flp_launch_kernel(run->driver, run->plan->rows, blocks, args->stream, parameters);
}

flp_status flp_backward_place_rows(const flp_backward_execution *run)
{
    return launch_rows(run, 1, 1);
}

flp_status flp_backward_differentiate_rows(const flp_backward_execution *run)
{
    const int64_t threads = run->plan->rows->manifest.threads;

    return launch_rows(run, 0, (unsigned)(run->args->rows < 1 ? 1 : (run->args->rows + threads - 1) / threads));
}

flp_status flp_backward_order_targets(const flp_backward_execution *run)
{
    const int64_t rows = run->plan->terms->manifest.threads / ORDER_THREADS; /* of a block */
    flp_backward_terms_params params = {
        .targets = flp_backward_inside(run, run->layout.targets), .row = source_rows(run), .row_count = run->count,
        .terms = flp_backward_inside(run, run->layout.terms), .rows = (int32_t)run->args->rows,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->terms, (unsigned)((run->args->rows + rows - 1) / rows), run->args->stream, parameters);
}

/* hidden's rows that count, times their factors (NULL: 1), into compact; sums (may be NULL) to 0. */
static flp_status gather(const flp_backward_execution *run, float *sums, const float *row_factor)
{
    flp_backward_gather_params params = {
        .hidden = run->args->hidden, .compact = run->compact, .sums = sums, .hidden_stride = run->forward->hidden_stride,
        .compact_stride = run->layout.compact_stride, .row = source_rows(run), .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .row_factor = row_factor,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_gather_rows(const flp_backward_execution *run, int with_sums)
{
    return gather(run, with_sums && run->layout.sums >= 0 ? flp_backward_inside(run, run->layout.sums) : NULL, NULL);
}

flp_status flp_backward_scale_rows(const flp_backward_execution *run)
{
    return gather(run, NULL, run->row_factor);
}

/* ---- grad_hidden, from where its products are to its rows' places ---- */

static flp_status launch_finish(const flp_backward_execution *run, flp_backward_finish_params *params)
{
    void *parameters[] = { params };

    params->sums_stride = params->hidden_size = (int32_t)run->forward->hidden;
    params->out = run->args->grad_hidden;
    params->out_stride = run->problem->grad_hidden_stride;
    params->place = flp_backward_inside(run, run->layout.place);
    params->rows = (int32_t)run->all_rows;
    return flp_launch_kernel(run->driver, run->plan->finish, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run)
{
    flp_backward_finish_params params = {
        .sums = flp_backward_inside(run, run->layout.sums), .targets = flp_backward_inside(run, run->layout.targets), .weight = run->args->weight,
        .weight_stride = run->forward->weight_stride, .factor = run->inverse_factor, .first_place = (int32_t)run->first,
        .places = (int32_t)run->args->rows,
    };

    return launch_finish(run, &params);
}

/* The products of all rows that count, into the stash. */
static flp_status stage_rows(const flp_backward_execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = flp_backward_inside(run, run->layout.dlogit), .hidden_stride = run->layout.compact_stride,
        .compact_stride = run->forward->hidden, .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .skips_whole = 1,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_spread_grad_hidden(const flp_backward_execution *run)
{
    flp_backward_finish_params params = {
        .sums = flp_backward_inside(run, run->layout.dlogit), .count = run->count, .places = (int32_t)run->args->rows,
    };
    flp_status status = stage_rows(run);

    return status == FLP_OK ? launch_finish(run, &params) : status;
}
