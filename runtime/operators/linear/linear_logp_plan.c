/* linear_logp as an operator: the table of its problem's fields, and its plans' kernels, workspace, description and numerics. */
#include "operators/linear/linear_logp_plan.h"

#include <inttypes.h>
#include <stddef.h>

#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/plan.h"
#include "operators/linear/linear_logp_cpu.h"
#include "operators/linear/linear_workspace.h"
#include "operators/linear/matrix_product_launch.h"

#define AT(field) offsetof(flp_linear_logp_problem, field)

const flp_field flp_linear_logp_field_inputs[] = {
    { "dtype", FLP_FIELD_DTYPE, AT(dtype), .prefix = "", FLP_FIELD_FLOAT },
    FLP_FIELD_ROWS(AT(rows)),
    FLP_FIELD_EXTENT("hidden", AT(hidden), "d"),
    { "vocab", FLP_FIELD_SIZE, AT(vocab), .prefix = "v", .value_name = "vocab", .low = 1, .high = INT32_MAX, .empty_at = AT(vocab_total) },
    { "weight_layout", FLP_FIELD_CHOICE, AT(weight_layout), .words = { [FLP_HIDDEN_VOCAB] = "dv" },
      .allowed = FLP_FIELD_ALLOWS(FLP_VOCAB_HIDDEN) | FLP_FIELD_ALLOWS(FLP_HIDDEN_VOCAB), .wanted = "FLP_VOCAB_HIDDEN or FLP_HIDDEN_VOCAB" },
    { "hidden_stride", FLP_FIELD_STRIDE, AT(hidden_stride), .prefix = "hs", .value_name = "stride", .rows_at = AT(rows), .columns_at = AT(hidden) },
    { "weight_stride", FLP_FIELD_STRIDE, AT(weight_stride), .prefix = "ws", .value_name = "stride", .rows_at = AT(vocab), .columns_at = AT(hidden),
      .transposed_at = AT(weight_layout) },
    FLP_FIELD_POINTERS(AT(pointer_alignment)),
    { "bias_dtype", FLP_FIELD_DTYPE, AT(bias_dtype), .prefix = "bias_", FLP_FIELD_FLOAT_OR_NONE },
    FLP_FIELD_TARGETS(AT(target_dtype)),
    FLP_FIELD_SOFTCAP(AT(softcap)),
    { "vocab_first", FLP_FIELD_COUNT, AT(vocab_first), .prefix = "first", .value_name = "id" },
    { "vocab_total", FLP_FIELD_COUNT, AT(vocab_total), .prefix = "of", .value_name = "vocab" },
    { .name = NULL }
};
static const flp_field outputs[] = { { "argmax", FLP_FIELD_CHOICE, AT(argmax), .words = { [1] = "argmax" }, FLP_FIELD_FLAG },
                                     { "entropy", FLP_FIELD_CHOICE, AT(entropy), .words = { [1] = "entropy" }, FLP_FIELD_FLAG },
                                     { .name = NULL } };
const flp_field flp_linear_logp_field_precision[] = { { "precision", FLP_FIELD_CHOICE, AT(precision), .words = { [FLP_PRECISION_EXACT] = "exact" },
                                                        .allowed = FLP_FIELD_ALLOWS(FLP_PRECISION_TENSOR) | FLP_FIELD_ALLOWS(FLP_PRECISION_EXACT),
                                                        .wanted = "FLP_PRECISION_TENSOR or FLP_PRECISION_EXACT" },
                                                      { .name = NULL } };
const flp_field flp_linear_logp_field_backend[] = { FLP_FIELD_BACKEND(AT(backend)), { .name = NULL } };

static const flp_field *const fields[] = { flp_linear_logp_field_inputs, outputs, flp_linear_logp_field_precision, flp_linear_logp_field_backend, NULL };

/* A shard may have no entries; a whole vocabulary has one or more. */
static flp_status check_shard(const flp_linear_logp_problem *problem)
{
    flp_status status = flp_problem_check_range("vocab_total", problem->vocab_total, 0, INT32_MAX);

    if (status == FLP_OK && problem->vocab_total == 0 && problem->vocab_first != 0)
        return flp_status_fail(FLP_BAD_ARGUMENT, "vocab_first: got %" PRId64 " with vocab_total 0, wanted 0: the problem is no shard", problem->vocab_first);
    if (status != FLP_OK || problem->vocab_total == 0)
        return status;
    status = flp_problem_check_range("vocab", problem->vocab, 0, problem->vocab_total);
    return status == FLP_OK ? flp_problem_check_range("vocab_first", problem->vocab_first, 0, problem->vocab_total - problem->vocab) : status;
}

flp_status flp_linear_logp_problem_check(void *normal)
{
    const flp_linear_logp_problem *problem = normal;
    flp_status status = check_shard(problem);

    if (status != FLP_OK)
        return status;
    if (problem->precision != FLP_PRECISION_EXACT || problem->dtype == FLP_F32)
        return FLP_OK;
    return flp_status_fail(FLP_BAD_ARGUMENT, "precision: got FLP_PRECISION_EXACT with dtype %s, wanted it with f32 only", flp_dtype_name(problem->dtype));
}

