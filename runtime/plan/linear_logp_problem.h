/* linear_logp's problem: its rules, its defaults and the parts of its canonical string. */
#ifndef FLP_PLAN_LINEAR_LOGP_PROBLEM_H
#define FLP_PLAN_LINEAR_LOGP_PROBLEM_H
#include "plan/dispatch_key.h"
#include "plan/problem.h"
#include "plan/problem_text.h"

extern const flp_problem_syntax flp_linear_logp_problem_syntax;

/* Checks every field and fills in the defaults: strides, pointer_alignment (at most 16: more changes nothing), target_dtype. Both are
 * flp_linear_logp_problem. FLP_BAD_ARGUMENT names the field, what it got and what was wanted. */
flp_status flp_linear_logp_problem_normalize(const void *problem, void *normal);

/* For flp_operator.pack. */
int flp_linear_logp_problem_pack(const void *problem, flp_dispatch_key *key);

/* Bytes of an element of hidden and weight. */
int flp_linear_logp_problem_element_bytes(const flp_linear_logp_problem *normal);
#endif
