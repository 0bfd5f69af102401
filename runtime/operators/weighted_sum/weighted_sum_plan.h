/* The plans of weighted_sum and its backward, the shapes of their launches, the table of the backward problem's fields, and the CPU path. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_PLAN_H
#define FLP_OPERATORS_WEIGHTED_SUM_PLAN_H
#include <stdint.h>
#include "core/call.h"
#include "cpu/thread_pool.h"

extern const flp_field *const flp_weighted_sum_backward_fields[];

/* For flp_operator.check. */
flp_status flp_weighted_sum_backward_problem_check(void *normal);

typedef struct {
    flp_plan common;
    flp_weighted_sum_problem problem; /* with its defaults filled in */
    const flp_kernel *sum;            /* GPU paths */
} flp_weighted_sum_plan;

FLP_OPERATOR_DECLARE(weighted_sum)

/* The number of blocks of the launch for `rows` rows, at least 1; GPU paths only. No row's bits depend on it. */
unsigned flp_weighted_sum_plan_blocks(const flp_weighted_sum_plan *plan, int64_t rows);

/* ---- the backward: one kernel for grad_x; for grad_w, one for the tiles into which the rows are cut, and one that adds the tiles ---- */

/* grad_w: the columns are cut into `vectors` vectors of vector_columns, and these into `slabs` slabs of `slab` vectors; the rows are cut into `tiles` tiles. A
 * block sums up one slab of one tile. Its threads form `lanes` lanes of `slab` threads, and each lane adds every lanes-th row of the tile. Lanes, then tiles
 * are added in a fixed order. All this is a function of (rows, columns, vector_columns, threads) alone, whatever the GPU, because it decides grad_w's bits. */
typedef struct {
    int32_t vectors, slab, slabs, lanes;
    int32_t tiles; /* at least 1; a single tile is written without a combine */
    int64_t tile_rows;
    int64_t partial_floats; /* of the tiles' sums [tiles][vectors x vector_columns]; 0 for a single tile */
} flp_weighted_sum_tiles;

/* rows 0 .. 2^28, columns 1 .. 2^31 - 1; vector_columns and threads are the kernel's. */
flp_weighted_sum_tiles flp_weighted_sum_tiles_compute(int64_t rows, int64_t columns, int vector_columns, int threads);

/* The most partial_floats for any number of rows up to `rows`. */
int64_t flp_weighted_sum_tiles_floats(int64_t rows, int64_t columns, int vector_columns, int threads);

typedef struct {
    flp_plan common;
    flp_weighted_sum_backward_problem problem; /* with its defaults filled in */
    const flp_kernel *outer, *tile, *combine;  /* GPU paths; NULL where the gradient is not requested */
} flp_weighted_sum_backward_plan;

/* grad_x: a block's threads form `lanes` lanes of `slab` threads. It writes `slab` vectors of lanes x block_rows rows. `slabs` slabs make up a row. */
typedef struct {
    int32_t slab, slabs, lanes;
    int64_t blocks;
} flp_weighted_sum_outer;

typedef enum { FLP_WEIGHTED_SUM_STEP_TILES, FLP_WEIGHTED_SUM_STEP_COMBINE, FLP_WEIGHTED_SUM_STEP_GRAD_X } flp_weighted_sum_step;
typedef enum { FLP_WEIGHTED_SUM_PART_PARTIAL /* [tiles][columns, padded] f32 */ } flp_weighted_sum_part;

FLP_OPERATOR_DECLARE(weighted_sum_backward)

/* The shapes of the launches for `rows` rows; on GPU paths, for a gradient that is requested. */
flp_weighted_sum_outer flp_weighted_sum_backward_plan_outer(const flp_weighted_sum_backward_plan *plan, int64_t rows);
flp_weighted_sum_tiles flp_weighted_sum_backward_plan_tiles(const flp_weighted_sum_backward_plan *plan, int64_t rows);

/* ---- the CPU path, both directions, on the thread pool ---- */

/* Whether the compiler may fuse a product and its sum, which decides bits. */
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FLP_WEIGHTED_SUM_ARITHMETIC "fma"
#else
#define FLP_WEIGHTED_SUM_ARITHMETIC "multiply-add"
#endif

/* problem and args have been checked: strides and dtypes are filled in, rows > 0. A row's bits depend on D and the dtypes alone.
 * Allocates nothing. */
void flp_weighted_sum_cpu(flp_thread_pool *pool, const flp_weighted_sum_problem *problem, const flp_weighted_sum_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_weighted_sum_cpu_numerics(void);

/* problem and args have been checked: strides and dtypes are filled in. grad_x may be x. The order of grad_w's sums depends on N alone: tiles
 * of rows in order, each summed in order. It allocates at most 16 MiB.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_weighted_sum_backward_cpu(flp_thread_pool *pool, const flp_weighted_sum_backward_problem *problem, const flp_weighted_sum_backward_args *args);

/* The identity of its arithmetic. Static. */
const char *flp_weighted_sum_backward_cpu_numerics(void);
#endif
