/* linear_cross_entropy's plan, and its launches. */
#ifndef FLP_OPERATORS_LINEAR_CROSS_ENTROPY_PLAN_H
#define FLP_OPERATORS_LINEAR_CROSS_ENTROPY_PLAN_H
#include "core/problem.h"
#include "cpu/token_program.h"
#include "operators/linear/linear_logp_backward_plan.h"
#include "operators/linear/linear_logp_plan.h"

typedef struct {
    flp_plan common;
    flp_linear_cross_entropy_problem problem; /* with its defaults filled in */
    flp_token_program program;
    /* GPU paths: the plans of the two passes, which own nothing, and the kernels between them. Without gradients, the backward only packs the valid rows.
     * backward.work is that of the whole call, and is filled in on every path, before the path is chosen. */
    flp_linear_logp_plan forward;
    flp_linear_logp_backward_plan backward;
    const flp_kernel *token_loss, *merge_sums; /* merge_sums: for a shard */
} flp_linear_cross_entropy_plan;

/* The arguments of a caller that was compiled with another header, in the layout that this library knows. */
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[FLP_TOKEN_INPUTS];
    flp_token_parameter parameters[FLP_TOKEN_PARAMETERS];
} flp_cross_entropy_own_args;
/* As flp_sized_take, but converts the arrays of args, too. room: a flp_cross_entropy_own_args. */
const void *flp_linear_cross_entropy_take_args(const void *args, void *room, const flp_sizes *sizes, flp_status *status);

FLP_OPERATOR_DECLARE(linear_cross_entropy)

/* Launches on a GPU path. call: flp_cross_entropy_call; workspace: laid out for its rows. */
flp_status flp_linear_cross_entropy_launch(const flp_plan *plan, const void *call, const flp_workspace *workspace);
/* The launches of a shard: those before the exchange, which write its partials, and all those after it. */
flp_status flp_linear_cross_entropy_launch_partials(const flp_plan *plan, const void *call, const flp_workspace *workspace);
flp_status flp_linear_cross_entropy_launch_merge(const flp_plan *plan, const void *call, const flp_workspace *workspace);
#endif
