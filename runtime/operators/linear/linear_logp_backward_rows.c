/* linear_logp's backward on a GPU path: the launches that concern rows, from the coefficients of their derivatives to grad_hidden in their places. */
#include "base/int64.h"
#include "core/arguments.h"
#include "core/call.h"
#include "cuda/driver.h"
#include "operators/linear/linear_logp_backward.h"
#include "params/linear_logp_backward.h"
#include "params/linear_logp_shard.h"

/* Stores the saved exponentials in grad_weight, in as many blocks as it has room for: the kernel's blocks are slabs of these. */
static void use_lending(const flp_packed_call *call, flp_saved_exp *saved_exp)
{
    const flp_backward_chunks *chunks = &call->plan->work.chunks;
    const flp_vocab_lending lending = flp_vocab_chunks_lending(call->plan->work.backward, chunks, saved_exp->rows);

    saved_exp->block_columns = lending.slab_blocks * chunks->lent_columns;
    saved_exp->block_rows = lending.slab_rows;
    saved_exp->columns = (lending.blocks + lending.rest) * chunks->lent_columns;
    if (lending.first >= 0)
        saved_exp->terms = (char *)call->args->grad_weight + lending.first;
}

flp_saved_exp flp_linear_logp_backward_saved_exp(const flp_packed_call *call)
{
    const flp_linear_work *work = &call->plan->work;
    const flp_backward_chunks *chunks = &work->chunks;
    const flp_workspace *workspace = call->workspace;
    const int64_t rows = flp_linear_work_chunk_rows(work, call->args->rows);
    flp_saved_exp saved_exp = {
        .terms = flp_workspace_at(workspace, FLP_PART_DLOGIT),
        .rows = rows,
        .columns = chunks->saved_columns,
        .block_rows = rows,
        .block_columns = chunks->saved_columns,
        .offset = flp_workspace_at(workspace, FLP_PART_SAVED_EXP_OFFSET),
        .overflow = flp_workspace_at(workspace, FLP_PART_OVERFLOW),
        .block_overflow = flp_workspace_at(workspace, FLP_PART_BLOCK_OVERFLOW),
    };

    if (chunks->lent_columns > 0)
        use_lending(call, &saved_exp);
    return saved_exp;
}

static void use_saved_exp(const flp_backward_execution *run, flp_backward_rows_params *params)
{
    params->row_factor = run->row_factor;
    params->saved_columns = (int32_t)(flp_vocab_chunks_all_saved(run->problem, run->chunks) ? run->forward->vocab : run->chunks->saved_columns);
    params->saved_exp_offset = (float *)flp_backward_at(run, FLP_PART_SAVED_EXP_OFFSET) + run->rows.first;
}

flp_status flp_backward_differentiate_rows(const flp_backward_execution *run)
{
    const flp_linear_logp_backward_args *args = run->call.args;
    const flp_kernel *kernel = run->call.plan->rows;
    const int64_t threads = kernel->manifest.threads, rows = run->rows.rows;
    flp_backward_rows_params params = flp_packed_rows_params(&run->call, &run->rows);
    void *parameters[] = { &params };

    params.differentiates = 1;
    params.row_temperature = args->row_temperature;
    params.scale = flp_arguments_scale(args->temperature);
    params.inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature));
    params.lse = args->lse;
    params.logp = args->logp;
    params.entropy = args->entropy;
    params.is_handed_over = run->is_handed_over;
    params.g_logp = args->g_logp;
    params.g_lse = args->g_lse;
    params.g_entropy = args->g_entropy;
    params.g_sum = run->more->g_sum;
    params.class_weights = run->more->class_weights;
    params.class_weight_dtype = (int32_t)run->more->class_weight_dtype;
    params.classes = (int32_t)run->forward->vocab;
    params.gradient = run->rows.gradient;
    params.targets = flp_backward_at(run, FLP_PART_TARGETS);
    params.meetings = flp_backward_counts_of(run)->meetings;
    params.factor = run->factor;
    params.inverse_factor = run->inverse_factor;
    if (run->row_factor)
        use_saved_exp(run, &params);
    flp_workspace_begin_step(run->call.workspace, FLP_STEP_DIFFERENTIATE);
    return flp_call_launch(kernel, (unsigned)flp_int64_larger(1, flp_int64_divide_up(rows, threads)), args->stream, parameters);
}

flp_status flp_backward_order_targets(const flp_backward_execution *run)
{
    const unsigned blocks = (unsigned)flp_int64_divide_up(run->rows.rows, FLP_TARGET_ORDER_ROWS);
    flp_target_order_params params = {
        .targets = flp_backward_at(run, FLP_PART_TARGETS),
        .row = run->rows.row,
        .row_count = run->rows.count,
        .sorted = flp_backward_at(run, FLP_PART_TARGET_ORDER),
        .rows = (int32_t)run->rows.rows,
    };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->call.workspace, FLP_STEP_ORDER_TARGETS);
    return flp_call_launch(run->call.plan->target_order, blocks, run->call.args->stream, parameters);
}

flp_status flp_backward_clear_other_shards(const flp_backward_execution *run)
{
    const flp_kernel *kernel = run->call.plan->other_shards;
    flp_other_shards_params params = { .targets = flp_backward_at(run, FLP_PART_TARGETS), .row_count = run->rows.count, .rows = (int32_t)run->rows.rows };
    void *parameters[] = { &params };

    flp_workspace_begin_step(run->call.workspace, FLP_STEP_OTHER_SHARDS);
    return flp_call_launch(kernel, (unsigned)flp_int64_divide_up(run->rows.rows, kernel->manifest.threads), run->call.args->stream, parameters);
}

