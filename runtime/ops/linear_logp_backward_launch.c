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
    float *row_factor; /* NULL: there is no stash */
} execution;

/* A chunk of the vocabulary: its derivatives, or what times row_factor they are. */
typedef struct {
    int64_t first, columns;
    const float *row_factor; /* NULL: 1 */
    int waits_late;          /* grad_hidden's product: see matrix_product_params.h */
} chunk;

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
        .layout = flp_linear_logp_backward_plan_lay_out(plan, args->rows),
    };

    run.count = inside(&run, run.layout.counts);
    run.factor = (float *)inside(&run, run.layout.counts) + 1;
    run.inverse_factor = run.factor + 1;
    run.compact = run.layout.compact >= 0 ? inside(&run, run.layout.compact) : args->rows > 0 ? args->grad_hidden : workspace;
    run.row_factor = run.layout.stash_columns > 0 ? inside(&run, run.layout.row_factor) : NULL;
    return run;
}

static unsigned moving_blocks(const execution *run)
{
    const int64_t most = (int64_t)run->plan->common.device.facts.multiprocessors * BLOCKS_A_MULTIPROCESSOR;

    return (unsigned)(run->args->rows < 1 ? 1 : run->args->rows < most ? run->args->rows : most);
}

static void use_stash(const execution *run, flp_backward_rows_params *params)
{
    params->row_factor = run->row_factor;
    params->stash = inside(run, run->layout.dlogit);
    params->stash_stride = run->layout.stash_columns;
    params->stash_columns = (int32_t)run->layout.stash_columns;
    params->stash_offset = inside(run, run->layout.offset);
    params->target_logit = inside(run, run->layout.target_logit);
}

static flp_status launch_rows(const execution *run, int places, unsigned blocks)
{
    const flp_linear_logp_backward_args *args = run->args;
    flp_backward_rows_params params = {
        .target = args->target, .row_temperature = args->row_temperature, .lse = args->lse, .entropy = args->entropy,
        .g_logp = args->g_logp, .g_lse = args->g_lse, .g_entropy = args->g_entropy, .g_sum = run->more ? run->more->g_sum : NULL,
        .gradient = inside(run, run->layout.gradient), .row = inside(run, run->layout.row), .place = inside(run, run->layout.place),
        .count = inside(run, run->layout.counts), .factor = run->factor, .inverse_factor = run->inverse_factor,
        .target_errors = run->problem->with_forward ? NULL : (unsigned long long *)(uintptr_t)run->plan->common.target_errors, .ignore_index = args->ignore_index,
        .rows = (int32_t)args->rows, .vocab = (int32_t)run->forward->vocab, .target_bytes = flp_dtype_bytes(run->forward->target_dtype),
        .inverse_temperature = (float)(1 / flp_arguments_temperature(args->temperature)), .scales = run->forward->dtype == FLP_F16,
        .places = places, .differentiates = !places,
    };
    void *parameters[] = { &params };

    if (run->row_factor)
        use_stash(run, &params);
    return flp_launch_kernel(run->driver, run->plan->rows, blocks, args->stream, parameters);
}

static flp_status place_rows(const execution *run)
{
    return launch_rows(run, 1, 1);
}

static flp_status differentiate_rows(const execution *run)
{
    const int64_t threads = run->plan->rows->manifest.threads;

    return launch_rows(run, 0, (unsigned)(run->args->rows < 1 ? 1 : (run->args->rows + threads - 1) / threads));
}

