/* logits_logp's problems, both directions: rules, defaults and the parts of their canonical strings. */
#ifndef FLP_PLAN_LOGITS_LOGP_PROBLEM_H
#define FLP_PLAN_LOGITS_LOGP_PROBLEM_H
#include "plan/dispatch_key.h"
#include "plan/problem.h"
#include "plan/problem_text.h"

extern const flp_problem_syntax flp_logits_logp_problem_syntax, flp_logits_logp_backward_problem_syntax;

/* For flp_operator.normalize and .pack. */
flp_status flp_logits_logp_problem_normalize(const void *problem, void *normal);
flp_status flp_logits_logp_backward_problem_normalize(const void *problem, void *normal);
int flp_logits_logp_problem_pack(const void *problem, flp_dispatch_key *key);
int flp_logits_logp_backward_problem_pack(const void *problem, flp_dispatch_key *key);
#endif
