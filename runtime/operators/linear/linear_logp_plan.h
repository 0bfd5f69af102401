/* linear_logp's plan: two kernels and the split of the vocabulary; and the parts of its problem's table that stand in others too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_PLAN_H
#define FLP_OPERATORS_LINEAR_LOGP_PLAN_H
#include <stddef.h>
#include <stdint.h>

#include "core/call.h"
#include "core/problem.h"
#include "params/linear_logp.h"

/* Shared by every operator whose problem begins with flp_linear_logp_problem. */
extern const flp_field flp_linear_logp_field_inputs[], flp_linear_logp_field_precision[], flp_linear_logp_field_backend[];

/* And the args of linear_logp, its backward and linear_cross_entropy begin with the same bytes, rows to row_temperature. */
enum { FLP_LINEAR_INPUT_BYTES = offsetof(flp_linear_logp_args, logp) };

/* For flp_operator.check. */
flp_status flp_linear_logp_problem_check(void *normal);

/* The big splits are as many as a common GPU of the architecture has multiprocessors (n_split, a constant of the variant), so that with few
 * rows each block there gets one; the single tiles, which come last, even out the ends. A function of (vocab, block_columns, n_split)
 * alone: it decides a row's bits.
 * vocab 1 .. 2^31 - 1, block_columns >= 1, n_split >= 1. The result has fewer than 2 n_split splits. */
flp_split flp_split_compute(int64_t vocab, int block_columns, int n_split);

typedef struct {
    flp_plan common;
    flp_linear_logp_problem problem;  /* with its defaults filled in */
    const flp_kernel *tile, *combine; /* GPU paths, as the split */
    flp_split split;
    const flp_kernel *shard_targets, *merge; /* of a shard */
} flp_linear_logp_plan;

FLP_OPERATOR_DECLARE(linear_logp)

/* For numerics: of a shard where it lies, else nothing. */
void flp_linear_logp_write_shard(const flp_linear_logp_problem *problem, flp_text *text);

/* Its kernels' roles, for plans that it is a pass of. */
#define FLP_LINEAR_LOGP_ROLES (FLP_ROLE_SET(TILE) | FLP_ROLE_SET(SAVE_EXP_TILE) | FLP_ROLE_SET(COMBINE))

/* 1: the tile kernel leaves saved exponentials; GPU paths only. */
int flp_linear_logp_plan_saves_exp(const flp_linear_logp_plan *plan);

/* The shape of the two launches: grids, and how many row blocks share a walk through the vocabulary. */
typedef struct {
    unsigned tile_blocks, combine_blocks; /* along x; 0 for no rows */
    int32_t group;                        /* clusters' row blocks that are walked together */
} flp_linear_logp_shape;

/* splits: of the plan; row_bytes: of one row of hidden; tuned_group: a tuning's, 0: none. No row's bits depend on the result. */
flp_linear_logp_shape flp_linear_logp_shape_compute(const flp_manifest *tile, const flp_manifest *combine, int multiprocessors, int splits, int64_t row_bytes,
                                                    int32_t tuned_group, int64_t rows);

/* The shape for so many rows; GPU paths only. */
flp_linear_logp_shape flp_linear_logp_plan_shape(const flp_linear_logp_plan *plan, int64_t rows);
#endif
