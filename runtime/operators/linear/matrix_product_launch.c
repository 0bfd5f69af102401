/* Launches of the kernels that run the forward's mainloop and store its tiles. */
#include "operators/linear/matrix_product_launch.h"

#include "base/dtype.h"
#include "base/int64.h"
#include "base/status.h"
#include "core/call.h"
#include "params/tiles.h"

enum {
    EPILOGUE_STEPS = 2, /* steps along the inner size, which take as long as storing a tile */
    NEARLY = 8          /* making the others wait for up to 1/8 of a tile costs less than leaving a cluster idle for the other 7/8 */
};

/* The bytes of A's rows that stay in the L2 while all of B streams past them. The performance model knows it, too (gen/model.lua). */
static const int64_t group_bytes = INT64_C(32) << 20;

flp_status flp_matrix_encode(const flp_plan *plan, const char *whose, const flp_matrix *matrix, flp_matrix_box box, CUtensorMap *map)
{
    const flp_tensor_map_spec spec = {
        .context_id = plan->device.context_id,
        .address = matrix->data,
        .dtype = matrix->dtype,
        .columns = matrix->columns,
        .rows = flp_int64_larger(1, matrix->rows),
        .row_bytes = matrix->stride * flp_dtype_bytes(matrix->dtype),
        .box_columns = box.columns,
        .box_rows = box.rows,
        .fetches_ahead = box.fetches_ahead,
    };
    flp_status status = flp_tensor_map_encode(&spec, map);

    return status == FLP_OK ? status : flp_status_prefix(status, "%s tensor map", whose);
}

static flp_status encode_maps(const flp_plan *plan, const flp_manifest *manifest, const flp_tile_launch *launch, CUtensorMap maps[3])
{
    const flp_matrix_box a = { manifest->block_inner, manifest->a_box_rows, 0 }, b = { manifest->b_box_columns, manifest->b_box_rows, 0 };
    const flp_matrix_box out = { FLP_OUT_BOX_BYTES / flp_dtype_bytes(launch->out.dtype), FLP_OUT_BOX_ROWS, 0 };
    flp_status status = flp_matrix_encode(plan, "A's", &launch->a, a, &maps[0]);

    if (status == FLP_OK)
        status = flp_matrix_encode(plan, "B's", &launch->b, b, &maps[1]);
    if (status == FLP_OK)
        status = flp_matrix_encode(plan, "out's", &launch->out, out, &maps[2]);
    return status;
}

/* The size of a group: `most` row groups, or a few fewer such that all groups are of about the same size. */
static int32_t in_equal_groups(int64_t row_groups, int64_t most)
{
    return (int32_t)flp_int64_divide_up(row_groups, flp_int64_divide_up(row_groups, flp_int64_larger(1, most)));
}

int32_t flp_tile_launch_group(int64_t row_groups, int64_t row_group_bytes, int32_t tuned)
{
    if (tuned > 0)
        return (int32_t)flp_int64_larger(1, flp_int64_smaller(tuned, row_groups));
    return in_equal_groups(row_groups, group_bytes / flp_int64_larger(1, row_group_bytes));
}

int32_t flp_tile_launch_square(int64_t row_groups, int64_t tiles, int64_t rows, int64_t columns)
{
    int64_t side = 1;

    while (side < tiles && (side + 1) * (side + 1) * rows <= tiles * columns)
        side++;
    return in_equal_groups(row_groups, side);
}

int64_t flp_tile_launch_clusters(const flp_manifest *manifest, int64_t multiprocessors)
{
    return flp_int64_larger(1, multiprocessors * manifest->resident_blocks / manifest->cluster);
}

flp_tile_shape flp_tile_launch_shape(const flp_plan *plan, flp_role role, const flp_tile_launch *launch)
{
    const flp_manifest *manifest = &plan->kernels[role]->manifest;
    const int64_t row_groups = flp_int64_larger(1, flp_int64_divide_up(launch->rows, (int64_t)manifest->block_rows * manifest->cluster));
    const int64_t all = plan->device.facts.multiprocessors, multiprocessors = all - flp_int64_smaller(launch->multiprocessors_left, all);

    return (flp_tile_shape){
        .row_groups = row_groups,
        .tiles = row_groups * flp_int64_divide_up(launch->columns, manifest->block_columns) * flp_int64_larger(1, launch->parts),
        .clusters = flp_tile_launch_clusters(manifest, multiprocessors),
    };
}

/* The work of one multiprocessor on a tile, in multiplications of elements. */
static int64_t tile_work(const flp_plan *plan, const flp_tile_work *work)
{
    const flp_manifest *manifest = &plan->kernels[work->role]->manifest;

    return manifest->block_rows * (int64_t)manifest->block_columns * (work->inner + EPILOGUE_STEPS * manifest->block_inner);
}

static flp_tile_shape shape_of_work(const flp_plan *plan, const flp_tile_work *work)
{
    const flp_tile_launch launch = { .rows = work->rows, .columns = work->columns };

    return flp_tile_launch_shape(plan, work->role, &launch);
}

flp_head_start flp_tile_launch_head_start(const flp_plan *plan, const flp_tile_work *before, const flp_tile_work *own)
{
    const flp_tile_shape shape_before = shape_of_work(plan, before), shape = shape_of_work(plan, own);
    const int64_t last = (shape_before.tiles - before->head_tiles) % shape_before.clusters; /* tiles of the last wave; 0: it is full */
    const int64_t idle = last > 0 ? (shape_before.clusters - last) * shape.clusters / shape_before.clusters : 0;
    const int64_t one = tile_work(plan, own), time = (tile_work(plan, before) + one / NEARLY) / one;
    const int64_t possible = own->most_early > 0 ? flp_int64_smaller(time, own->most_early) : time;
    const int64_t tiles = idle > 0 ? flp_int64_smaller(possible, flp_int64_divide_up(shape.tiles, idle)) : 0;

    return tiles > 0 ? (flp_head_start){ (int32_t)idle, (int32_t)tiles } : (flp_head_start){ 0, 0 };
}

flp_status flp_tile_launch_run(const flp_plan *plan, flp_role role, const flp_tile_launch *launch, CUstream stream)
{
    const flp_kernel *kernel = plan->kernels[role];
    const flp_manifest *manifest = &kernel->manifest;
    const int64_t cluster_rows = (int64_t)manifest->block_rows * manifest->cluster;
    const flp_tile_shape shape = flp_tile_launch_shape(plan, role, launch);
    const int with_maps = flp_manifest_takes_maps(manifest);
    CUtensorMap maps[3];
    void *parameters[] = { &maps[0], &maps[1], &maps[2], launch->params };
    flp_status status = with_maps ? encode_maps(plan, manifest, launch, maps) : FLP_OK;

    if (status != FLP_OK)
        return status;
    *launch->group = launch->row_bytes > FLP_LONG_ROW_BYTES && plan->group[role] == 0
                         ? flp_tile_launch_square(shape.row_groups, shape.clusters, cluster_rows, manifest->block_columns)
                         : flp_tile_launch_group(shape.row_groups, launch->row_bytes * cluster_rows, plan->group[role]);
    return flp_call_launch(kernel, (unsigned)(flp_int64_smaller(shape.tiles, shape.clusters) * manifest->cluster), stream,
                           with_maps ? parameters : parameters + 3);
}
