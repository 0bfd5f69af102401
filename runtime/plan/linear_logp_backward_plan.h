/* The plan of linear_logp's backward. */
#ifndef FLP_PLAN_LINEAR_LOGP_BACKWARD_PLAN_H
#define FLP_PLAN_LINEAR_LOGP_BACKWARD_PLAN_H
#include "plan/plan.h"

typedef struct {
    flp_plan common;
    flp_linear_logp_backward_problem problem; /* with its defaults filled in */
    /* GPU paths; NULL where the gradient is not wanted. */
    const flp_kernel *rows, *gather, *logits, *hidden_product, *finish, *weight_product, *bias;
} flp_linear_logp_backward_plan;

extern const flp_operator flp_linear_logp_backward_operator;

/* plan: one of linear_logp_backward. */
static inline const flp_linear_logp_backward_plan *flp_linear_logp_backward_plan_of(const flp_plan *plan)
{
    return (const flp_linear_logp_backward_plan *)(const void *)plan;
}
#endif
