/* The shape of linear_logp's two launches. */
#include "plan/linear_logp_shape.h"

/* Hidden rows that a group keeps in the L2 while all of the weight streams past them. */
static const int64_t group_bytes = INT64_C(32) << 20;

static int64_t divide_up(int64_t count, int64_t by)
{
    return (count + by - 1) / by;
}

static int64_t at_least_one(int64_t count)
{
    return count < 1 ? 1 : count;
}

/* As many as fit, then evened out, so that the last group is not a small one. */
static int64_t choose_group(int64_t row_groups, int64_t row_group_bytes)
{
    int64_t fit = at_least_one(group_bytes / row_group_bytes);

    return divide_up(row_groups, divide_up(row_groups, fit));
}

flp_linear_logp_shape flp_linear_logp_shape_compute(const flp_manifest *tile, const flp_manifest *combine, int multiprocessors,
                                                    int splits, int64_t row_bytes, int64_t rows)
{
    const int64_t cluster_rows = (int64_t)tile->block_rows * tile->cluster;
    const int64_t row_groups = divide_up(rows, cluster_rows);
    const int64_t units = row_groups * splits;
    const int64_t clusters = at_least_one((int64_t)multiprocessors * tile->resident_blocks / tile->cluster);

    if (rows == 0)
        return (flp_linear_logp_shape){ .group = 1 };
    return (flp_linear_logp_shape){
        .tile_blocks = (unsigned)((units < clusters ? units : clusters) * tile->cluster),
        .combine_blocks = (unsigned)divide_up(rows, combine->block_rows),
        .group = (int32_t)choose_group(row_groups, row_bytes * cluster_rows),
    };
}
