/* What the gradient filter of a plan passed over: two words behind its target errors. */
#ifndef FLP_PLAN_FILTER_STATISTICS_H
#define FLP_PLAN_FILTER_STATISTICS_H
#include "plan/plan.h"

/* [2] u64, blocks kept and blocks, added to by the kernel linear_logp_backward_filter. Of a plan on a GPU path. */
CUdeviceptr flp_filter_statistics_at(const flp_plan *plan);
#endif
