/* linear_cross_entropy on a GPU path: the forward's launches, the rows' losses, the backward's launches. */
#ifndef FLP_OPS_LINEAR_CROSS_ENTROPY_LAUNCH_H
#define FLP_OPS_LINEAR_CROSS_ENTROPY_LAUNCH_H
#include "plan/plan.h"

/* For flp_operator_calls.launch; call: flp_cross_entropy_call, rows >= 0. */
flp_status flp_linear_cross_entropy_launch(const flp_plan *plan, const void *call, const flp_workspace *workspace);
#endif
