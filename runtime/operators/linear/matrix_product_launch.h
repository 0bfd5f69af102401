/* Launches of the kernels that run the forward's mainloop and store its tiles: matrix products, and the derivatives by logits. */
#ifndef FLP_OPERATORS_MATRIX_PRODUCT_LAUNCH_H
#define FLP_OPERATORS_MATRIX_PRODUCT_LAUNCH_H
#include "core/plan.h"
#include "cuda/tensor_map.h"

/* A matrix as stored. */
typedef struct {
    const void *data;
    flp_dtype dtype;
    int64_t rows, columns; /* what is outside of these reads as zeros and is not written */
    int64_t stride;        /* elements from row to row */
} flp_matrix;

/* The box of a matrix that one TMA copy loads or stores. */
typedef struct {
    int columns, rows, fetches_ahead; /* flp_tensor_map_spec's */
} flp_matrix_box;

/* Encodes the tensor map by which a kernel of the plan reads or writes the matrix. A matrix without rows is encoded with one row. whose: for messages.
 * FLP_BAD_ARGUMENT. */
flp_status flp_matrix_encode(const flp_plan *plan, const char *whose, const flp_matrix *matrix, flp_matrix_box box, CUtensorMap *map);

enum { FLP_LONG_ROW_BYTES = 8192 };

typedef struct {
    flp_matrix a, b, out;
    int64_t rows, columns; /* of out: those that the tiles cover */
    int64_t parts;         /* of the inner size, each with tiles of its own; 0: one */
    int64_t row_bytes;     /* bytes that a row of A brings into the L2; with more than FLP_LONG_ROW_BYTES, a group's rows do not stay there */
    void *params;          /* the kernel's parameters; group is the address of their field */
    int32_t *group;
    int64_t multiprocessors_left; /* not used, but left to what runs beside the launch */
} flp_tile_launch;

/* The number of clusters that fit on so many multiprocessors at once. */
int64_t flp_tile_launch_clusters(const flp_manifest *manifest, int64_t multiprocessors);

/* The shape of a launch of the plan's kernel of this role. */
typedef struct {
    int64_t row_groups; /* groups of as many rows as a cluster has */
    int64_t tiles;      /* cluster tiles that cover out, of all parts */
    int64_t clusters;   /* flp_tile_launch_clusters; a launch has no more of them than tiles */
} flp_tile_shape;
flp_tile_shape flp_tile_launch_shape(const flp_plan *plan, flp_role role, const flp_tile_launch *launch);

/* The work of one launch of the plan's kernel of a role: the tiles of rows x columns, each a sum over `inner`. */
typedef struct {
    flp_role role;
    int64_t rows, columns, inner;
    int64_t head_tiles; /* the number of tiles that its own head start assigned to the clusters that began early */
    int64_t most_early; /* > 0: the most tiles that a cluster that begins early can multiply before it has to wait */
} flp_tile_work;

/* `workers` clusters begin early, and each has time for `tiles` tiles. */
typedef struct {
    int32_t workers, tiles;
} flp_head_start;

/* The head start of a launch, `own`, over the end of the previous one, `before`: the number of clusters that the last wave of the previous launch leaves
 * without a tile, and how many tiles of this launch each of them has time for until that wave ends, at most as many as make up the whole launch. { 0, 0 }: no
 * cluster is idle, or none has time for a tile. */
flp_head_start flp_tile_launch_head_start(const flp_plan *plan, const flp_tile_work *before, const flp_tile_work *own);

/* The size of a group: how many of `row_groups` row groups are worked on together, so that they share B's tiles in the L2. It is as many as fit the L2, evened
 * out so that the last group is not a small one. tuned: the size in the plan's tuning; 0: it has none. */
int32_t flp_tile_launch_group(int64_t row_groups, int64_t row_group_bytes, int32_t tuned);

/* The size of a group whose rows do not stay in the L2. `tiles` tiles of rows x columns are worked on at once. They read the least of A and B if they cover a
 * square: the result is the number of row groups along its side. */
int32_t flp_tile_launch_square(int64_t row_groups, int64_t tiles, int64_t rows, int64_t columns);

/* Launches the plan's kernel of this role. Its arguments are the tensor maps of A, B and out, then params; on the portable path, params alone. FLP_CUDA_FAILED
 * names the kernel. */
flp_status flp_tile_launch_run(const flp_plan *plan, flp_role role, const flp_tile_launch *launch, CUstream stream);
#endif
