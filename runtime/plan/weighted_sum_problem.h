/* weighted_sum's problems, forward and backward: their rules, their defaults and the parts of their canonical strings. */
#ifndef FLP_PLAN_WEIGHTED_SUM_PROBLEM_H
#define FLP_PLAN_WEIGHTED_SUM_PROBLEM_H
#include "plan/dispatch_key.h"
#include "plan/problem.h"
#include "plan/problem_text.h"

extern const flp_problem_syntax flp_weighted_sum_problem_syntax, flp_weighted_sum_backward_problem_syntax;

/* For flp_operator.normalize: check every field and fill in the defaults. */
flp_status flp_weighted_sum_problem_normalize(const void *problem, void *normal);
flp_status flp_weighted_sum_backward_problem_normalize(const void *problem, void *normal);

/* For flp_operator.pack. */
int flp_weighted_sum_problem_pack(const void *problem, flp_dispatch_key *key);
int flp_weighted_sum_backward_problem_pack(const void *problem, flp_dispatch_key *key);
#endif
