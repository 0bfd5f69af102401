/* linear_logp: the table of its arguments, its launches and its calls. */
#include "operators/linear/linear_logp.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/arguments.h"
#include "core/call.h"
#include "operators/linear/linear_logp_cpu.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/matrix_product_launch.h"
#include "params/linear_logp.h"

#define AT(argument) offsetof(flp_linear_logp_args, argument)
#define ASKED(field) offsetof(flp_linear_logp_problem, field)

const flp_argument flp_linear_logp_argument_inputs[] = {
    { "hidden", AT(hidden), .decides = 1, .extent_at = ASKED(hidden_stride), .values = FLP_VALUES_NORMAL },
    { "weight", AT(weight), .decides = 1, .extent_at = ASKED(weight_stride), .entries_at = ASKED(vocab), .values = FLP_VALUES_WEIGHT },
    { "bias", AT(bias), .asked_at = ASKED(bias_dtype), .dtype_at = ASKED(bias_dtype), .extent_at = ASKED(vocab), .entries_at = ASKED(vocab),
      .values = FLP_VALUES_NORMAL },
    { "target", AT(target), .dtype_at = ASKED(target_dtype), .values = FLP_VALUES_TARGET },
    { "row_temperature", AT(row_temperature), .bytes = sizeof(float), .is_optional = 1, .values = FLP_VALUES_ABSENT },
    { .name = NULL }
};
/* The structs that begin with the same fields use this table, too. */
#define BEGINS_SO(type)                                                                                                                                  \
    _Static_assert(AT(hidden) == offsetof(type, hidden) && AT(weight) == offsetof(type, weight) && AT(bias) == offsetof(type, bias) &&                   \
                       AT(target) == offsetof(type, target) && AT(ignore_index) == offsetof(type, ignore_index) && AT(flags) == offsetof(type, flags) && \
                       AT(temperature) == offsetof(type, temperature) && AT(row_temperature) == offsetof(type, row_temperature),                         \
                   #type " begins otherwise")
BEGINS_SO(flp_linear_logp_backward_args);
BEGINS_SO(flp_linear_cross_entropy_args);

static const flp_argument outputs[] = {
    { "logp", AT(logp), .bytes = sizeof(float), .owner = FLP_ARGUMENT_OF_WHOLE },
    { "lse", AT(lse), .bytes = sizeof(float), .is_optional = 1, .owner = FLP_ARGUMENT_OF_WHOLE },
    { "entropy", AT(entropy), .bytes = sizeof(float), .asked_at = ASKED(entropy), .is_optional = 1, .owner = FLP_ARGUMENT_OF_WHOLE },
    { "argmax", AT(argmax), .bytes = sizeof(int32_t), .asked_at = ASKED(argmax), .is_optional = 1, .owner = FLP_ARGUMENT_OF_WHOLE },
    { "partials", AT(partials), .bytes = sizeof(float), .row_elements = FLP_PARTIAL_FLOATS, .owner = FLP_ARGUMENT_OF_SHARD },
    { .name = NULL }
};
static const flp_argument *const arrays[] = { flp_linear_logp_argument_inputs, outputs, NULL };

const flp_arguments flp_linear_logp_arguments = {
    .args_struct = &flp_sized_linear_logp_args,
    .arrays = arrays,
    FLP_ARGUMENTS_WORKSPACE(flp_linear_logp_args),
    FLP_ARGUMENTS_TARGETS(flp_linear_logp_args),
    .target_dtype_at = ASKED(target_dtype),
    .vocab_at = ASKED(vocab),
    .vocab_total_at = ASKED(vocab_total),
};

/* The number of rows that the tile kernel processes. */
static int64_t tile_rows(const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more)
{
    return more->rows ? more->rows->rows : args->rows;
}

static void fill_tile_params(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *workspace, int32_t group,
                             flp_linear_logp_params *params)
{
    const flp_linear_logp_problem *problem = &plan->problem;

    *params = (flp_linear_logp_params){
        .hidden = args->hidden,
        .weight = args->weight,
        .bias = args->bias,
        .target = args->target,
        .row_temperature = args->row_temperature,
        .partial = flp_workspace_at(workspace, FLP_PART_PARTIAL),
        .best = flp_workspace_at(workspace, FLP_PART_BEST),
        .target_logit = flp_workspace_at(workspace, FLP_PART_TARGET_LOGIT),
        .rows = args->rows,
        .hidden_stride = problem->hidden_stride,
        .weight_stride = problem->weight_stride,
        .vocab = (int32_t)problem->vocab,
        .hidden_size = (int32_t)problem->hidden,
        .target_bytes = flp_dtype_bytes(problem->target_dtype),
        .scale = flp_arguments_scale(args->temperature),
        .softcap = (float)problem->softcap,
        .inverse_softcap = problem->softcap == 0 ? 0 : (float)(1 / problem->softcap),
        .split = plan->split,
        .group = group,
        .moment = flp_workspace_at(workspace, FLP_PART_MOMENT),
        .logit_sums = flp_workspace_at(workspace, FLP_PART_LOGIT_SUMS),
        .ticket = flp_workspace_at(workspace, FLP_PART_TICKET),
    };
}

static void fill_combine_params(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_params *tile,
                                flp_linear_logp_combine_params *params)
{
    *params = (flp_linear_logp_combine_params){
        .partial = tile->partial,
        .best = tile->best,
        .target_logit = tile->target_logit,
        .target = args->target,
        .logp = args->logp,
        .lse = args->lse,
        .argmax = args->argmax,
        .target_errors = (flp_tally *)(uintptr_t)plan->common.target_errors,
        .rows = args->rows,
        .ignore_index = args->ignore_index,
        .ignores = flp_arguments_ignore(args->flags),
        .vocab = tile->vocab,
        .target_bytes = tile->target_bytes,
        .splits = plan->split.splits,
        .moment = tile->moment,
        .entropy = args->entropy,
        .logit_sums = tile->logit_sums,
    };
}

enum { WARPGROUP_ROWS = 64 }; /* a block of no more rows is bound by reading the weight */

/* The tensor maps of hidden, weight and, where they are not NULL, the saved exponentials, in the boxes of a kernel with this manifest. Weight's map ends at the
 * real vocabulary, so that padding reads as zeros. */
static flp_status encode_maps(const flp_linear_logp_plan *plan, const flp_manifest *tile, const flp_linear_logp_args *args, const flp_saved_exp *saved_exp,
                              flp_linear_logp_parameters *parameters)
{
    const flp_linear_logp_problem *problem = &plan->problem;
    const flp_linear_logp_params *params = &parameters->tile;
    const int transposed = problem->weight_layout == FLP_HIDDEN_VOCAB;
    /* Fetching ahead costs 2 to 5 % with a warpgroup's rows and gains 0 to 1.5 % with more: bench/results/NOTES.md. Not measured for a weight [D, V]. */
    const int ahead = tile->block_rows > WARPGROUP_ROWS && !transposed;
    const flp_matrix hidden = { params->hidden, problem->dtype, params->rows, problem->hidden, params->hidden_stride };
    const flp_matrix weight = { args->weight, problem->dtype, transposed ? problem->hidden : problem->vocab, transposed ? problem->vocab : problem->hidden,
                                problem->weight_stride };
    const flp_matrix_box of_hidden = { tile->block_inner, FLP_HIDDEN_BOX_ROWS(params->rows, tile->a_box_rows), ahead };
    const flp_matrix_box of_weight = { tile->b_box_columns, tile->b_box_rows, ahead };
    flp_status status = flp_matrix_encode(&plan->common, "hidden's", &hidden, of_hidden, &parameters->maps[0]);

    if (status == FLP_OK)
        status = flp_matrix_encode(&plan->common, "weight's", &weight, of_weight, &parameters->maps[1]);
    if (status == FLP_OK && saved_exp) {
        const int64_t before = flp_int64_larger(flp_int64_divide_up(saved_exp->columns, saved_exp->block_columns) - 1, 0); /* blocks before the last */
        const flp_matrix terms = { saved_exp->terms, problem->dtype, before * saved_exp->block_rows + saved_exp->rows, saved_exp->block_columns,
                                   saved_exp->block_columns };
        const flp_matrix_box of_terms = { FLP_OUT_BOX_BYTES / flp_dtype_bytes(problem->dtype), FLP_OUT_BOX_ROWS, 0 };

        status = flp_matrix_encode(&plan->common, "the saved exponentials'", &terms, of_terms, &parameters->maps[2]);
    }
    return status;
}

static void use_packed_rows(const flp_packed_rows *rows, flp_linear_logp_parameters *parameters)
{
    parameters->tile.hidden = rows->hidden;
    parameters->tile.hidden_stride = rows->stride;
    parameters->tile.row = rows->row;
    parameters->tile.row_count = rows->count;
    parameters->combine.packed_index = rows->packed_index;
    parameters->combine.first_packed = (int32_t)rows->first;
    parameters->combine.packed_rows = (int32_t)rows->rows;
    parameters->combine.gradient = rows->gradient;
}

/* For a chunk of rows, block_overflow begins with the entry of the row block before it, which then says whether any of the chunk's blocks overflowed. That row
 * block has been processed: if its entry is still set, the only cost is that each block looks at its own entry. */
static void use_saved_exp(const flp_linear_logp_plan *plan, const flp_saved_exp *saved_exp, int64_t first, flp_linear_logp_parameters *parameters)
{
    const int block_rows = plan->tile->manifest.block_rows * plan->tile->manifest.cluster;

    parameters->tile.offset = parameters->combine.offset = saved_exp->offset + first;
    parameters->tile.overflow = parameters->combine.overflow = saved_exp->overflow + first;
    parameters->tile.block_overflow = parameters->combine.block_overflow = saved_exp->block_overflow + first / block_rows;
    parameters->combine.block_rows = block_rows;
    parameters->tile.saved_columns = (int32_t)saved_exp->columns;
    parameters->tile.saved_exp = saved_exp->terms;
    parameters->tile.saved_block_columns = (int32_t)saved_exp->block_columns;
    parameters->tile.saved_block_rows = (int32_t)saved_exp->block_rows;
    if (saved_exp->columns > saved_exp->block_columns)
        parameters->tile.saved_block_reciprocal = (uint32_t)flp_int64_divide_up(INT64_C(1) << 32, saved_exp->block_columns / FLP_SAVED_BLOCK_UNIT);
}

/* ---- launches ---- */

static flp_status launch_tiles(const flp_plan *common, unsigned blocks, flp_linear_logp_parameters *parameters, CUstream stream)
{
    void *with_saved_exp[] = { &parameters->maps[0], &parameters->maps[1], &parameters->maps[2], &parameters->tile };
    void *with_maps[] = { &parameters->maps[0], &parameters->maps[1], &parameters->tile };
    void *alone[] = { &parameters->tile };
    const flp_kernel *tile = flp_linear_logp_plan_of(common)->tile;
    void **list = !flp_manifest_takes_maps(&tile->manifest) ? alone : parameters->tile.offset ? with_saved_exp : with_maps;

    return flp_call_launch(tile, blocks, stream, list);
}

/* The split of a launch that computes offsets: the vocabulary's first tile. */
static const flp_split one_tile = { .tiles = 1, .splits = 1, .big = 1, .big_tiles = 1 };

/* The other steps that launch tiles, SAVED_EXP_BLOCK and REST, compute blocks again. */
static flp_save_exp_phase phase_of(flp_linear_step step)
{
    switch (step) {
    case FLP_STEP_OFFSETS:
        return FLP_SAVE_EXP_OFFSETS;
    case FLP_STEP_TILES:
        return FLP_SAVE_EXP_KEEP;
    case FLP_STEP_TILES_AGAIN:
        return FLP_SAVE_EXP_AGAIN;
    default:
        return FLP_SAVE_EXP_BLOCK;
    }
}

static flp_status launch_step(const flp_plan *common, const flp_workspace *workspace, unsigned blocks, flp_linear_step step,
                              flp_linear_logp_parameters *parameters, CUstream stream)
{
    const flp_save_exp_phase phase = phase_of(step);
    const flp_split all = parameters->tile.split;
    flp_status status;

    flp_workspace_begin_step(workspace, step);
    parameters->tile.phase = phase;
    if (phase == FLP_SAVE_EXP_OFFSETS)
        parameters->tile.split = one_tile;
    status = launch_tiles(common, blocks, parameters, stream);
    parameters->tile.split = all;
    return status;
}

/* The parameters of a call's launches, except for the tensor maps. */
static void fill_params(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                        const flp_workspace *workspace, int32_t group, flp_linear_logp_parameters *parameters)
{
    fill_tile_params(plan, args, workspace, group, &parameters->tile);
    parameters->tile.rows = tile_rows(args, more);
    parameters->tile.class_weights = more->class_weights;
    fill_combine_params(plan, args, &parameters->tile, &parameters->combine);
    parameters->combine.logit_sum = more->logit_sum;
    parameters->combine.blanks_others = more->blanks_others;
    if (more->rows)
        use_packed_rows(more->rows, parameters);
    if (more->saved_exp)
        use_saved_exp(plan, more->saved_exp, more->rows->first, parameters);
}

static flp_status fill(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                       const flp_workspace *workspace, int32_t group, flp_linear_logp_parameters *parameters)
{
    const flp_manifest *tile = &plan->tile->manifest;

    fill_params(plan, args, more, workspace, group, parameters);
    return flp_manifest_takes_maps(tile) ? encode_maps(plan, tile, args, more->saved_exp, parameters) : FLP_OK;
}

/* By a kernel of their own, each of whose blocks has one tile. */
static flp_status launch_offsets_apart(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       const flp_workspace *workspace)
{
    const flp_manifest *manifest = &plan->offsets->manifest;
    const unsigned blocks = (unsigned)flp_int64_divide_up(tile_rows(args, more), manifest->block_rows);
    flp_linear_logp_parameters parameters;
    void *list[] = { &parameters.maps[0], &parameters.maps[1], &parameters.tile };
    flp_status status;

    fill_params(plan, args, more, workspace, (int32_t)blocks, &parameters);
    parameters.tile.phase = FLP_SAVE_EXP_OFFSETS;
    parameters.tile.split = one_tile;
    status = encode_maps(plan, manifest, args, NULL, &parameters);
    if (status != FLP_OK)
        return status;
    flp_workspace_begin_step(workspace, FLP_STEP_OFFSETS);
    return flp_call_launch(plan->offsets, blocks, args->stream, list);
}

/* Without a kernel of their own, as on portable paths, by a launch of the tile kernel. */
flp_status flp_linear_logp_launch_offsets(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                          const flp_workspace *workspace)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, tile_rows(args, more));
    flp_linear_logp_parameters parameters;
    flp_status status;

    if (plan->offsets)
        return launch_offsets_apart(plan, args, more, workspace);
    status = fill(plan, args, more, workspace, shape.group, &parameters);
    return status == FLP_OK ? launch_step(common, workspace, shape.tile_blocks, FLP_STEP_OFFSETS, &parameters, args->stream) : status;
}

