/* The problem of linear_logp's backward, and the parts of its table that stand in linear_cross_entropy's too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PROBLEM_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PROBLEM_H
#include "core/problem.h"

extern const flp_field *const flp_linear_logp_backward_fields[];

extern const flp_field flp_linear_logp_backward_field_forward[], flp_linear_logp_backward_field_gradients[], flp_linear_logp_backward_field_budget[];

/* For flp_operator.check. A memory_budget of 0 stays: the default is another for other rows, and a problem with a larger bound on them is the same to
 * dispatch. */
flp_status flp_linear_logp_backward_problem_check(void *normal);
/* That, with whatever memory_budget. */
flp_status flp_linear_logp_backward_problem_check_gradients(flp_linear_logp_backward_problem *normal);
#endif