enum { LONGEST_UNIT = 4 }; /* tiles of a unit, for flp_split_even */

flp_split flp_split_compute(int64_t vocab, int block_columns, int n_split)
{
    const int32_t tiles = (int32_t)flp_int64_divide_up(vocab, block_columns), big_tiles = tiles / n_split;

    if (big_tiles < 2)
        return (flp_split){ .tiles = tiles, .splits = tiles };
    return (flp_split){ .tiles = tiles, .splits = n_split + tiles % n_split, .big = n_split, .big_tiles = big_tiles };
}

/* The tiles of the worker that has most of them, as templates/parts/schedule.cuh deals the units: those of big splits in turn, then single tiles, of which who
 * has one big split fewer catches up first. */
static int64_t most_tiles(const flp_split *split, int64_t row_groups, int64_t workers)
{
    const int64_t big = row_groups * split->big, single = row_groups * (split->splits - split->big);
    const int64_t behind = big % workers > 0 ? workers - big % workers : 0; /* workers with one big split fewer */
    const int64_t left = flp_int64_larger(0, single - behind * split->big_tiles);

    return flp_int64_divide_up(big, workers) * split->big_tiles + flp_int64_divide_up(left, workers);
}

flp_split flp_split_even(int64_t vocab, int block_columns, int64_t row_groups, int64_t clusters)
{
    const int64_t tiles = flp_int64_divide_up(vocab, block_columns);
    flp_split even = { 0 };
    int64_t least = INT64_MAX;

    for (int unit = LONGEST_UNIT; unit > 0; unit--) {
        /* One split fewer than there is room for leaves single tiles, which even out what the clusters have. */
        const int64_t splits = unit == 1 ? tiles : flp_int64_larger(1, tiles / unit - 1);
        const flp_split split = flp_split_compute(vocab, block_columns, (int)splits);
        /* Two warpgroups may share a multiprocessor's tiles (the ping-pong schedule), so each of them should have its half. */
        const int64_t time = most_tiles(&split, row_groups, clusters) + most_tiles(&split, row_groups, 2 * clusters);

        if (time < least) {
            least = time;
            even = split;
        }
    }
    return even;
}

flp_linear_logp_shape flp_linear_logp_shape_compute(const flp_manifest *tile, const flp_manifest *combine, int multiprocessors, int splits, int64_t row_bytes,
                                                    int32_t tuned_group, int64_t rows)
{
    const int64_t cluster_rows = (int64_t)tile->block_rows * tile->cluster;
    const int64_t row_groups = flp_int64_divide_up(rows, cluster_rows);
    const int64_t units = row_groups * splits;
    const int64_t clusters = flp_tile_launch_clusters(tile, multiprocessors);

    if (rows == 0)
        return (flp_linear_logp_shape){ .group = 1 };
    return (flp_linear_logp_shape){
        .tile_blocks = (unsigned)(flp_int64_smaller(units, clusters) * tile->cluster),
        .combine_blocks = (unsigned)flp_int64_divide_up(rows, combine->block_rows),
        .group = flp_tile_launch_group(row_groups, row_bytes * cluster_rows, tuned_group),
    };
}

int flp_linear_logp_plan_saves_exp(const flp_linear_logp_plan *plan)
{
    return plan->common.kernels[FLP_ROLE_SAVE_EXP_TILE] != NULL;
}

static flp_role tile_role(const flp_linear_logp_plan *plan)
{
    return flp_linear_logp_plan_saves_exp(plan) ? FLP_ROLE_SAVE_EXP_TILE : FLP_ROLE_TILE;
}

flp_linear_logp_shape flp_linear_logp_plan_shape(const flp_linear_logp_plan *plan, int64_t rows)
{
    return flp_linear_logp_shape_compute(&plan->tile->manifest, &plan->combine->manifest, plan->common.device.facts.multiprocessors, plan->split.splits,
                                         plan->problem.hidden * flp_dtype_bytes(plan->problem.dtype), plan->common.group[tile_role(plan)], rows);
}

/* Checks the numbers by which launches and the split divide, and that the offsets' blocks clear the flag of each block of rows: a kernel from a cache brings
 * its own manifest. offsets: or NULL */
