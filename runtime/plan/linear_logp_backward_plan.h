/* The plan of linear_logp's backward. */
#ifndef FLP_PLAN_LINEAR_LOGP_BACKWARD_PLAN_H
#define FLP_PLAN_LINEAR_LOGP_BACKWARD_PLAN_H
#include "plan/linear_logp_backward_workspace.h"
#include "plan/linear_logp_plan.h"
#include "plan/plan.h"

typedef struct {
    flp_plan common;
    flp_linear_logp_backward_problem problem; /* with its defaults filled in */
    /* GPU paths; NULL where the gradient is not wanted. */
    const flp_kernel *rows, *gather, *logits, *hidden_product, *finish, *weight_product, *terms, *bias, *filter;
    CUdeviceptr statistics; /* the filter's flp_tally */
    int64_t row_chunk; /* > 0: rows go by in chunks of so many, as linear_cross_entropy launches them */
    int stashes; /* 1: the forward, the plan's own or linear_cross_entropy's, leaves a stash */
    const char *no_stash; /* why that forward leaves none; NULL where it does, or where there is no forward */
    flp_linear_logp_plan forward; /* where the problem's with_forward is 1; owns nothing */
} flp_linear_logp_backward_plan;

/* Where the plan's own forward has its compact rows, in bytes: then comes its own workspace. They take what the backward fills last. */
int64_t flp_linear_logp_backward_plan_forward_rows(const flp_linear_logp_backward_workspace *layout);
int64_t flp_linear_logp_backward_plan_forward_scratch(const flp_linear_logp_backward_plan *plan, const flp_linear_logp_backward_workspace *layout,
                                                      int64_t rows);

/* Why derivatives can't come from a stash, which holds 2^(z2 - k) in bf16 and has one factor a row; NULL where they can. */
const char *flp_linear_logp_backward_no_stash(const flp_linear_logp_backward_problem *normal);

/* What the generator must know where they can: ":stash" or ":stash:direct"; else "". */
const char *flp_linear_logp_backward_stash_hint(const flp_linear_logp_backward_problem *normal, int64_t row_chunk);

/* Where everything lies for so many rows. */
flp_linear_logp_backward_workspace flp_linear_logp_backward_plan_lay_out(const flp_linear_logp_backward_plan *plan, int64_t rows);

extern const flp_operator flp_linear_logp_backward_operator;

/* plan: one of linear_logp_backward. */
static inline const flp_linear_logp_backward_plan *flp_linear_logp_backward_plan_of(const flp_plan *plan)
{
    return (const flp_linear_logp_backward_plan *)(const void *)plan;
}
#endif