/* with_sums: these are zeroed too. */
static flp_status gather_rows(const execution *run, int with_sums)
{
    flp_backward_gather_params params = {
        .hidden = run->args->hidden, .compact = run->compact, .sums = with_sums && run->layout.sums >= 0 ? inside(run, run->layout.sums) : NULL,
        .hidden_stride = run->forward->hidden_stride, .compact_stride = run->layout.compact_stride,
        .row = inside(run, run->layout.row), .count = run->count, .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

/* The compact rows as grad_weight's product of a stash wants them. */
static flp_status scale_rows(const execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = run->compact, .hidden_stride = run->layout.compact_stride, .compact_stride = run->layout.compact_stride,
        .count = run->count, .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden, .row_factor = run->row_factor,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

/* ---- matrices ---- */

static flp_matrix compact_matrix(const execution *run)
{
    return (flp_matrix){ run->compact, run->forward->dtype, run->args->rows, run->forward->hidden, run->layout.compact_stride };
}

static flp_matrix dlogit_matrix(const execution *run, const chunk *part)
{
    return (flp_matrix){ inside(run, run->layout.dlogit), run->forward->dtype, run->args->rows, part->columns, run->layout.columns };
}

/* The part of weight, or of grad_weight, that belongs to the vocabulary entries from first on. */
static flp_matrix chunk_of(const execution *run, const void *data, flp_dtype dtype, int64_t stride, int64_t first, int64_t columns)
{
    if (run->forward->weight_layout == FLP_HIDDEN_VOCAB)
        return (flp_matrix){ advance(data, first, dtype), dtype, run->forward->hidden, columns, stride };
    return (flp_matrix){ advance(data, first * stride, dtype), dtype, columns, run->forward->hidden, stride };
}

/* ---- the launches of a chunk ---- */

/* Where the gradient filter keeps book, or NULL. */
static uint32_t *kept_bits(const execution *run)
{
    return run->plan->filter ? inside(run, run->layout.kept) : NULL;
}

static flp_status compute_dlogit(const execution *run, const chunk *part)
{
    const flp_linear_logp_problem *forward = run->forward;
    const int transposed = forward->weight_layout == FLP_HIDDEN_VOCAB;
    flp_logit_gradients_params params = {
        .hidden = run->compact, .weight = run->args->weight, .bias = run->args->bias, .out = inside(run, run->layout.dlogit),
        .hidden_stride = run->layout.compact_stride, .weight_stride = forward->weight_stride, .out_stride = run->layout.columns,
        .gradient = inside(run, run->layout.gradient), .row_count = run->count, .class_weights = run->more->class_weights,
        .rows = (int32_t)run->args->rows, .vocab = (int32_t)forward->vocab, .first_column = (int32_t)part->first, .columns = (int32_t)part->columns,
        .filter = (float)run->problem->grad_filter_eps, .factor = run->factor, .kept = kept_bits(run), .kept_words = (int32_t)run->layout.kept_words,
        .softcap = (float)forward->softcap, .inverse_softcap = forward->softcap == 0 ? 0 : (float)(1 / forward->softcap),
    };
    const flp_tile_launch launch = {
        .left = compact_matrix(run),
        .right = { run->args->weight, forward->dtype, transposed ? forward->hidden : forward->vocab,
                   transposed ? forward->vocab : forward->hidden, forward->weight_stride },
        .out = dlogit_matrix(run, part), .rows = run->args->rows, .columns = part->columns,
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
    params->kept = kept_bits(run);
    params->kept_words = (int32_t)run->layout.kept_words;
    params->rows = (int32_t)launch->rows;
    params->columns = (int32_t)launch->columns;
    launch->row_bytes = PRODUCT_ROW_BYTES;
    launch->params = params;
    launch->group = &params->group;
    return flp_tile_launch_run(&run->plan->common, kernel, launch, run->args->stream);
}

static int is_direct(const execution *run)
{
    return run->plan->hidden_product && run->layout.sums < 0;
}

/* sums += dlogit . weight. What it reads was there before the product of grad_weight began. Or grad_hidden = that of the whole vocabulary, in
 * place of the rows that grad_weight's product has read. */
static flp_status add_to_sums(const execution *run, const chunk *part)
{
    const flp_linear_logp_problem *forward = run->forward;
    const flp_matrix sums = { inside(run, run->layout.sums), FLP_F32, run->args->rows, forward->hidden, forward->hidden };
    flp_matrix_product_params params = { .row_count = run->count, .inner = (int32_t)part->columns,
                                         .waits_late = run->plan->weight_product ? part->waits_late : 0, .row_factor = part->row_factor,
                                         .kept_along = FLP_KEPT_ROWS_ALONG_ROWS };
    flp_tile_launch launch = {
        .left = dlogit_matrix(run, part),
        .right = chunk_of(run, run->args->weight, forward->dtype, forward->weight_stride, part->first, part->columns),
        .out = is_direct(run) ? compact_matrix(run) : sums,
        .rows = run->args->rows, .columns = forward->hidden,
    };

    return run_product(run, run->plan->hidden_product, &launch, &params);
}

/* grad_weight (+)= dlogit^T . hidden, or the transpose of it where the weight is [D, V]. */
static flp_status write_grad_weight(const execution *run, const chunk *part)
{
    const int transposed = run->forward->weight_layout == FLP_HIDDEN_VOCAB;
    const flp_matrix dlogit = dlogit_matrix(run, part), rows = compact_matrix(run);
    flp_matrix_product_params params = { .inner_count = run->count, .inner = (int32_t)run->args->rows,
                                         .kept_along = transposed ? FLP_KEPT_COLUMNS_ALONG_COLUMNS : FLP_KEPT_ROWS_ALONG_COLUMNS };
    flp_tile_launch launch = {
        .left = transposed ? rows : dlogit, .right = transposed ? dlogit : rows,
        .out = chunk_of(run, run->args->grad_weight, run->problem->grad_weight, run->problem->grad_weight_stride, part->first, part->columns),
        .rows = transposed ? run->forward->hidden : part->columns, .columns = transposed ? part->columns : run->forward->hidden,
    };

    return run_product(run, run->plan->weight_product, &launch, &params);
}

static flp_status write_grad_bias(const execution *run, const chunk *part)
{
    flp_backward_bias_params params = {
        .gradients = inside(run, run->layout.dlogit),
        .out = (void *)(uintptr_t)advance(run->args->grad_bias, part->first, run->problem->grad_bias),
        .stride = run->layout.columns, .row_count = run->count, .factor = run->inverse_factor,
        .rows = (int32_t)run->args->rows, .columns = (int32_t)part->columns, .row_factor = part->row_factor,
    };
    void *parameters[] = { &params };
    const unsigned blocks = (unsigned)((part->columns + BIAS_COLUMNS - 1) / BIAS_COLUMNS);

    return flp_launch_kernel(run->driver, run->plan->bias, blocks, run->args->stream, parameters);
}

/* What does not read grad_hidden's sums. */
static flp_status run_weight_products(const execution *run, const chunk *part)
{
    flp_status status = run->plan->bias ? write_grad_bias(run, part) : FLP_OK;

    return status == FLP_OK && run->plan->weight_product ? write_grad_weight(run, part) : status;
}

static flp_status run_hidden_product(const execution *run, const chunk *part)
{
    return run->plan->hidden_product && run->args->rows > 0 ? add_to_sums(run, part) : FLP_OK;
}

/* The first chunk, whose terms the forward has left. grad_weight's product takes the rows by their factors; what follows needs them as they
 * were. */
static flp_status run_stash(const execution *run)
{
    const int64_t vocab = run->forward->vocab, columns = run->layout.columns < vocab ? run->layout.columns : vocab;
    const chunk part = { 0, columns, run->row_factor, is_direct(run) ? 2 : 0 };
    flp_status status = run->args->rows > 0 ? scale_rows(run) : FLP_OK;

    if (status == FLP_OK)
        status = run_weight_products(run, &part);
    if (status == FLP_OK && run->args->rows > 0 && !is_direct(run))
        status = gather_rows(run, 1);
    return status == FLP_OK ? run_hidden_product(run, &part) : status;
}

/* Clears the filter's bits; columns: of the chunk whose bits they were, 0 before the first. */
static flp_status count_kept(const execution *run, int64_t columns)
{
    const int64_t row_blocks = (run->args->rows + 255) / 256 * 4;
    flp_backward_filter_params params = {
        .kept = kept_bits(run), .statistics = (unsigned long long *)(uintptr_t)run->plan->statistics, .row_count = run->count,
        .words = (int32_t)(row_blocks * run->layout.kept_words), .rows = (int32_t)run->args->rows, .columns = (int32_t)columns,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->filter, 1, run->args->stream, parameters);
}

static flp_status run_chunk(const execution *run, int64_t first)
{
    const int64_t left = run->forward->vocab - first, columns = left < run->layout.columns ? left : run->layout.columns;
    const chunk part = { first, columns, NULL, 1 };
    flp_status status = run->args->rows > 0 ? compute_dlogit(run, &part) : FLP_OK;

    if (status == FLP_OK)
        status = run_weight_products(run, &part);
    if (status == FLP_OK)
        status = run_hidden_product(run, &part);
    return status == FLP_OK && run->plan->filter ? count_kept(run, columns) : status;
}

static flp_status run_chunks(const execution *run)
{
    flp_status status = run->row_factor ? run_stash(run) : run->plan->filter ? count_kept(run, 0) : FLP_OK;

    for (int64_t first = run->layout.stash_columns; status == FLP_OK && first < run->forward->vocab; first += run->layout.columns)
        status = run_chunk(run, first);
    return status;
}

/* Out of grad_hidden into the stash, which nobody reads any more. */
static flp_status stage_rows(const execution *run)
{
    flp_backward_gather_params params = {
        .hidden = run->compact, .compact = inside(run, run->layout.dlogit), .hidden_stride = run->layout.compact_stride,
        .compact_stride = run->forward->hidden, .count = run->count, .rows = (int32_t)run->args->rows,
        .hidden_size = (int32_t)run->forward->hidden, .skips_whole = 1,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->gather, moving_blocks(run), run->args->stream, parameters);
}

static flp_status finish_grad_hidden(const execution *run)
{
    const int direct = is_direct(run);
    flp_backward_finish_params params = {
        .sums = inside(run, direct ? run->layout.dlogit : run->layout.sums), .sums_stride = run->forward->hidden, .count = direct ? run->count : NULL,
        .out = run->args->grad_hidden, .out_stride = run->problem->grad_hidden_stride,
        .place = inside(run, run->layout.place), .rows = (int32_t)run->args->rows, .hidden_size = (int32_t)run->forward->hidden,
    };
    void *parameters[] = { &params };

    return flp_launch_kernel(run->driver, run->plan->finish, moving_blocks(run), run->args->stream, parameters);
}

/* With a stash grad_hidden's sums are zeroed later: their room may hold what the forward needs. */
static flp_status gather_first(const execution *run)
{
    return run->args->rows > 0 ? gather_rows(run, run->row_factor == NULL) : FLP_OK;
}

/* The rows that count have been placed and gathered. */
static flp_status launch_rest(const execution *run)
{
    flp_status status = differentiate_rows(run);

    if (status == FLP_OK)
        status = run_chunks(run);
    if (status == FLP_OK && is_direct(run) && run->args->rows > 0)
        status = stage_rows(run);
    if (status == FLP_OK && run->plan->finish && run->args->rows > 0)
        status = finish_grad_hidden(run);
    return status;
}

static flp_compact_rows compact_rows(const execution *run)
{
    return (flp_compact_rows){ run->compact, run->layout.compact_stride, inside(run, run->layout.row), inside(run, run->layout.place), run->count };
}

flp_status flp_linear_logp_backward_launch_rows(const flp_plan *plan, const flp_linear_logp_backward_args *args, char *workspace,
                                                flp_compact_rows *compact)
{
    execution run = begin(plan, args, workspace);
    flp_status status = flp_driver_get(&run.driver);

    *compact = compact_rows(&run);
    if (status == FLP_OK)
        status = place_rows(&run);
    return status == FLP_OK ? gather_first(&run) : status;
}

flp_stash flp_linear_logp_backward_stash(const flp_plan *plan, int64_t rows, char *workspace)
{
    const flp_linear_logp_backward_workspace layout = flp_linear_logp_backward_plan_lay_out(flp_linear_logp_backward_plan_of(plan), rows);

    if (layout.stash_columns == 0)
        return (flp_stash){ .columns = 0 };
    return (flp_stash){
        .terms = workspace + layout.dlogit, .columns = layout.stash_columns, .offset = (float *)(void *)(workspace + layout.offset),
        .target_logit = (float *)(void *)(workspace + layout.target_logit), .overflow = (int32_t *)(void *)(workspace + layout.overflow),
        .block_overflow = (int32_t *)(void *)(workspace + layout.block_overflow),
    };
}

flp_status flp_linear_logp_backward_launch_rest(const flp_plan *plan, const flp_linear_logp_backward_args *args,
                                                const flp_backward_launch_more *more, char *workspace)
{
    execution run = begin(plan, args, workspace);
    flp_status status = flp_driver_get(&run.driver);

    run.more = more;
    if (status == FLP_OK && args->rows == 0)
        status = place_rows(&run);
    return status == FLP_OK ? launch_rest(&run) : status;
}

/* The compact rows lie where they need not stay: the backward's place for them may be grad_hidden. */
flp_status flp_linear_logp_backward_launch_forward(const flp_plan *common, const void *data, char *workspace)
{
    const flp_linear_logp_args *args = data;
    const flp_linear_logp_backward_plan *plan = flp_linear_logp_backward_plan_of(common);
    const flp_linear_logp_backward_args shared = { .rows = args->rows, .hidden = args->hidden, .target = args->target,
                                                   .ignore_index = args->ignore_index, .stream = args->stream };
    const flp_stash stash = flp_linear_logp_backward_stash(common, args->rows, workspace);
    execution run = begin(common, &shared, workspace);
    flp_compact_rows compact;
    const flp_linear_logp_launch_more more = { .compact = &compact, .stash = plan->stashes ? &stash : NULL, .blanks_others = 1 };
    flp_status status = flp_driver_get(&run.driver);

    run.compact = inside(&run, flp_linear_logp_backward_plan_forward_rows(&run.layout));
    run.layout.compact_stride = run.layout.forward_stride;
    compact = compact_rows(&run);
    if (status == FLP_OK)
        status = place_rows(&run);
    if (status == FLP_OK)
        status = gather_rows(&run, 0);
    return status == FLP_OK ? flp_linear_logp_launch_with(&plan->forward.common, args, &more,
                                                          inside(&run, flp_linear_logp_backward_plan_forward_scratch(plan, &run.layout, args->rows)))
                            : status;
}

flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, char *workspace)
{
    const flp_backward_launch_more none = { 0 };
    execution run = begin(plan, args, workspace);
    flp_status status = flp_driver_get(&run.driver);

    run.more = &none;
    if (status == FLP_OK && (!run.problem->with_forward || run.args->rows == 0))
        status = place_rows(&run);
    if (status == FLP_OK)
        status = gather_first(&run);
    return status == FLP_OK ? launch_rest(&run) : status;
}
