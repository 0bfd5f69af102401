/* A plan's count of out-of-range targets: on a GPU path a tally of the device's, on the CPU path the plan's own. */
#ifndef FLP_PLAN_TARGET_ERRORS_H
#define FLP_PLAN_TARGET_ERRORS_H
#include "fusedlogp.h"

/* The CPU path's half: adds count, lowers first (where count > 0). */
void flp_target_errors_add(flp_plan *plan, int64_t count, int64_t first);
#endif
