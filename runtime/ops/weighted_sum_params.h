/* What weighted_sum's kernels take. The device half is templates/common/weighted_sum_params.cuh.
 * KEEP IN STEP: weighted_sum parameters. */
#ifndef FLP_OPS_WEIGHTED_SUM_PARAMS_H
#define FLP_OPS_WEIGHTED_SUM_PARAMS_H
#include <stdint.h>

/* Strides in elements. Any number of blocks from 1. */
typedef struct {
    const void *x, *w;
    void *y;
    int64_t rows, x_stride;
    int32_t columns;
} flp_weighted_sum_params;

/* slabs x ceil(rows / (lanes x manifest.block_rows)) blocks: slab vectors side by side, lanes rows at a time. */
typedef struct {
    const void *g, *w;
    void *grad_x;
    int64_t rows, grad_x_stride;
    int32_t columns, slab, slabs, lanes;
} flp_weighted_sum_outer_params;

/* slabs x tiles blocks. */
typedef struct {
    const void *x, *g;
    float *partial;             /* [tiles][columns, up to a whole vector]; NULL for one tile, */
    void *grad_w;               /* which is written there */
    int64_t rows, x_stride, tile_rows;
    int32_t tiles, columns, slab, slabs, lanes;
    int32_t accumulate;         /* 1: grad_w is added to what stands there */
} flp_weighted_sum_tile_params;

/* ceil(columns / 32) blocks. */
typedef struct {
    const float *partial;
    void *grad_w;
    int32_t tiles, columns, partial_stride, accumulate;
} flp_weighted_sum_combine_params;

_Static_assert(sizeof(flp_weighted_sum_params) == 48 && sizeof(flp_weighted_sum_outer_params) == 56 &&
               sizeof(flp_weighted_sum_tile_params) == 80 && sizeof(flp_weighted_sum_combine_params) == 32,
               "templates/common/weighted_sum_params.cuh disagrees");
#endif
