/* The shape of linear_logp's two launches: grids, and how many row blocks share a walk through the vocabulary. */
#ifndef FLP_PLAN_LINEAR_LOGP_SHAPE_H
#define FLP_PLAN_LINEAR_LOGP_SHAPE_H
#include "jit/manifest.h"

typedef struct {
    unsigned tile_blocks, combine_blocks; /* along x; 0 for no rows */
    int32_t group;                        /* clusters' row blocks that are walked together */
} flp_linear_logp_shape;

/* splits: of the plan; row_bytes: of one row of hidden. No row's bits depend on the result. */
flp_linear_logp_shape flp_linear_logp_shape_compute(const flp_manifest *tile, const flp_manifest *combine, int multiprocessors,
                                                    int splits, int64_t row_bytes, int64_t rows);
#endif
