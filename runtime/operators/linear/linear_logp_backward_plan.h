/* linear_logp_backward's plan, and the parts of its problem's table that stand in linear_cross_entropy's too. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PLAN_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_PLAN_H
#include "core/call.h"
#include "core/problem.h"
#include "cpu/target_share.h"
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/linear_workspace.h"

extern const flp_field flp_linear_logp_backward_field_forward[], flp_linear_logp_backward_field_gradients[], flp_linear_logp_backward_field_budget[];

/* What holds between fields, with whatever memory_budget. */
flp_status flp_linear_logp_backward_problem_check_gradients(flp_linear_logp_backward_problem *normal);

typedef struct {
    flp_plan common;
    flp_linear_logp_backward_problem problem; /* with its defaults filled in */
    /* GPU paths; NULL where the gradient is not wanted. */
    const flp_kernel *rows, *gather, *grad_logits, *hidden_product, *finish, *weight_product, *target_order, *bias, *filter;
    const flp_kernel *shard_targets, *other_shards; /* of a shard */
    CUdeviceptr statistics;                         /* the filter's flp_tally */
    flp_linear_work work;                           /* linear_cross_entropy's, or the plan's own: how it goes by in chunks */
    const char *no_saved_exp;                       /* why that forward leaves none; NULL where it does, or where there is no forward */
    flp_linear_logp_plan forward;                   /* where the problem's with_forward is 1; owns nothing */
} flp_linear_logp_backward_plan;

/* The workspace on the CPU path, with_forward: whose rows it holds, and these as the forward found them. A row that had no part there is NaN. */
typedef struct {
    flp_backward_counts counts; /* of which it takes the mark alone */
    flp_row_shares shares[];    /* [rows] */
} flp_backward_cpu_workspace;

/* For set_up: the forward is what the chunks were chosen for; then its splits are those of the work. FLP_INTERNAL. */
flp_status flp_linear_logp_backward_check_forward(const flp_linear_logp_plan *forward, flp_linear_work *work);

FLP_OPERATOR_DECLARE(linear_logp_backward)
#endif
