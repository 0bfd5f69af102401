/* linear_cross_entropy's launches on a GPU path. call: flp_cross_entropy_call; workspace: laid out for its rows. */
#ifndef FLP_OPERATORS_LINEAR_CROSS_ENTROPY_LAUNCH_H
#define FLP_OPERATORS_LINEAR_CROSS_ENTROPY_LAUNCH_H
#include "core/plan.h"

flp_status flp_linear_cross_entropy_launch(const flp_plan *plan, const void *call, const flp_workspace *workspace);
/* A shard's: what it leaves of its rows, and behind the exchange all the rest. */
flp_status flp_linear_cross_entropy_launch_partials(const flp_plan *plan, const void *call, const flp_workspace *workspace);
flp_status flp_linear_cross_entropy_launch_merge(const flp_plan *plan, const void *call, const flp_workspace *workspace);
#endif