static flp_status check_manifests(const flp_manifest *tile, const flp_manifest *offsets, const flp_manifest *combine)
{
    if (tile->threads < 1 || tile->block_rows < 1 || tile->block_columns < 1 || tile->cluster < 1 || tile->n_split < 4)
        return flp_status_fail(FLP_INTERNAL,
                               "manifest of %s: threads %d, block_rows %d, block_columns %d, cluster %d, n_split %d; "
                               "wanted at least 1, 1, 1, 1, 4",
                               tile->variant, tile->threads, tile->block_rows, tile->block_columns, tile->cluster, tile->n_split);
    if (offsets && (offsets->block_rows < 1 || offsets->block_rows > tile->block_rows * tile->cluster))
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: block_rows %d; wanted 1 to %d", offsets->variant, offsets->block_rows,
                               tile->block_rows * tile->cluster);
    if (combine->threads < 1 || combine->block_rows < 1)
        return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_rows %d; wanted at least 1, 1", combine->variant, combine->threads,
                               combine->block_rows);
    return FLP_OK;
}

static flp_status set_up(flp_plan *common)
{
    flp_linear_logp_plan *plan = (flp_linear_logp_plan *)(void *)common;
    const flp_role tile = tile_role(plan);
    const flp_role_set of_shard = plan->problem.vocab_total > 0 ? FLP_ROLE_SET(SHARD_TARGETS) | FLP_ROLE_SET(MERGE) : 0;
    const flp_role_set optional = tile == FLP_ROLE_SAVE_EXP_TILE ? FLP_ROLE_SET(OFFSETS) : 0;
    flp_status status = flp_plan_check_kernels(common, UINT32_C(1) << tile | FLP_ROLE_SET(COMBINE) | of_shard, optional);

    if (status != FLP_OK)
        return status;
    plan->tile = common->kernels[tile];
    plan->offsets = common->kernels[FLP_ROLE_OFFSETS];
    plan->combine = common->kernels[FLP_ROLE_COMBINE];
    plan->shard_targets = common->kernels[FLP_ROLE_SHARD_TARGETS];
    plan->merge = common->kernels[FLP_ROLE_MERGE];
    status = check_manifests(&plan->tile->manifest, plan->offsets ? &plan->offsets->manifest : NULL, &plan->combine->manifest);
    if (status == FLP_OK)
        plan->split = flp_split_compute(plan->problem.vocab, plan->tile->manifest.block_columns, plan->tile->manifest.n_split);
    return status;
}

static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_linear_work work = { .forward = &plan->problem, .splits = plan->split.splits, .argmax = plan->problem.argmax, .entropy = plan->problem.entropy };

    flp_linear_workspace_lay_out(&work, rows, workspace);
}

void flp_linear_logp_write_shard(const flp_linear_logp_problem *problem, flp_text *text)
{
    if (problem->vocab_total > 0)
        flp_text_append(text, ";shard%" PRId64 ".%" PRId64 ".%" PRId64, problem->vocab_first, problem->vocab, problem->vocab_total);
}

/* Both kernels' identities and the split, which follows from the manifest's n_split and V; for a shard also its place in the vocabulary and the merge kernel's
 * identity. */
static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_split *split = &plan->split;

    if (flp_plan_on_gpu(common))
        flp_text_append(text, "%s;split.t%d.s%d.b%dx%d;%s", plan->tile->manifest.numerics, split->tiles, split->splits, split->big, split->big_tiles,
                        plan->combine->manifest.numerics);
    else
        flp_linear_logp_cpu_numerics(plan->problem.dtype, text);
    flp_linear_logp_write_shard(&plan->problem, text);
    if (plan->merge)
        flp_text_append(text, ";%s", plan->merge->manifest.numerics);
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_linear_logp_plan *plan = flp_linear_logp_plan_of(common);
    const flp_manifest *tile = &plan->tile->manifest;
    const flp_split *split = &plan->split;
    const flp_linear_logp_shape shape = flp_linear_logp_plan_shape(plan, plan->problem.rows);

    if (plan->shard_targets)
        flp_describe_kernel(text, "shard's targets", &plan->shard_targets->manifest);
    if (plan->offsets)
        flp_describe_kernel(text, "offsets", &plan->offsets->manifest);
    flp_describe_kernel(text, "tile", tile);
    flp_text_append(text, "tile block: %d rows x %d vocabulary entries, %d of the hidden size a stage\n", tile->block_rows, tile->block_columns,
                    tile->block_inner);
    flp_text_append(text, "tile cluster: %d\n", tile->cluster);
    flp_text_append(text, "tile blocks: %u\n", shape.tile_blocks);
    flp_text_append(text, "tile group: %d row blocks\n", shape.group);
    flp_describe_kernel(text, "combine", &plan->combine->manifest);
    flp_text_append(text, "combine blocks: %u\n", shape.combine_blocks);
    if (plan->merge)
        flp_describe_kernel(text, "merge", &plan->merge->manifest);
    flp_text_append(text, "split: %d tiles in %d splits: %d of %d, %d of 1\n", split->tiles, split->splits, split->big, split->big_tiles,
                    split->splits - split->big);
}

const flp_operator flp_linear_logp_operator = {
    FLP_OPERATOR_OF(linear_logp, ),   .fields = fields, .check = flp_linear_logp_problem_check, .set_up = set_up, .lay_out = lay_out, .describe = describe,
    .write_numerics = write_numerics,
};
