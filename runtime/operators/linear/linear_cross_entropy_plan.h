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
    /* GPU paths: the plans of the two passes, which own nothing, and what lies between them. backward: without gradients it packs the valid rows,
     * and no more; its work is that of the whole call, and known before the path is. */
    flp_linear_logp_plan forward;
    flp_linear_logp_backward_plan backward;
    const flp_kernel *token_loss, *merge_sums; /* merge_sums: of a shard */
} flp_linear_cross_entropy_plan;

/* Arguments as this library knows them, of a caller with another header. */
typedef struct {
    flp_linear_cross_entropy_args args;
    flp_token_input inputs[FLP_TOKEN_INPUTS];
    flp_token_parameter parameters[FLP_TOKEN_PARAMETERS];
} flp_cross_entropy_own_args;
/* As flp_sized_take, with the arrays that args has. room: flp_cross_entropy_own_args. */
const void *flp_linear_cross_entropy_take_args(const void *args, void *room, const flp_sizes *sizes, flp_status *status);

FLP_OPERATOR_DECLARE(linear_cross_entropy)

/* Launches on a GPU path. call: flp_cross_entropy_call; workspace: laid out for its rows. */
flp_status flp_linear_cross_entropy_launch(const flp_plan *plan, const void *call, const flp_workspace *workspace);
/* A shard's: what it leaves of its rows, and behind the exchange all the rest. */
flp_status flp_linear_cross_entropy_launch_partials(const flp_plan *plan, const void *call, const flp_workspace *workspace);
flp_status flp_linear_cross_entropy_launch_merge(const flp_plan *plan, const void *call, const flp_workspace *workspace);
#endif
