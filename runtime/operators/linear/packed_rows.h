/* The valid rows of a call, those whose target is neither ignored nor bad, packed: contiguous, in their original order. The launches of linear_logp's forward,
 * of its backward and of linear_cross_entropy then process these alone. How many there are is known on the device only. */
#ifndef FLP_OPERATORS_PACKED_ROWS_H
#define FLP_OPERATORS_PACKED_ROWS_H
#include "params/linear_logp_backward.h"
#include "operators/linear/linear_logp_backward_plan.h"

/* All valid rows of a call, or a chunk of them. */
typedef struct {
    void *hidden;               /* [rows][stride], 16-byte aligned */
    int64_t stride;             /* elements */
    int32_t *row;               /* [rows]: the index of each packed row in the call's arrays */
    int32_t *packed_index;      /* [rows of the call]: the inverse, each row's packed index; -1: it is not valid */
    const int32_t *count;       /* [1]: how many valid rows there are */
    flp_row_gradient *gradient; /* [rows]: what a forward hands over to the backward; or NULL */
    int64_t first, rows;        /* the packed index of the first, and the most that there can be */
} flp_packed_rows;

/* A call that packs its rows. plan: linear_logp_backward's, or the one within linear_cross_entropy's plan. */
typedef struct {
    const flp_linear_logp_backward_plan *plan;
    const flp_linear_logp_backward_args *args; /* the call's */
    const flp_workspace *workspace;
} flp_packed_call;

/* All valid rows of the call. Where the workspace has no part for them, they are stored in grad_hidden. */
flp_packed_rows flp_packed_rows_all(const flp_packed_call *call);
/* The chunk of rows from packed row `first` on, a multiple of the plan's row_chunk; without chunks of rows, all. */
flp_packed_rows flp_packed_rows_chunk(const flp_packed_call *call, int64_t first);

/* The parameters that both launches of linear_logp_backward_rows have in common (params/linear_logp_backward.h). */
flp_backward_rows_params flp_packed_rows_params(const flp_packed_call *call, const flp_packed_rows *rows);
/* Finds the valid rows: writes row, packed_index, count, and the number of rows in each chunk. */
flp_status flp_packed_rows_index(const flp_packed_call *call);

/* One of the steps that gather rows. */
typedef struct {
    flp_linear_step step;
    float *sums;              /* grad_hidden's sums, which are set to 0, too; or NULL */
    const float *row_factor;  /* multiplies each row; NULL: 1 */
    unsigned long long *mark; /* the forward's mark, which an earlier kernel has checked: is cleared; or NULL */
    int is_beside;            /* 1: beside the end of the kernels before, with which it must have no conflict (late_wait.cuh) */
    void *to;                 /* NULL: packs hidden's valid rows; else copies the packed rows to it, [rows][hidden], unless all rows of the call are valid */
} flp_packed_gather;
flp_status flp_packed_rows_gather(const flp_packed_call *call, const flp_packed_rows *rows, const flp_packed_gather *gather);

/* Copies `columns` elements of each valid row of another matrix, of hidden's dtype. The caller begins the step, which may have several copies. */
typedef struct {
    const void *from;
    void *to;
    int64_t columns, from_stride, to_stride; /* elements */
    int is_beside;                           /* as flp_packed_gather's */
} flp_packed_copy;
flp_status flp_packed_rows_copy(const flp_packed_call *call, const flp_packed_rows *rows, const flp_packed_copy *copy);

/* The number of blocks of a kernel that only moves `rows` rows. */
unsigned flp_packed_rows_blocks(const flp_packed_call *call, int64_t rows);

/* A digest of the plan, the call's number of rows, its temperature and its ignore_index; never 0. The forward of a plan with_forward leaves it in the workspace
 * as a mark, by which a backward finds that the workspace is its own forward's. Other memory holds it with a probability of 2^-64. */
unsigned long long flp_packed_rows_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args);
#endif
