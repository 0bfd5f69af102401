/* What the forward of a plan with_forward leaves in the workspace for the backward that belongs to it, and for no other. */
#ifndef FLP_OPS_LINEAR_LOGP_BACKWARD_MARK_H
#define FLP_OPS_LINEAR_LOGP_BACKWARD_MARK_H
#include "plan/linear_logp_backward_plan.h"

/* A digest of the plan, its rows and what decides which of them count, never 0: memory that holds it by chance is one in 2^64. */
unsigned long long flp_backward_mark(const flp_plan *plan, const flp_linear_logp_backward_args *args);
#endif
