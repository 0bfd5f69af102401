/* Parameters of weighted_sum's kernels. Strides are in elements. */
#ifndef FLP_PARAMS_WEIGHTED_SUM_H
#define FLP_PARAMS_WEIGHTED_SUM_H
#include "params/types.h"

/* y = x . w: any number of blocks. The variant names the dtypes of x, w and y. */
typedef struct WeightedSumParams {
    const void *x, *w; /* [rows][x_stride], of which the first `columns` are read; [columns] */
    void *y;           /* [rows] */
    i64 rows, x_stride;
    i32 columns;
} flp_weighted_sum_params;

/* grad_x = g . w^T: slabs x ceil(rows / (lanes x manifest.block_rows)) blocks. A block's threads cover `slab` neighbouring vectors of `lanes` rows at a time;
 * `slabs` slabs make up a row. */
typedef struct WeightedSumOuterParams {
    const void *g, *w; /* [rows]; [columns] */
    void *grad_x;      /* [rows][grad_x_stride] */
    i64 rows, grad_x_stride;
    i32 columns, slab, slabs, lanes;
} flp_weighted_sum_outer_params;

/* grad_w = x^T . g, for each tile of tile_rows rows: slabs x tiles blocks. */
typedef struct WeightedSumTileParams {
    const void *x, *g; /* [rows][x_stride]; [rows] */
    float *partial;    /* [tiles][columns rounded up to whole vectors]; NULL with one tile */
    void *grad_w;      /* [columns]: written by this kernel with one tile, else by the combine */
    i64 rows, x_stride, tile_rows;
    i32 tiles, columns, slab, slabs, lanes;
    i32 accumulate; /* 1: adds to what grad_w holds */
} flp_weighted_sum_tile_params;

enum { FLP_WEIGHTED_SUM_COMBINE_COLUMNS = 32 }; /* for each block */

/* Adds the tiles' parts of grad_w: ceil(columns / FLP_WEIGHTED_SUM_COMBINE_COLUMNS) blocks. */
typedef struct WeightedSumCombineParams {
    const float *partial; /* [tiles][partial_stride] */
    void *grad_w;         /* [columns] */
    i32 tiles, columns, partial_stride, accumulate;
} flp_weighted_sum_combine_params;

FLP_PARAMS_BYTES(flp_weighted_sum_params, 48);
FLP_PARAMS_BYTES(flp_weighted_sum_outer_params, 56);
FLP_PARAMS_BYTES(flp_weighted_sum_tile_params, 80);
FLP_PARAMS_BYTES(flp_weighted_sum_combine_params, 32);
#endif
