/* Launches of the kernels that are the forward's mainloop with a stored tile: a product's or the logits' derivatives. */
#ifndef FLP_OPERATORS_MATRIX_PRODUCT_LAUNCH_H
#define FLP_OPERATORS_MATRIX_PRODUCT_LAUNCH_H
#include "core/plan.h"
#include "cuda/tensor_map.h"

/* A matrix as it lies in memory. */
typedef struct {
    const void *data;
    flp_dtype dtype;
    int64_t rows, columns; /* what lies outside reads as zeros, and is not written */
    int64_t stride;        /* elements from row to row */
} flp_matrix;

/* What one copy brings or takes of it. */
typedef struct {
    int columns, rows, fetches_ahead; /* flp_tensor_map_spec's */
} flp_matrix_box;

/* The map by which a kernel of the plan reads or writes it, or one row of zeros where it has none. whose: for messages. FLP_BAD_ARGUMENT. */
flp_status flp_matrix_encode(const flp_plan *plan, const char *whose, const flp_matrix *matrix, flp_matrix_box box, CUtensorMap *map);

enum { FLP_LONG_ROW_BYTES = 8192 };

typedef struct {
    flp_matrix a, b, out;
    int64_t rows, columns; /* of out: what its tiles cover */
    int64_t row_bytes;     /* that a row of A brings into the L2: of more than FLP_LONG_ROW_BYTES a group's rows do not stay there */
    void *params;          /* the kernel's own; group points into it */
    int32_t *group;
    int64_t multiprocessors_left; /* to what runs beside it */
} flp_tile_launch;

/* What a launch of the plan's kernel of this role is made of. */
typedef struct {
    int64_t row_groups; /* of a cluster's rows */
    int64_t tiles;      /* of a cluster */
    int64_t clusters;   /* that the multiprocessors have room for; there is one for each tile where that is fewer */
} flp_tile_shape;
flp_tile_shape flp_tile_launch_shape(const flp_plan *plan, flp_role role, const flp_tile_launch *launch);

/* The tiles of one launch of the plan's kernel of a role, sums over `inner`. */
typedef struct {
    flp_role role;
    int64_t rows, columns, inner;
    int64_t head_tiles; /* of them so many have been dealt before the others, to who began early */
    int64_t most_early; /* > 0: who begins early can multiply so many tiles, or fewer, before it has to wait */
} flp_tile_work;

/* So many clusters begin early, and have time for so many tiles. */
typedef struct {
    int32_t workers, tiles;
} flp_head_start;

/* The head start of a launch over the one before it: the clusters that the last wave of the launch before leaves without a tile, and how many tiles of this
 * launch each of them has time for until that wave ends, at most all there are. { 0, 0 }: no cluster is idle, or has time for a tile. */
flp_head_start flp_tile_launch_head_start(const flp_plan *plan, const flp_tile_work *before, const flp_tile_work *own);

/* How many of so many clusters' row blocks are walked together: as many as fit the L2, then evened out, so that the last group is not a small one.
 * tuned: what the plan's tuning says of it; 0: nothing. */
int32_t flp_tile_launch_group(int64_t row_groups, int64_t row_group_bytes, int32_t tuned);

/* The same where they fit in no way, of so many tiles at work together, each of a row group's rows and of so many columns: the side of the square that they
 * make up, of all rectangles the one that reads the least of A and B. */
int32_t flp_tile_launch_square(int64_t row_groups, int64_t tiles, int64_t rows, int64_t columns);

/* Launches the plan's kernel of this role, of the parameters (A's map, B's map, out's map, params), on the portable path (params). FLP_CUDA_FAILED names
 * the kernel. */
flp_status flp_tile_launch_run(const flp_plan *plan, flp_role role, const flp_tile_launch *launch, CUstream stream);
#endif
