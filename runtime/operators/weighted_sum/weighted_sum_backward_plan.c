/* weighted_sum_backward as an operator: the tiles of grad_w, and its plans' kernels, workspace, description and numerics. */

#include <stddef.h>

#include "base/int64.h"
#include "base/status.h"
#include "core/plan.h"
#include "core/workspace.h"
#include "operators/weighted_sum/weighted_sum_plan.h"

enum {
    MULTIPROCESSORS = 132, /* of an H100 or H200: one block on each keeps all of them reading */
    WAVES = 4,             /* the most that are tried before an uneven cut is taken */
    BATCH = 8              /* rows that a lane loads in one batch; a tile has at least one batch */
};

/* The widths of a slab that are tried, in vectors. 512 bytes of a row are read as fast as more, and leave more lanes, and so fewer tiles. */
static const int widths[] = { 32, 64, 128 };

/* The share of the multiprocessors' time that the waves of blocks must use for a cut to count as even. */
static const double even_enough = 0.94;

typedef struct {
    int64_t slabs, tiles;
} cut;

static double evenness(cut c)
{
    int64_t blocks = c.slabs * c.tiles;

    return (double)blocks / (double)(flp_int64_divide_up(blocks, MULTIPROCESSORS) * MULTIPROCESSORS);
}

/* The first cut that is even enough, trying few waves first, then narrow slabs; if none is, the most even one. */
static cut choose_cut(int64_t vectors)
{
    cut best = { .slabs = 0 };

    for (int waves = 1; waves <= WAVES; waves++)
        for (unsigned i = 0; i < sizeof(widths) / sizeof(widths[0]); i++) {
            cut c = { .slabs = flp_int64_divide_up(vectors, widths[i]) };
            c.tiles = waves * MULTIPROCESSORS / c.slabs;
            if (c.tiles < 1)
                c.tiles = 1;
            if (evenness(c) >= even_enough)
                return c;
            if (best.slabs == 0 || evenness(c) > evenness(best))
                best = c;
        }
    return best;
}

/* The cut for `rows` rows, before its tiles are evened out: their number never decreases with more rows. *slab: the vectors of a slab. */
static cut cut_for(int64_t rows, int64_t vectors, int threads, int64_t *slab)
{
    cut c = choose_cut(vectors);
    int64_t most;

    *slab = flp_int64_divide_up(vectors, c.slabs);
    c.slabs = flp_int64_divide_up(vectors, *slab);
    most = flp_int64_divide_up(rows, threads / *slab * BATCH);
    if (c.tiles > most)
        c.tiles = most < 1 ? 1 : most;
    return c;
}

flp_weighted_sum_tiles flp_weighted_sum_tiles_compute(int64_t rows, int64_t columns, int vector_columns, int threads)
{
    const int64_t vectors = flp_int64_divide_up(columns, vector_columns);
    int64_t slab;
    const cut c = cut_for(rows, vectors, threads, &slab);
    const int64_t tile_rows = flp_int64_divide_up(rows, c.tiles);
    flp_weighted_sum_tiles tiles = { .vectors = (int32_t)vectors,
                                     .slab = (int32_t)slab,
                                     .slabs = (int32_t)c.slabs,
                                     .lanes = (int32_t)(threads / slab),
                                     .tiles = rows == 0 ? 1 : (int32_t)flp_int64_divide_up(rows, tile_rows),
                                     .tile_rows = tile_rows };

    tiles.partial_floats = tiles.tiles == 1 ? 0 : tiles.tiles * vectors * vector_columns;
    return tiles;
}

int64_t flp_weighted_sum_tiles_floats(int64_t rows, int64_t columns, int vector_columns, int threads)
{
    const int64_t vectors = flp_int64_divide_up(columns, vector_columns);
    int64_t slab;
    const cut c = cut_for(rows, vectors, threads, &slab);

    return c.tiles == 1 ? 0 : c.tiles * vectors * vector_columns;
}

flp_weighted_sum_outer flp_weighted_sum_backward_plan_outer(const flp_weighted_sum_backward_plan *plan, int64_t rows)
{
    const flp_manifest *outer = &plan->outer->manifest;
    const int64_t vectors = flp_int64_divide_up(plan->problem.forward.columns, outer->block_inner);
    const int64_t slab = flp_int64_divide_up(vectors, flp_int64_divide_up(vectors, outer->threads)), slabs = flp_int64_divide_up(vectors, slab);
    const int64_t lanes = outer->threads / slab;

    return (flp_weighted_sum_outer){
        .slab = (int32_t)slab, .slabs = (int32_t)slabs, .lanes = (int32_t)lanes, .blocks = slabs * flp_int64_divide_up(rows, lanes * outer->block_rows)
    };
}

