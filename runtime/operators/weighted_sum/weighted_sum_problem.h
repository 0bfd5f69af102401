/* weighted_sum's problems, both directions. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_PROBLEM_H
#define FLP_OPERATORS_WEIGHTED_SUM_PROBLEM_H
#include "core/problem.h"

extern const flp_field *const flp_weighted_sum_fields[], *const flp_weighted_sum_backward_fields[];

/* For flp_operator.check. */
flp_status flp_weighted_sum_backward_problem_check(void *normal);
#endif
