/* logits_logp's plan: a kernel that reads the rows, and one that merges those that several blocks have read. */
#ifndef FLP_PLAN_LOGITS_LOGP_PLAN_H
#define FLP_PLAN_LOGITS_LOGP_PLAN_H
#include "plan/logits_logp_shape.h"
#include "plan/plan.h"

typedef struct {
    flp_plan common;
    flp_logits_logp_problem problem; /* with its defaults filled in */
    const flp_kernel *rows, *combine; /* GPU paths */
} flp_logits_logp_plan;

extern const flp_operator flp_logits_logp_operator;

/* plan: one of logits_logp. */
static inline const flp_logits_logp_plan *flp_logits_logp_plan_of(const flp_plan *plan)
{
    return (const flp_logits_logp_plan *)(const void *)plan;
}

/* The launches for so many rows; GPU paths only. */
flp_logits_logp_shape flp_logits_logp_plan_shape(const flp_logits_logp_plan *plan, int64_t rows);

/* What both directions demand of a kernel's manifest. FLP_INTERNAL. */
flp_status flp_logits_logp_plan_check_manifest(const flp_manifest *manifest);
#endif
