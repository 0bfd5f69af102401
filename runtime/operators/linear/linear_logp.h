/* linear_logp on a GPU path: the tile kernel, then the combine; and the arguments that its backward and linear_cross_entropy begin with too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_H
#define FLP_OPERATORS_LINEAR_LOGP_H
#include "core/arguments.h"
#include "operators/linear/packed_rows.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/linear_workspace.h"

extern const flp_arguments flp_linear_logp_arguments;
extern const flp_argument flp_linear_logp_argument_inputs[];

/* The terms 2^(z2 - k) of the vocabulary's first entries, of packed rows, by linear_logp_save_exp. */
typedef struct {
    void *terms; /* [blocks][block_rows][block_columns] of hidden's dtype: a chunk's; of flp_linear_logp_launch_block one, and block_rows is 0 */
    int64_t rows, columns;
    int64_t block_rows, block_columns;  /* of the columns one after the other; of one block rows and columns */
    float *offset;                      /* [of the call]: k */
    int32_t *overflow, *block_overflow; /* [of the call], [of the call + 1]: scratch */
} flp_saved_exp;

/* What linear_cross_entropy wants beside linear_logp's outputs. */
typedef struct {
    const void *class_weights;      /* of variants that sum up logits: w [V]; NULL: 1 */
    float *logit_sum;               /* [rows]: sum_v w[v] z[v] */
    const flp_packed_rows *rows;    /* of variants of packed rows, else NULL: all rows of the call */
    const flp_saved_exp *saved_exp; /* of linear_logp_save_exp, else NULL */
    int blanks_others;              /* 1: rows that are not valid get lse, entropy and logit_sum 0. Of the chunks of a call, only the first does it */
} flp_linear_logp_launch_more;

/* With saved exponentials, first: the offsets of packed rows, all that there are. workspace: the call's. */
flp_status flp_linear_logp_launch_offsets(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                          const flp_workspace *workspace);
/* Behind the forward, block `block` of the saved exponentials, which it had no room for, to more->saved_exp->terms. */
flp_status flp_linear_logp_launch_block(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                        const flp_workspace *workspace, int64_t block);
/* Launches for more's packed rows, or for all rows. args: the call's. */
flp_status flp_linear_logp_launch_with(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       const flp_workspace *workspace);
/* A shard's forward, which leaves args->partials of all rows. Only class_weights counts of more. */
flp_status flp_linear_logp_launch_shard(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                        const flp_workspace *workspace);

/* ---- a shard of the vocabulary: where its targets lie, and what it leaves of its rows. Each begins its step of the workspace. ---- */

/* FLP_PART_ENTRY. kernel: of that role; inputs: of which rows, target, ignore_index, flags and stream are read. */
flp_status flp_linear_logp_shard_find_targets(const flp_kernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs,
                                              const flp_workspace *workspace);
/* args->partials, behind the tile kernel. */
flp_status flp_linear_logp_shard_leave_partials(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *workspace);
/* The launch of flp_linear_logp_merge, without a step of the workspace; and what it wants of args.ranks. */
flp_status flp_linear_logp_shard_merge(const flp_linear_logp_plan *plan, const flp_linear_logp_merge_args *args);
flp_status flp_linear_logp_shard_check_ranks(int64_t ranks);
#endif
