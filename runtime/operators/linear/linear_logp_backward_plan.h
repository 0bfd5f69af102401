/* linear_logp_backward's plan, and the parts of its problem's table of fields that linear_cross_entropy's contains, too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PLAN_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PLAN_H
#include "core/call.h"
#include "core/problem.h"
#include "cpu/target_share.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/linear_workspace.h"

extern const flp_field flp_linear_logp_backward_field_forward[], flp_linear_logp_backward_field_gradients[], flp_linear_logp_backward_field_budget[];

/* Checks the conditions between fields, except those of memory_budget. */
flp_status flp_linear_logp_backward_problem_check_gradients(flp_linear_logp_backward_problem *normal);

typedef struct {
    flp_plan common;
    flp_linear_logp_backward_problem problem; /* with its defaults filled in */
    /* GPU paths; NULL where the gradient is not requested. */
    const flp_kernel *rows, *gather, *grad_logits, *hidden_product, *sum, *finish, *weight_product, *target_order, *bias, *filter;
    const flp_kernel *shard_targets, *other_shards; /* for a shard */
    CUdeviceptr statistics;                         /* the filter's flp_tally */
    flp_linear_work work;                           /* the plan's own, or linear_cross_entropy's: what is to be done, and in which chunks */
    const char *no_saved_exp;                       /* why the forward leaves no saved exponentials; NULL where it does, or where there is no forward */
    flp_linear_logp_plan forward;                   /* if with_forward is 1; owns nothing */
} flp_linear_logp_backward_plan;

/* The workspace of a plan with_forward on the CPU path: the forward's mark, and its statistics of the rows. Those of rows that it did not compute are NaN. */
typedef struct {
    flp_backward_counts counts; /* only the mark is used */
    flp_row_shares shares[];    /* [rows] */
} flp_backward_cpu_workspace;

/* For set_up: checks that the forward's kernels are those for which the chunks were chosen, and sets the work's splits to the forward's. FLP_INTERNAL: they are
 * not. */
flp_status flp_linear_logp_backward_check_forward(const flp_linear_logp_plan *forward, flp_linear_work *work);

FLP_OPERATOR_DECLARE(linear_logp_backward)
#endif
