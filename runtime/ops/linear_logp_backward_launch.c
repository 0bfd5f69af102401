/* linear_logp's backward on a GPU path. */
#include "ops/linear_logp_backward_launch.h"

#include "base/status.h"
#include "cpu/convert.h"
#include "ops/arguments.h"
#include "ops/launch.h"
#include "ops/linear_logp_backward_params.h"
#include "ops/matrix_product_launch.h"
#include "ops/matrix_product_params.h"
#include "plan/linear_logp_backward_plan.h"
#include "plan/linear_logp_backward_workspace.h"

enum {
    BIAS_COLUMNS = 32,           /* of a block; KEEP IN STEP: templates/any/linear_logp_backward_bias.cuh */
    BLOCKS_A_MULTIPROCESSOR = 8, /* of the kernels that only move rows */
    PRODUCT_ROW_BYTES = 8192     /* of left's rows, that blocks at work together have in the L2 at a time */
};

/* One execution: where everything is. */
typedef struct {
    const flp_linear_logp_backward_plan *plan;
    const flp_linear_logp_backward_problem *problem;
    const flp_linear_logp_problem *forward;
    const flp_linear_logp_backward_args *args;
    const flp_backward_launch_more *more;
    const flp_driver *driver;
    flp_linear_logp_backward_workspace layout;
    char *workspace;
    char *compact;
    const int32_t *count;
    float *factor, *inverse_factor;
} execution;

static void *inside(const execution *run, int64_t offset)
{
    return run->workspace + offset;
}

static const void *advance(const void *address, int64_t elements, flp_dtype dtype)
{
    return (const char *)address + elements * flp_dtype_bytes(dtype);
}

static execution begin(const flp_plan *common, const flp_linear_logp_backward_args *args, char *workspace)
{
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    execution run = {
        .plan = plan, .problem = &plan->problem, .forward = &plan->problem.forward, .args = args, .workspace = workspace,
        .layout = flp_linear_logp_backward_workspace_lay_out(&plan->problem, args->rows),
    };

    run.count = inside(&run, run.layout.counts);
    run.factor = (float *)inside(&run, run.layout.counts) + 1;
    run.inverse_factor = run.factor + 1;
    run.compact = run.layout.compact >= 0 ? inside(&run, run.layout.compact) : args->rows > 0 ? args->grad_hidden : workspace;
    return run;
}

static unsigned moving_blocks(const execution *run)
{
    const int64_t most = (int64_t)run->plan->common.device.facts.multiprocessors * BLOCKS_A_MULTIPROCESSOR;

    return (unsigned)(run->args->rows < 1 ? 1 : run->args->rows < most ? run->args->rows : most);
}

static flp_status prepare_rows(const execution *run)
{
    const flp_linear_logp_backward_args *args = run->args;
    flp_backward_rows_params params = {
        .target = args->target, .row_temperature = args->row_temperature, .lse = args->lse, .entropy = args->entropy,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .g_sum = run->more->g_sum,
        .gradient = inside(run, run->layout.gradient), .row = inside(run, run->layout.row), .place = inside(run, run->layout.place),
        .count = inside(run, run->layout.counts), .factor = run->factor, .inverse_factor = run->inverse_factor,
        .target_errors = (unsigned long long *)(uintptr_t)run->plan->common.target_errors, .ignore_index = args->ignore_index,
        .rows = (int32_t)args->rows, .vocab = (int32_t)run->forward->vocab, .target_bytes = flp_dtype_bytes(run->forward->target_dtype),
        .inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature)), .scales = run->forward->dtype == FLP_F16,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->rows, 1, args->stream, parameters);
}

