/* The problem of linear_cross_entropy: its rules, its defaults and the parts of its canonical string. */
#ifndef FLP_PLAN_LINEAR_CROSS_ENTROPY_PROBLEM_H
#define FLP_PLAN_LINEAR_CROSS_ENTROPY_PROBLEM_H
#include "plan/dispatch_key.h"
#include "plan/problem_text.h"

extern const flp_problem_syntax flp_linear_cross_entropy_problem_syntax;

/* As flp_linear_logp_backward_problem_fill, for what the least budget is follows from the token loss, too; behind its end the loss' name is zeros. */
flp_status flp_linear_cross_entropy_problem_normalize(const void *problem, void *normal);

/* For flp_operator.pack. */
int flp_linear_cross_entropy_problem_pack(const void *problem, flp_dispatch_key *key);

/* 1: a gradient is asked for. */
int flp_linear_cross_entropy_problem_has_gradients(const flp_linear_cross_entropy_problem *problem);

/* The generator's name of the loss: token_loss, or that of a cross-entropy. */
const char *flp_linear_cross_entropy_problem_loss(const flp_linear_cross_entropy_problem *normal);
#endif
