/* The valid rows of a call, those whose target is neither ignored nor bad, packed: close together, in the order in which they stand. What follows is
 * done for these alone: linear_logp's forward, its backward and linear_cross_entropy. The device alone knows how many there are. */
#ifndef FLP_OPERATORS_PACKED_ROWS_H
#define FLP_OPERATORS_PACKED_ROWS_H
#include "params/linear_logp_backward.h"
#include "operators/linear/linear_logp_backward_plan.h"

/* All valid rows of a call, or a chunk of them. */
typedef struct {
    void *hidden;               /* [rows][stride], 16-byte aligned */
    int64_t stride;             /* elements */
    int32_t *row;               /* [rows]: where the row of a packed index stands in the call's arrays */
    int32_t *packed_index;      /* [of the call]: a row's packed index; -1: it is not valid */
    const int32_t *count;       /* [1] */
    flp_row_gradient *gradient; /* [rows]: what a forward hands over to the backward; or NULL */
    int64_t first, rows;        /* the packed index of the first, and how many there are at most */
} flp_packed_rows;

/* A call that packs its rows, of a plan that has the kernels for it: linear_logp_backward's, or linear_cross_entropy's plan of it. */
typedef struct {
    const flp_linear_logp_backward_plan *plan;
    const flp_linear_logp_backward_args *args; /* the call's */
    const flp_workspace *workspace;
} flp_packed_call;

/* All of the call. Where the workspace has no room for them of their own, they lie in grad_hidden. */
flp_packed_rows flp_packed_rows_all(const flp_packed_call *call);
/* A chunk of all, from `first` on, a multiple of the plan's row_chunk; without chunks, all. */
flp_packed_rows flp_packed_rows_chunk(const flp_packed_call *call, int64_t first);

/* What the kernel of valid rows is given in both of its steps. */
flp_backward_rows_params flp_packed_rows_params(const flp_packed_call *call, const flp_packed_rows *rows);
/* Finds the valid rows: row, place, count, and how many each chunk has. */
flp_status flp_packed_rows_index(const flp_packed_call *call);

/* One of the steps that bring rows together. */
typedef struct {
    flp_linear_step step;
    float *sums;              /* grad_hidden's, which are zeroed on the way; or NULL */
    const float *row_factor;  /* that each row is multiplied by; NULL: 1 */
    unsigned long long *mark; /* is cleared: the forward's, which the kernel before has seen; or NULL */
    void *to;                 /* NULL: hidden's valid rows become packed; else packed rows go there, [rows][hidden], unless all of the call are valid */
} flp_packed_gather;
flp_status flp_packed_rows_gather(const flp_packed_call *call, const flp_packed_rows *rows, const flp_packed_gather *gather);

/* Blocks of a kernel that only moves so many rows. */
unsigned flp_packed_rows_blocks(const flp_packed_call *call, int64_t rows);

/* A digest of the plan, the call's rows and what decides which of them are valid, never 0: what the forward of a plan with_forward leaves in the
 * workspace for the backward that belongs to it, and for no other. Memory that holds it by chance is one in 2^64. */
unsigned long long flp_packed_rows_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args);
#endif