static flp_status gather_rows(const execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->args->hidden, .compact = run->compact, .sums = run->layout.sums < 0 ? NULL : inside(run, run->layout.sums),
        .hidden_stride = run->forward->hidden_stride, .compact_stride = run->layout.compact_stride,
        .row = inside(run, run->layout.row), .count = run->count, .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

/* ---- matrices ---- */

static flp_matrix compact_matrix(const execution *run)
{
    return (flp_matrix){ run->compact, run->forward->dtype, run->args->rows, run->forward->hidden, run->layout.compact_stride };
}

/* The chunk's derivatives. */
static flp_matrix dlogit_matrix(const execution *run, int64_t columns)
{
    return (flp_matrix){ inside(run, run->layout.dlogit), run->forward->dtype, run->args->rows, columns, run->layout.columns };
}

/* The part of weight, or of grad_weight, that belongs to the vocabulary entries from first on. */
static flp_matrix chunk_of(const execution *run, const void *data, flp_dtype dtype, int64_t stride, int64_t first, int64_t columns)
{
    if (run->forward->weight_layout == FLP_HIDDEN_VOCAB)
        return (flp_matrix){ advance(data, first, dtype), dtype, run->forward->hidden, columns, stride };
    return (flp_matrix){ advance(data, first * stride, dtype), dtype, columns, run->forward->hidden, stride };
}

/* ---- the launches of a chunk ---- */

static flp_status compute_dlogit(const execution *run, int64_t first, int64_t columns)
{
    const flp_linear_logp_problem *forward = run->forward;
    const int transposed = forward->weight_layout == FLP_HIDDEN_VOCAB;
    flp_logit_gradients_params params = {
        .hidden = run->compact, .weight = run->args->weight, .bias = run->args->bias, .out = inside(run, run->layout.dlogit),
        .hidden_stride = run->layout.compact_stride, .weight_stride = forward->weight_stride, .out_stride = run->layout.columns,
        .gradient = inside(run, run->layout.gradient), .row_count = run->count, .class_weights = run->more->class_weights,
        .rows = (int32_t)run->args->rows, .vocab = (int32_t)forward->vocab, .first_column = (int32_t)first, .columns = (int32_t)columns,
        .softcap = (float)forward->softcap, .inverse_softcap = forward->softcap == 0 ? 0 : (float)(1 / forward->softcap),
    };
    const flp_tile_launch launch = {
        .left = compact_matrix(run),
        .right = { run->args->weight, forward->dtype, transposed ? forward->hidden : forward->vocab,
                   transposed ? forward->vocab : forward->hidden, forward->weight_stride },
        .out = dlogit_matrix(run, columns), .rows = run->args->rows, .columns = columns,
        .row_bytes = forward->hidden * flp_dtype_bytes(forward->dtype), .params = &params, .group = &params.group,
    };

    return flp_tile_launch_run(&run->plan->common, run->plan->logits, &launch, run->args->stream);
}

static flp_status run_product(const execution *run, const flp_kernel *kernel, flp_tile_launch *launch, flp_matrix_product_params *params)
{
    params->left = launch->left.data;
    params->right = launch->right.data;
    params->out = (void *)(uintptr_t)launch->out.data;
    params->left_stride = launch->left.stride;
    params->right_stride = launch->right.stride;
    params->out_stride = launch->out.stride;
    params->factor = run->inverse_factor;
    params->rows = (int32_t)launch->rows;
    params->columns = (int32_t)launch->columns;
    launch->row_bytes = PRODUCT_ROW_BYTES;
    launch->params = params;
    launch->group = &params->group;
    return flp_tile_launch_run(&run->plan->common, kernel, launch, run->args->stream);
}

/* sums += dlogit . weight. What it reads was there before the product of grad_weight began. */
static flp_status add_to_sums(const execution *run, int64_t first, int64_t columns)
{
    const flp_linear_logp_problem *forward = run->forward;
    flp_matrix_product_params params = { .row_count = run->count, .inner = (int32_t)columns, .waits_late = run->plan->weight_product != NULL };
    flp_tile_launch launch = {
        .left = dlogit_matrix(run, columns),
        .right = chunk_of(run, run->args->weight, forward->dtype, forward->weight_stride, first, columns),
        .out = { inside(run, run->layout.sums), FLP_F32, run->args->rows, forward->hidden, forward->hidden },
        .rows = run->args->rows, .columns = forward->hidden,
    };

    return run_product(run, run->plan->hidden_product, &launch, &params);
}

/* grad_weight (+)= dlogit^T . hidden, or the transpose of it where the weight is [D, V]. */
static flp_status write_grad_weight(const execution *run, int64_t first, int64_t columns)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;
    const flp_matrix dlogit = dlogit_matrix(run, columns), compact = compact_matrix(run);
    flp_matrix_product_params params = { .inner_count = run->count, .inner = (int32_t)run->args->rows };
    flp_tile_launch launch = {
        .left = transposed ? compact : dlogit, .right = transposed ? dlogit : compact,
        .out = chunk_of(run, run->args->grad_weight, run->problem->grad_weight, run->problem->grad_weight_stride, first, columns),
        .rows = transposed ? run->forward->hidden : columns, .columns = transposed ? columns : run->forward->hidden,
    };

    return run_product(run, run->plan->weight_product, &launch, &params);
}

static flp_status write_grad_bias(const execution *run, int64_t first, int64_t columns)
{
    flp_backward_bias_params params = {
        .gradients = inside(run, run->layout.dlogit),
        .out = (void *)(uintptr_t)advance(run->args->grad_bias, first, run->problem->grad_bias),
        .stride = run->layout.columns, .row_count = run->count, .factor = run->inverse_factor,
        .rows = (int32_t)run->args->rows, .columns = (int32_t)columns,
    };
    void *parameters[] = { &params };
    const unsigned blocks = (unsigned)((columns + BIAS_COLUMNS - 1) / BIAS_COLUMNS);

    return flp_launch_kernel(run->driver, run->plan->bias, blocks, run->args->stream, parameters);
}

static flp_status run_chunk(const execution *run, int64_t first)
{
    const int64_t left = run->forward->vocab - first, columns = left < run->layout.columns ? left : run->layout.columns;
    flp_status status = run->args->rows > 0 ? compute_dlogit(run, first, columns) : FLP_OK;

    if (status == FLP_OK && run->plan->bias)
        status = write_grad_bias(run, first, columns);
    if (status == FLP_OK && run->plan->weight_product)
        status = write_grad_weight(run, first, columns);
    if (status == FLP_OK && run->plan->hidden_product && run->args->rows > 0)
        status = add_to_sums(run, first, columns);
    return status;
}

static flp_status finish_grad_hidden(const execution *run)
{
    flp_backward_finish_params params = {
        .sums = inside(run, run->layout.sums), .out = run->args->grad_hidden, .out_stride = run->problem->grad_hidden_stride,
        .place = inside(run, run->layout.place), .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->finish, moving_blocks(run), run->args->stream, parameters);
}

flp_status flp_linear_logp_backward_launch_with(const flp_plan *common, const flp_linear_logp_backward_args *args,
                                                const flp_backward_launch_more *more, char *workspace)
{
    execution run = begin(common, args, workspace);
    flp_status status = flp_driver_get(&run.driver);

    run.more = more;
    if (status == FLP_OK)
        status = prepare_rows(&run);
    if (status == FLP_OK && run.args->rows > 0)
        status = gather_rows(&run);
    for (int64_t first = 0; status == FLP_OK && first < run.forward->vocab; first += run.layout.columns)
        status = run_chunk(&run, first);
    if (status == FLP_OK && run.plan->finish && run.args->rows > 0)
        status = finish_grad_hidden(&run);
    return status;
}

flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, char *workspace)
{
    const flp_backward_launch_more none = { 0 };

    return flp_linear_logp_backward_launch_with(plan, args, &none, workspace);
}
