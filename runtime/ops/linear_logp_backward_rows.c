/* linear_logp's backward on a GPU path: the launches that prepare rows and bring grad_hidden home. */
#include "cpu/convert.h"
#include "ops/arguments.h"
#include "ops/launch.h"
#include "ops/linear_logp_backward_execution.h"
#include "ops/linear_logp_backward_params.h"

enum { BLOCKS_A_MULTIPROCESSOR = 8 }; /* of the kernels that only move rows */

flp_backward_execution flp_backward_begin(const flp_plan *common, const flp_linear_logp_backward_args *args, char *workspace)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    flp_backward_execution run = {
        .plan = plan, .problem = &plan->problem, .forward = &plan->problem.forward, .args = args, .workspace = workspace,
        .layout = flp_linear_logp_backward_plan_lay_out(plan, args->rows),
    };

    run.count = flp_backward_inside(&run, run.layout.counts);
    run.factor = (float *)flp_backward_inside(&run, run.layout.counts) + 1;
    run.inverse_factor = run.factor + 1;
    run.compact = run.layout.compact >= 0 ? flp_backward_inside(&run, run.layout.compact) : args->rows > 0 ? args->grad_hidden : workspace;
    run.row_factor = run.layout.stash_columns > 0 ? flp_backward_inside(&run, run.layout.row_factor) : NULL;
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
    params->stash = flp_backward_inside(run, run->layout.dlogit);
    params->stash_stride = run->layout.stash_columns;
    params->stash_columns = (int32_t)run->layout.stash_columns;
    params->stash_offset = flp_backward_inside(run, run->layout.offset);
    params->target_logit = flp_backward_inside(run, run->layout.target_logit);
}

static flp_status launch_rows(const flp_backward_execution *run, int places, unsigned blocks)
{
    const flp_linear_logp_backward_args *args = run->args;
    flp_backward_rows_params params = {
        .target = args->target, .row_temperature = args->row_temperature, .lse = args->lse, .entropy = args->entropy,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .g_sum = run->more ? run->more->g_sum : NULL,
        .gradient = flp_backward_inside(run, run->layout.gradient), .row = flp_backward_inside(run, run->layout.row),
        .place = flp_backward_inside(run, run->layout.place), .count = flp_backward_inside(run, run->layout.counts),
        .factor = run->factor, .inverse_factor = run->inverse_factor, .ignore_index = args->ignore_index,
        .target_errors = run->problem->with_forward ? NULL : (unsigned long long *)(uintptr_t)run->plan->common.target_errors,
        .rows = (int32_t)args->rows, .vocab = (int32_t)run->forward->vocab, .target_bytes = flp_dtype_bytes(run->forward->target_dtype),
        .inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature)), .scales = run->forward->dtype == FLP_F16,
        .places = places, .differentiates = !places,
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

flp_status flp_backward_gather_rows(const flp_backward_execution *run, int with_sums)
{
    flp_backward_gather_params params = {
        .hidden = run->args->hidden, .compact = run->compact, .sums = with_sums && run->layout.sums >= 0 ? flp_backward_inside(run, run->layout.sums) : NULL,
        .hidden_stride = run->forward->hidden_stride, .compact_stride = run->layout.compact_stride,
        .row = flp_backward_inside(run, run->layout.row), .count = run->count, .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_scale_rows(const flp_backward_execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = run->compact, .hidden_stride = run->layout.compact_stride, .compact_stride = run->layout.compact_stride,
        .count = run->count, .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden, .row_factor = run->row_factor,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_stage_rows(const flp_backward_execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = flp_backward_inside(run, run->layout.dlogit), .hidden_stride = run->layout.compact_stride,
        .compact_stride = run->forward->hidden, .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .skips_whole = 1,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run)
{
    const int direct = flp_backward_is_direct(run);
    flp_backward_finish_params params = {
        .sums = flp_backward_inside(run, direct ? run->layout.dlogit : run->layout.sums), .sums_stride = run->forward->hidden,
        .count = direct ? run->count : NULL,
        .out = run->args->grad_hidden, .out_stride = run->problem->grad_hidden_stride,
        .place = flp_backward_inside(run, run->layout.place), .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->finish, moving_blocks(run), run->args->stream, parameters);
}
