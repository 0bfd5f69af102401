/* linear_logp's launches on a GPU path: the tile kernel, then the combine. Also the tables of its arguments, of which other operators use the inputs. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_H
#define FLP_OPERATORS_LINEAR_LOGP_H
#include "core/arguments.h"
#include "operators/linear/packed_rows.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/linear_workspace.h"
#include "params/linear_logp.h"

extern const flp_arguments flp_linear_logp_arguments;
extern const flp_argument flp_linear_logp_argument_inputs[];

/* Saved exponentials: the terms 2^(z2 - k) of packed rows and of the vocabulary's first `columns` entries, written by the kernel linear_logp_save_exp. */
typedef struct {
    void *terms; /* [blocks][block_rows][block_columns] of hidden's dtype, for a chunk of rows */
    int64_t rows, columns;
    int64_t block_rows, block_columns;  /* the columns are stored in blocks, one after the other; with one block, these are rows and columns */
    float *offset;                      /* [rows of the call]: k */
    int32_t *overflow, *block_overflow; /* [rows of the call], [rows of the call + 1]: scratch */
} flp_saved_exp;

/* What linear_cross_entropy and a plan with_forward add to linear_logp's launches. */
typedef struct {
    const void *class_weights;      /* for variants that sum up logits: w [V]; NULL: all 1 */
    float *logit_sum;               /* [rows]: sum_v w[v] z[v] */
    const flp_packed_rows *rows;    /* for variants that read packed rows; NULL: all rows of the call */
    const flp_saved_exp *saved_exp; /* for linear_logp_save_exp, else NULL */
    int blanks_others;              /* 1: rows that are not valid get lse, entropy and logit_sum 0. With chunks of rows, 1 only for the first chunk */
} flp_linear_logp_launch_more;

/* The parameters of a launch. maps: the tensor maps of hidden, weight and the saved exponentials. */
typedef struct {
    CUtensorMap maps[3];
    flp_linear_logp_params tile;
    flp_linear_logp_combine_params combine;
} flp_linear_logp_parameters;

/* A forward whose launches are prepared. */
typedef struct {
    const flp_plan *plan;
    const flp_workspace *workspace;
    CUstream stream;
    unsigned tile_blocks, combine_blocks;
    int saves_exp;
    flp_linear_logp_parameters parameters;
} flp_linear_logp_forward;

/* The first launch with saved exponentials: computes the offsets of all packed rows of the call. workspace: the call's. */
flp_status flp_linear_logp_launch_offsets(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                          const flp_workspace *workspace);
/* After the forward: computes the blocks [begin, end) of the saved exponentials, for which the forward had no room. more->saved_exp->terms is the address at
 * which block 0 would be; no block before `begin` is written. */
flp_status flp_linear_logp_launch_blocks(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                         const flp_workspace *workspace, flp_linear_step step, int64_t begin, int64_t end);
/* The forward of more's packed rows, or of all rows, launch by launch, so that others can come between them. args: the call's. */
flp_status flp_linear_logp_prepare_forward(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                           const flp_workspace *workspace, flp_linear_logp_forward *forward);
/* Then the tile kernel. */
flp_status flp_linear_logp_launch_tiles(flp_linear_logp_forward *forward);
/* Then the combine and, with saved exponentials, the tiles that overflowed. */
flp_status flp_linear_logp_launch_combine(flp_linear_logp_forward *forward);
/* All of these. */
flp_status flp_linear_logp_launch_with(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       const flp_workspace *workspace);
/* A shard's forward, which writes args->partials for all rows. Of more, only class_weights is read. */
flp_status flp_linear_logp_launch_shard(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                        const flp_workspace *workspace);

/* ---- a shard of the vocabulary: its targets, and the partial statistics of its rows. The first two functions begin their steps of the workspace. ---- */

/* Writes FLP_PART_ENTRY. kernel: that of FLP_ROLE_SHARD_TARGETS. Of inputs, rows, target, ignore_index, flags and stream are read. */
flp_status flp_linear_logp_shard_find_targets(const flp_kernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs,
                                              const flp_workspace *workspace);
/* Writes args->partials, after the tile kernel. */
flp_status flp_linear_logp_shard_leave_partials(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *workspace);
/* The launch of flp_linear_logp_merge. */
flp_status flp_linear_logp_shard_merge(const flp_linear_logp_plan *plan, const flp_linear_logp_merge_args *args);
/* FLP_BAD_ARGUMENT: args.ranks is not 1 .. 2^31 - 1. */
flp_status flp_linear_logp_shard_check_ranks(int64_t ranks);
#endif
