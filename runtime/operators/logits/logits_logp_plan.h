/* logits_logp's plan. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_PLAN_H
#define FLP_OPERATORS_LOGITS_LOGP_PLAN_H
#include "operators/logits/logits_logp_forward.h"

typedef struct {
    flp_plan common;
    flp_logits_logp_problem problem; /* with its defaults filled in */
    flp_logits_logp_forward forward; /* GPU paths */
} flp_logits_logp_plan;

extern const flp_operator flp_logits_logp_operator;

/* plan: one of logits_logp. */
static inline const flp_logits_logp_plan *flp_logits_logp_plan_of(const flp_plan *plan)
{
    return (const flp_logits_logp_plan *)(const void *)plan;
}

/* The launches for so many rows; GPU paths only. */
flp_logits_logp_pass flp_logits_logp_plan_pass(const flp_logits_logp_plan *plan, int64_t rows);
#endif
