/* linear_logp's problem, and the parts of its table that stand in others too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_PROBLEM_H
#define FLP_OPERATORS_LINEAR_LOGP_PROBLEM_H
#include "core/problem.h"

extern const flp_field *const flp_linear_logp_fields[];

/* Of every operator whose problem begins with flp_linear_logp_problem. */
extern const flp_field flp_linear_logp_field_inputs[], flp_linear_logp_field_precision[], flp_linear_logp_field_backend[];

/* For flp_operator.check. */
flp_status flp_linear_logp_problem_check(void *normal);
#endif
