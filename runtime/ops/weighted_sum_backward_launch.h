/* weighted_sum_backward on a GPU path: grad_w's kernels, then grad_x's, which may write over x. */
#ifndef FLP_OPS_WEIGHTED_SUM_BACKWARD_LAUNCH_H
#define FLP_OPS_WEIGHTED_SUM_BACKWARD_LAUNCH_H
#include "plan/plan.h"

/* For flp_operator_calls.launch: args are a checked flp_weighted_sum_backward_args; with rows = 0 it writes grad_w all the same. */
flp_status flp_weighted_sum_backward_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace);
#endif
