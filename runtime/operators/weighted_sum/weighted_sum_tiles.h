/* How weighted_sum's grad_w is summed: which columns a block takes, and into how many tiles the rows are cut. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_TILES_H
#define FLP_OPERATORS_WEIGHTED_SUM_TILES_H
#include <stdint.h>

/* The columns lie in `vectors` groups of vector_columns; a slab of them is a block's, whose threads stand in `lanes` rows of slab threads.
 * Every lane adds every lanes-th row of the tile; lanes, then tiles are added in a fixed order. A function of (rows, columns,
 * vector_columns, threads) alone, whatever the GPU: it decides grad_w's bits. */
typedef struct {
    int32_t vectors, slab, slabs, lanes;
    int32_t tiles; /* at least 1, which is written without a combine */
    int64_t tile_rows;
    int64_t partial_floats; /* of the tiles' sums, [tiles][vectors x vector_columns]; 0 for one tile */
} flp_weighted_sum_tiles;

/* rows 0 .. 2^28, columns 1 .. 2^31 - 1, vector_columns and threads of the kernel. */
flp_weighted_sum_tiles flp_weighted_sum_tiles_compute(int64_t rows, int64_t columns, int vector_columns, int threads);

/* The most partial_floats of any number of rows up to rows. */
int64_t flp_weighted_sum_tiles_floats(int64_t rows, int64_t columns, int vector_columns, int threads);
#endif
