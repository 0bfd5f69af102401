/* logits_logp_backward's plan: the gradient kernel, and where the forward is fused into it, the kernel that does both and those of the forward. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_BACKWARD_PLAN_H
#define FLP_OPERATORS_LOGITS_LOGP_BACKWARD_PLAN_H
#include "operators/logits/logits_logp_plan.h"

typedef struct {
    flp_plan common;
    flp_logits_logp_backward_problem problem; /* with its defaults filled in */
    const flp_kernel *gradient;               /* GPU paths, as all */
    const flp_kernel *fused;                  /* problem.fused; else NULL, and no forward */
    flp_logits_logp_forward forward;
} flp_logits_logp_backward_plan;

FLP_OPERATOR_DECLARE(logits_logp_backward)

/* The launch that does all for so many rows; blocks 0: the forward's and the gradient's. GPU paths only. */
flp_logits_logp_shape flp_logits_logp_backward_plan_fused(const flp_logits_logp_backward_plan *plan, int64_t rows);
#endif
