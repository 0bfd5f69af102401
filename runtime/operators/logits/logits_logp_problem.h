/* logits_logp's problems, both directions. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_PROBLEM_H
#define FLP_OPERATORS_LOGITS_LOGP_PROBLEM_H
#include "core/problem.h"

extern const flp_field *const flp_logits_logp_fields[], *const flp_logits_logp_backward_fields[];
#endif
