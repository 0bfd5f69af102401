/* linear_logp's plan: its kernels and the split of the vocabulary. Also the parts of its problem's table of fields that other operators' tables contain. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_PLAN_H
#define FLP_OPERATORS_LINEAR_LOGP_PLAN_H
#include <stddef.h>
#include <stdint.h>

#include "core/call.h"
#include "core/problem.h"
#include "params/linear_logp.h"

/* Shared by every operator whose problem begins with flp_linear_logp_problem. */
extern const flp_field flp_linear_logp_field_inputs[], flp_linear_logp_field_precision[], flp_linear_logp_field_backend[];

/* The args of linear_logp, its backward and linear_cross_entropy begin with the same fields, rows to row_temperature: this many bytes. */
enum { FLP_LINEAR_INPUT_BYTES = offsetof(flp_linear_logp_args, logp) };

/* For flp_operator.check. */
flp_status flp_linear_logp_problem_check(void *normal);

/* Cuts the vocabulary's tiles into n_split big splits of equal length, and the rest into splits of a single tile. n_split, a constant of the variant, is the
 * number of multiprocessors of a common GPU of the architecture: with few rows, each block there gets one big split, and the single tiles, which come last,
 * even out when the blocks finish. The result is a function of (vocab, block_columns, n_split) alone, because it decides a row's bits. vocab 1 .. 2^31 - 1,
 * block_columns >= 1, n_split >= 1. The result has fewer than 2 n_split splits; with fewer than 2 n_split tiles, each is a split. */
flp_split flp_split_compute(int64_t vocab, int block_columns, int n_split);

/* Cuts it for a launch whose splits decide on no bits: of splits with 4, 3, 2 and 1 tiles and a rest of single tiles, those with which the launch's clusters,
 * and their warpgroups that take turns, are done first; of equals the longest, because each unit (a row group and a split) begins by reading what it needs of
 * its rows. vocab, block_columns: as above; row_groups, clusters: at least 1, those of the launch. */
flp_split flp_split_even(int64_t vocab, int block_columns, int64_t row_groups, int64_t clusters);

typedef struct {
    flp_plan common;
    flp_linear_logp_problem problem;  /* with its defaults filled in */
    const flp_kernel *tile, *combine; /* GPU paths, as is the split */
    const flp_kernel *offsets;        /* of saved exponentials; NULL: the tile kernel finds them */
    flp_split split;
    const flp_kernel *shard_targets, *merge; /* for a shard */
} flp_linear_logp_plan;

FLP_OPERATOR_DECLARE(linear_logp)

/* For the numerics: appends a shard's place in the vocabulary; nothing where the problem is no shard. */
void flp_linear_logp_write_shard(const flp_linear_logp_problem *problem, flp_text *text);

/* The roles of its kernels, for plans that contain it as a pass. SHARD_TARGETS and MERGE are not among them: a shard alone has these, and such a plan adds them
 * where its pass needs them. */
#define FLP_LINEAR_LOGP_ROLES (FLP_ROLE_SET(TILE) | FLP_ROLE_SET(SAVE_EXP_TILE) | FLP_ROLE_SET(OFFSETS) | FLP_ROLE_SET(COMBINE))

/* 1: the tile kernel leaves saved exponentials; GPU paths only. */
int flp_linear_logp_plan_saves_exp(const flp_linear_logp_plan *plan);

/* The shapes of the tile kernel's and the combine's launches. */
typedef struct {
    unsigned tile_blocks, combine_blocks; /* the grids, along x; 0 for no rows */
    int32_t group;                        /* row groups (a cluster's rows) that go through the vocabulary together, so that they share weight tiles in the L2 */
} flp_linear_logp_shape;

/* splits: of the plan; row_bytes: of one row of hidden; tuned_group: a tuning's, 0: none. No row's bits depend on the result. */
flp_linear_logp_shape flp_linear_logp_shape_compute(const flp_manifest *tile, const flp_manifest *combine, int multiprocessors, int splits, int64_t row_bytes,
                                                    int32_t tuned_group, int64_t rows);

/* The shapes for a call of `rows` rows; GPU paths only. */
flp_linear_logp_shape flp_linear_logp_plan_shape(const flp_linear_logp_plan *plan, int64_t rows);
#endif