flp_status flp_linear_logp_launch_blocks(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                         const flp_workspace *workspace, flp_linear_step step, int64_t begin, int64_t end)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, tile_rows(args, more));
    const flp_manifest *tile = &plan->tile->manifest;
    const int64_t row_groups = flp_int64_divide_up(tile_rows(args, more), (int64_t)tile->block_rows * tile->cluster);
    const int64_t of_block = more->saved_exp->block_columns, columns = flp_int64_smaller(end * of_block, plan->problem.vocab) - begin * of_block;
    flp_linear_logp_parameters parameters;
    flp_status status = fill(plan, args, more, workspace, shape.group, &parameters);

    if (of_block % tile->block_columns != 0)
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: block_columns %d; wanted a divisor of %" PRId64, tile->variant, tile->block_columns, of_block);
    parameters.tile.first_tile = (int32_t)(begin * of_block / tile->block_columns);
    parameters.tile.split = flp_split_even(columns, tile->block_columns, row_groups, shape.tile_blocks / (unsigned)tile->cluster);
    return status == FLP_OK ? launch_step(common, workspace, shape.tile_blocks, step, &parameters, args->stream) : status;
}

flp_status flp_linear_logp_prepare_forward(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                           const flp_workspace *workspace, flp_linear_logp_forward *forward)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, tile_rows(args, more));

    forward->plan = common;
    forward->workspace = workspace;
    forward->stream = args->stream;
    forward->tile_blocks = shape.tile_blocks;
    forward->combine_blocks = flp_linear_logp_plan_shape(plan, args->rows).combine_blocks;
    forward->saves_exp = more->saved_exp != NULL;
    return fill(plan, args, more, workspace, shape.group, &forward->parameters);
}

