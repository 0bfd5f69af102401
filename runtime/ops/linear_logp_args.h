/* The rules for linear_logp's arguments, checked before anything is enqueued. */
#ifndef FLP_OPS_LINEAR_LOGP_ARGS_H
#define FLP_OPS_LINEAR_LOGP_ARGS_H
#include "fusedlogp.h"

/* Everything but the targets' values and the workspace; of args with rows = 0 only the scalars.
 * FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
flp_status flp_linear_logp_args_check(const flp_linear_logp_problem *normal, const flp_linear_logp_args *args);

/* hidden and weight lie at multiples of an element: the least that a plan's pointer_alignment can be. */
flp_status flp_linear_logp_args_check_elements(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args);
#endif
