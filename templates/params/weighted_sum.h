/* What weighted_sum's kernels take. Strides are in elements. */
#ifndef FLP_PARAMS_WEIGHTED_SUM_H
#define FLP_PARAMS_WEIGHTED_SUM_H
#include "params/types.h"

/* y = x . w: any number of blocks from 1. The elements of x, w and y are the variant's. */
typedef struct WeightedSumParams {
    const void *x, *w; /* [rows][x_stride], of which `columns` count; [columns] */
    void *y;           /* [rows] */
    i64 rows, x_stride;
    i32 columns;
} flp_weighted_sum_params;

/* grad_x = g . w^T: slabs x ceil(rows / (lanes x manifest.block_rows)) blocks; `slab` vectors side by side, `lanes` rows at a time. */
typedef struct WeightedSumOuterParams {
    const void *g, *w; /* [rows]; [columns] */
    void *grad_x;      /* [rows][grad_x_stride] */
    i64 rows, grad_x_stride;
    i32 columns, slab, slabs, lanes;
} flp_weighted_sum_outer_params;

/* grad_w = x^T . g, tile by tile: slabs x tiles blocks. */
typedef struct WeightedSumTileParams {
    const void *x, *g; /* [rows][x_stride]; [rows] */
    float *partial;    /* [tiles][columns, up to a whole vector]; NULL for one tile, */
    void *grad_w;      /* [columns]: which is written there */
    i64 rows, x_stride, tile_rows;
    i32 tiles, columns, slab, slabs, lanes;
    i32 accumulate; /* 1: grad_w is added to what stands there */
} flp_weighted_sum_tile_params;

enum { FLP_WEIGHTED_SUM_COMBINE_COLUMNS = 32 }; /* of a block */

/* The tiles' sum: ceil(columns / FLP_WEIGHTED_SUM_COMBINE_COLUMNS) blocks. */
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