flp_status flp_linear_logp_launch_tiles(flp_linear_logp_forward *forward)
{
    return launch_step(forward->plan, forward->workspace, forward->tile_blocks, FLP_STEP_TILES, &forward->parameters, forward->stream);
}

flp_status flp_linear_logp_launch_combine(flp_linear_logp_forward *forward)
{
    void *parameters[] = { &forward->parameters.combine };
    flp_status status;

    flp_workspace_begin_step(forward->workspace, FLP_STEP_COMBINE);
    status = flp_call_launch(flp_linear_logp_plan_of(forward->plan)->combine, forward->combine_blocks, forward->stream, parameters);
    if (status != FLP_OK || !forward->saves_exp)
        return status;
    return launch_step(forward->plan, forward->workspace, forward->tile_blocks, FLP_STEP_TILES_AGAIN, &forward->parameters, forward->stream);
}

flp_status flp_linear_logp_launch_with(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       const flp_workspace *workspace)
{
    flp_linear_logp_forward forward;
    flp_status status = flp_linear_logp_prepare_forward(common, args, more, workspace, &forward);

    if (status == FLP_OK)
        status = flp_linear_logp_launch_tiles(&forward);
    return status == FLP_OK ? flp_linear_logp_launch_combine(&forward) : status;
}

/* The tile kernel reads the shard's entries as targets. An empty shard has no tiles. */
static flp_status launch_shard_tiles(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                     const flp_workspace *workspace)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, args->rows);
    flp_linear_logp_parameters parameters;
    flp_status status;

    if (plan->problem.vocab == 0)
        return FLP_OK;
    status = fill(plan, args, more, workspace, shape.group, &parameters);
    parameters.tile.target = flp_workspace_at(workspace, FLP_PART_ENTRY);
    parameters.tile.target_bytes = sizeof(int32_t);
    return status == FLP_OK ? launch_step(common, workspace, shape.tile_blocks, FLP_STEP_TILES, &parameters, args->stream) : status;
}

