/* The problem of linear_cross_entropy. */
#ifndef FLP_OPERATORS_LINEAR_CROSS_ENTROPY_PROBLEM_H
#define FLP_OPERATORS_LINEAR_CROSS_ENTROPY_PROBLEM_H
#include "core/problem.h"

extern const flp_field *const flp_linear_cross_entropy_fields[];

/* For flp_operator.check: any memory_budget, for what the least is follows from the token loss, too; behind its end the loss' name is zeros. */
flp_status flp_linear_cross_entropy_problem_check(void *normal);

/* 1: a gradient is asked for. */
int flp_linear_cross_entropy_problem_has_gradients(const flp_linear_cross_entropy_problem *problem);

/* The generator's name of the loss: token_loss, or that of a cross-entropy. */
const char *flp_linear_cross_entropy_problem_loss(const flp_linear_cross_entropy_problem *normal);
#endif
