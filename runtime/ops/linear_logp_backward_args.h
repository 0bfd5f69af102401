/* The rules for the arguments of linear_logp's backward, checked before anything is enqueued. */
#ifndef FLP_OPS_LINEAR_LOGP_BACKWARD_ARGS_H
#define FLP_OPS_LINEAR_LOGP_BACKWARD_ARGS_H
#include "fusedlogp.h"

/* Everything but the targets' values and the workspace; of args with rows = 0 the scalars, grad_weight and grad_bias.
 * FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
flp_status flp_linear_logp_backward_args_check(const flp_linear_logp_backward_problem *normal, const flp_linear_logp_backward_args *args);

/* The same but for lse, entropy, g_logp, g_lse and g_entropy. */
flp_status flp_linear_logp_backward_args_check_shared(const flp_linear_logp_backward_problem *normal,
                                                      const flp_linear_logp_backward_args *args);

/* hidden, weight and the gradients lie at multiples of an element: the least that a plan's pointer_alignment can be. NULL is left to the
 * check above. */
flp_status flp_linear_logp_backward_args_check_elements(const flp_linear_logp_backward_problem *problem,
                                                        const flp_linear_logp_backward_args *args);
#endif
