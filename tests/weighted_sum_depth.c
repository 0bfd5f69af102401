/* Counts the roundings from a plan's manifests and tiles. */
#include "weighted_sum_depth.h"

#include "operators/weighted_sum/weighted_sum_plan.h"

static int64_t divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

/* The depth of a tree that halves `leaves`. */
static int64_t halvings(int64_t leaves)
{
    int64_t depth = 0;

    for (; leaves > 1; leaves = divide_up(leaves, 2))
        depth++;
    return depth;
}

/* A thread's vectors, one after the other; places, lanes and warps pairwise. */
int64_t flp_weighted_sum_depth(const flp_plan *plan)
{
    const flp_weighted_sum_plan *own = flp_weighted_sum_plan_of(plan);
    const flp_manifest *manifest = &own->sum->manifest;
    const int64_t elements = own->problem.dtype == FLP_F32 ? 4 : 8, team = manifest->threads / manifest->block_rows;
    const int64_t vectors = divide_up(own->problem.columns, elements);

    return divide_up(vectors, team) + halvings(elements) + halvings(team);
}

/* A lane's rows of a tile, one after the other; lanes pairwise; tiles in warps, warps one after the other; what stood there. */
int64_t flp_weighted_gradient_depth(const flp_plan *plan, int64_t rows)
{
    const flp_weighted_sum_backward_plan *own = flp_weighted_sum_backward_plan_of(plan);
    const int64_t warps = own->combine ? own->combine->manifest.threads / 32 : 1;
    flp_weighted_sum_tiles tiles;

    if (!own->tile)
        return 1;
    tiles = flp_weighted_sum_backward_plan_tiles(own, rows);
    return divide_up(tiles.tile_rows, tiles.lanes) + halvings(tiles.lanes) + divide_up(tiles.tiles, warps) + warps + 1;
}
