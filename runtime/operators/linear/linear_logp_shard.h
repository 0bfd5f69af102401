/* The launches of a shard of the vocabulary: where its targets lie, and what it leaves of its rows. Each begins its step of the workspace. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_SHARD_H
#define FLP_OPERATORS_LINEAR_LOGP_SHARD_H
#include "operators/linear/linear_logp_plan.h"
#include "operators/linear/linear_workspace.h"

/* FLP_PART_ENTRY. kernel: of that role; inputs: of which rows, target, ignore_index, flags and stream are read. */
flp_status flp_linear_logp_shard_find_targets(const flp_kernel *kernel, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs,
                                              const flp_workspace *workspace);
/* args->partials, behind the tile kernel. */
flp_status flp_linear_logp_shard_leave_partials(const flp_linear_logp_plan *plan, const flp_linear_logp_args *args, const flp_workspace *workspace);
/* The launch of flp_linear_logp_merge, without a step of the workspace; and what it wants of args.ranks. */
flp_status flp_linear_logp_shard_merge(const flp_linear_logp_plan *plan, const flp_linear_logp_merge_args *args);
flp_status flp_linear_logp_shard_check_ranks(int64_t ranks);
#endif
