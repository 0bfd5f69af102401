/* weighted_sum's plan: one kernel; and its problem's fields, the backward's too. */
#ifndef FLP_OPERATORS_WEIGHTED_SUM_PLAN_H
#define FLP_OPERATORS_WEIGHTED_SUM_PLAN_H
#include "core/call.h"
#include "core/problem.h"

extern const flp_field *const flp_weighted_sum_backward_fields[];

/* For flp_operator.check. */
flp_status flp_weighted_sum_backward_problem_check(void *normal);

typedef struct {
    flp_plan common;
    flp_weighted_sum_problem problem; /* with its defaults filled in */
    const flp_kernel *sum;            /* GPU paths */
} flp_weighted_sum_plan;

FLP_OPERATOR_DECLARE(weighted_sum)

/* Blocks of the launch for so many rows, at least 1; GPU paths only. No row's bits depend on it. */
unsigned flp_weighted_sum_plan_blocks(const flp_weighted_sum_plan *plan, int64_t rows);
#endif