flp_status flp_linear_logp_launch_shard(const flp_plan *common, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                        const flp_workspace *workspace)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    flp_status status = flp_linear_logp_shard_find_targets(plan->shard_targets, &plan->problem, args, workspace);

    if (status == FLP_OK)
        status = launch_shard_tiles(common, args, more, workspace);
    return status == FLP_OK ? flp_linear_logp_shard_leave_partials(plan, args, workspace) : status;
}

static flp_status launch(const flp_plan *plan, const void *args, const flp_workspace *workspace)
{
    const flp_linear_logp_launch_more none = { 0 };

    if (flp_linear_logp_plan_of(plan)->problem.vocab_total > 0)
        return flp_linear_logp_launch_shard(plan, args, &none, workspace);
    return flp_linear_logp_launch_with(plan, args, &none, workspace);
}

static flp_status run_on_cpu(const flp_plan *plan, const void *args, int64_t *bad_count, int64_t *bad_first)
{
    return flp_linear_logp_cpu(plan->context->pool, flp_plan_problem(plan), args, NULL, bad_count, bad_first);
}

const flp_operator_calls flp_linear_logp_calls = {
    .op = &flp_linear_logp_operator,
    .arguments = &flp_linear_logp_arguments,
    .launch = launch,
    .run_on_cpu = run_on_cpu,
    .tune = flp_tune_first_use,
};
FLP_CALL_FUNCTIONS(flp_linear_logp)