flp_weighted_sum_tiles flp_weighted_sum_backward_plan_tiles(const flp_weighted_sum_backward_plan *plan, int64_t rows)
{
    const flp_manifest *tile = &plan->tile->manifest;

    return flp_weighted_sum_tiles_compute(rows, plan->problem.forward.columns, tile->block_inner, tile->threads);
}

/* Checks the numbers by which launches divide: a kernel from a cache brings its own manifest. */
static flp_status check_manifest(const flp_manifest *manifest, int needs_rows)
{
    if (manifest->threads >= 128 && manifest->block_inner >= 1 && manifest->block_rows >= needs_rows)
        return FLP_OK;
    return flp_status_fail(FLP_INTERNAL, "manifest of %s: threads %d, block_inner %d, block_rows %d; wanted at least 128, 1, %d", manifest->variant,
                           manifest->threads, manifest->block_inner, manifest->block_rows, needs_rows);
}

static flp_status set_up(flp_plan *common)
{
    flp_weighted_sum_backward_plan *plan = (flp_weighted_sum_backward_plan *)(void *)common;
    const int wants_x = plan->problem.grad_x != FLP_NONE, wants_w = plan->problem.grad_w != FLP_NONE;
    const flp_role_set of_x = FLP_ROLE_SET(OUTER), of_w = FLP_ROLE_SET(TILE) | FLP_ROLE_SET(COMBINE);
    flp_status status = flp_plan_check_kernels(common, (wants_x ? of_x : 0) | (wants_w ? of_w : 0), 0);

    plan->outer = common->kernels[FLP_ROLE_OUTER];
    plan->tile = common->kernels[FLP_ROLE_TILE];
    plan->combine = common->kernels[FLP_ROLE_COMBINE];
    if (status == FLP_OK && wants_x)
        status = check_manifest(&plan->outer->manifest, 1);
    return status == FLP_OK && wants_w ? check_manifest(&plan->tile->manifest, 0) : status;
}

static void lay_out(const flp_plan *common, int64_t rows, flp_workspace *workspace)
{
    static const char *const steps[] = { "tiles", "combine", "grad_x" };
    const flp_weighted_sum_backward_plan *plan = flp_weighted_sum_backward_plan_of(common);

    *workspace = (flp_workspace){ .steps = steps };
    if (plan->tile)
        workspace->part[FLP_WEIGHTED_SUM_PART_PARTIAL] = (flp_workspace_part){
            .name = "partial",
            .bytes = flp_weighted_sum_tiles_floats(rows, plan->problem.forward.columns, plan->tile->manifest.block_inner, plan->tile->manifest.threads) *
                     (int64_t)sizeof(float),
            .first = FLP_WEIGHTED_SUM_STEP_TILES,
            .last = FLP_WEIGHTED_SUM_STEP_COMBINE,
        };
    flp_workspace_lay_out(workspace);
}

static void write_numerics(const flp_plan *common, flp_text *text)
{
    const flp_weighted_sum_backward_plan *plan = flp_weighted_sum_backward_plan_of(common);
    const char *separator = "";

    if (!flp_plan_on_gpu(common)) {
        flp_text_append(text, "%s", flp_weighted_sum_backward_cpu_numerics());
        return;
    }
    if (plan->outer) {
        flp_text_append(text, "%s", plan->outer->manifest.numerics);
        separator = ";";
    }
    if (plan->tile)
        flp_text_append(text, "%s%s;%s", separator, plan->tile->manifest.numerics, plan->combine->manifest.numerics);
}

static void describe(const flp_plan *common, flp_text *text)
{
    const flp_weighted_sum_backward_plan *plan = flp_weighted_sum_backward_plan_of(common);
    const int64_t rows = plan->problem.forward.rows;

    if (plan->outer) {
        const flp_weighted_sum_outer outer = flp_weighted_sum_backward_plan_outer(plan, rows);
        flp_describe_kernel(text, "outer", &plan->outer->manifest);
        flp_text_append(text, "outer blocks: %lld\n", (long long)outer.blocks);
    }
    if (plan->tile) {
        const flp_weighted_sum_tiles tiles = flp_weighted_sum_backward_plan_tiles(plan, rows);
        flp_describe_kernel(text, "tile", &plan->tile->manifest);
        flp_text_append(text, "tiles: %d of %lld rows, %d slabs of %d columns, %d lanes\n", tiles.tiles, (long long)tiles.tile_rows, tiles.slabs,
                        tiles.slab * plan->tile->manifest.block_inner, tiles.lanes);
        flp_describe_kernel(text, "combine", &plan->combine->manifest);
    }
}

const flp_operator flp_weighted_sum_backward_operator = {
    FLP_OPERATOR_OF(weighted_sum_backward, forward.),
    .fields = flp_weighted_sum_backward_fields,
    .check = flp_weighted_sum_backward_problem_check,
    .set_up = set_up,
    .lay_out = lay_out,
    .describe = describe,
    .write_numerics = write_numerics,
};