/* ---- packed rows ---- */

/* The mark that the forward has left, for a kernel to clear; or NULL. After the kernel that checks it, every backward either gathers rows or, with in_forward,
 * finishes what the forward has left: these clear it. */
static unsigned long long *taken_mark(const flp_backward_execution *run)
{
    return run->takes ? &flp_backward_counts_of(run)->mark : NULL;
}

flp_status flp_backward_gather_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums)
{
    const flp_packed_gather gather = { .step = step, .sums = with_sums ? flp_backward_at(run, FLP_PART_SUMS) : NULL, .mark = taken_mark(run) };

    return flp_packed_rows_gather(&run->call, &run->rows, &gather);
}

flp_status flp_backward_scale_rows(const flp_backward_execution *run, flp_linear_step step, int with_sums, int is_beside)
{
    const flp_packed_gather gather = {
        .step = step,
        .sums = with_sums ? flp_backward_at(run, FLP_PART_SUMS) : NULL,
        .row_factor = run->row_factor,
        .mark = taken_mark(run),
        .is_beside = is_beside,
    };

    return flp_packed_rows_gather(&run->call, &run->rows, &gather);
}

/* ---- grad_hidden, from where its products are to its rows' places ---- */

static flp_status launch_rows(const flp_backward_execution *run, const flp_kernel *kernel, flp_linear_step step, flp_backward_finish_params *params)
{
    void *parameters[] = { params };

    params->hidden_size = (int32_t)run->forward->hidden;
    params->packed_rows = (int32_t)run->rows.rows;
    flp_workspace_begin_step(run->call.workspace, step);
    return flp_call_launch(kernel, flp_packed_rows_blocks(&run->call, run->rows.rows), run->call.args->stream, parameters);
}

static flp_status launch_finish(const flp_backward_execution *run, flp_linear_step step, flp_backward_finish_params *params)
{
    params->out = run->call.args->grad_hidden;
    params->out_stride = run->problem->grad_hidden_stride;
    params->packed_index = run->rows.packed_index;
    params->rows = (int32_t)run->call.args->rows;
    return launch_rows(run, run->call.plan->finish, step, params);
}

/* What turns these sums into gradients. */
static flp_backward_finish_params finish_of(const flp_backward_execution *run, const flp_matrix *sums, const float *row_factor)
{
    return (flp_backward_finish_params){
        .sums = sums->data,
        .sums_stride = sums->stride,
        .row_factor = row_factor,
        .targets = flp_backward_at(run, FLP_PART_TARGETS),
        .weight = run->call.args->weight,
        .weight_stride = run->forward->weight_stride,
        .factor = run->inverse_factor,
    };
}

flp_status flp_backward_finish_grad_hidden(const flp_backward_execution *run, flp_linear_step step, int is_beside)
{
    const int in_forward = run->chunks->in_forward;
    const flp_matrix sums = flp_backward_sums(run);
    flp_backward_finish_params params = finish_of(run, &sums, in_forward ? run->row_factor : NULL);

    params.mark = in_forward ? taken_mark(run) : NULL;
    params.first_packed = (int32_t)run->rows.first;
    params.pdl_wait_last = is_beside;
    return launch_finish(run, step, &params);
}

flp_status flp_backward_sum_parts(const flp_backward_execution *run, flp_linear_step step, const float *row_factor, int is_beside)
{
    const int is_direct = flp_backward_is_direct(run);
    const flp_matrix parts = flp_backward_parts(run), sums = flp_backward_sums(run);
    flp_backward_finish_params params = finish_of(run, &parts, row_factor);

    params.out = is_direct ? run->rows.hidden : (void *)(uintptr_t)sums.data;
    params.out_stride = is_direct ? run->rows.stride : sums.stride;
    params.count = run->rows.count;
    params.part_rows = flp_vocab_chunks_part_rows(run->rows.rows);
    params.parts = (int32_t)flp_vocab_chunks_parts(run->problem, run->chunks);
    params.pdl_wait_last = is_beside;
    return launch_rows(run, run->call.plan->sum, step, &params);
}

/* Moves the products of all valid rows by way of dlogit's memory. */
flp_status flp_backward_scatter_grad_hidden(const flp_backward_execution *run)
{
    const flp_packed_gather stage = { .step = FLP_STEP_STAGE, .mark = taken_mark(run), .to = flp_backward_at(run, FLP_PART_DLOGIT) };
    flp_backward_finish_params params = {
        .sums = flp_backward_at(run, FLP_PART_DLOGIT),
        .sums_stride = run->forward->hidden,
        .count = run->rows.count,
    };
    flp_status status = flp_packed_rows_gather(&run->call, &run->rows, &stage);

    return status == FLP_OK ? launch_finish(run, FLP_STEP_SCATTER, &params) : status;
}

flp_status flp_backward_mark_grad_hidden(const flp_linear_logp_backward_args *args)
{
    const flp_driver *driver;
    flp_status status;

    if (!args->grad_hidden_event)
        return FLP_OK;
    status = flp_driver_get(&driver);
    return status == FLP_OK
               ? flp_driver_check(driver, driver->event_record((CUevent)args->grad_hidden_event, args->stream), "cuEventRecord of grad_hidden_event")
               : status;
}
