/* linear_logp on a GPU path: the tile kernel, then the combine. */
#ifndef FLP_OPS_LINEAR_LOGP_LAUNCH_H
#define FLP_OPS_LINEAR_LOGP_LAUNCH_H
#include "params/rows.h"
#include "plan/linear_workspace.h"
#include "plan/plan.h"

/* The rows that have a part, close together, of which the device alone knows how many they are. */
typedef struct {
    const void *hidden;        /* [rows][stride], 16-byte aligned */
    int64_t stride;
    const int32_t *row, *place, *count; /* [rows], [of the call], [1]: where a row stands in the call's arrays; the inverse, -1: nowhere */
    int64_t first, rows;       /* a chunk of all that there are: from where on, and how many at most */
    flp_row_gradient *gradient; /* [rows]: what is handed over to the backward; or NULL */
} flp_compact_rows;

/* The terms 2^(z2 - k) of the vocabulary's first entries, of compact rows, by linear_logp_stash. */
typedef struct {
    void *terms;               /* [rows][columns] of hidden's dtype: a chunk's */
    int64_t rows, columns;
    float *offset;             /* [of the call]: k */
    int32_t *overflow, *block_overflow; /* [of the call], [of the call + 1]: scratch */
} flp_stash;

/* What linear_cross_entropy wants beside linear_logp's outputs. */
typedef struct {
    const void *class_weights; /* of variants that sum up logits: w [V]; NULL: 1 */
    float *logit_sum;          /* [rows]: sum_v w[v] z[v] */
    const flp_compact_rows *compact; /* of compact variants, else NULL */
    const flp_stash *stash;    /* of linear_logp_stash, else NULL */
    int blanks_others;         /* 1: rows without a part get lse, entropy and logit_sum 0. Of the chunks of a call, only the first does it */
} flp_linear_logp_launch_more;

/* With a stash, first: the offsets of compact rows, all that there are. workspace: the call's. */
flp_status flp_linear_logp_launch_offsets(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                          const flp_workspace *workspace);
/* Of more's chunk of compact rows, or all rows. args: the call's. */
flp_status flp_linear_logp_launch_with(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       const flp_workspace *workspace);

/* For flp_operator_calls.launch. args: flp_linear_logp_args, checked, with rows > 0. */
flp_status flp_linear_logp_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace);
#endif
