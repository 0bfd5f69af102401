/* The problem of linear_logp's backward: its rules, its defaults and the parts of its canonical string. */
#ifndef FLP_PLAN_LINEAR_LOGP_BACKWARD_PROBLEM_H
#define FLP_PLAN_LINEAR_LOGP_BACKWARD_PROBLEM_H
#include "plan/dispatch_key.h"
#include "plan/problem_text.h"

extern const flp_problem_syntax flp_linear_logp_backward_problem_syntax;

/* As flp_linear_logp_problem_normalize; fills in the gradients' strides too. */
flp_status flp_linear_logp_backward_problem_normalize(const void *problem, void *normal);
/* That, with whatever memory_budget. */
flp_status flp_linear_logp_backward_problem_fill(const flp_linear_logp_backward_problem *problem, flp_linear_logp_backward_problem *normal);

/* For flp_operator.pack. */
int flp_linear_logp_backward_problem_pack(const void *problem, flp_dispatch_key *key);
#endif
