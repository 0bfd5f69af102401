/* One case of linear_cross_entropy on the host device. */
#ifndef FLP_TESTS_HOST_LINEAR_CROSS_ENTROPY_H
#define FLP_TESTS_HOST_LINEAR_CROSS_ENTROPY_H
#include "cross_entropy_cases.h"

/* If it is set, it is called with each plan before the plan is executed, and may change it. */
extern void (*flp_host_linear_cross_entropy_planned)(flp_plan *plan);

/* As flp_host_family.run, by a plan for plan_rows rows, which are not fewer than the case's. */
int flp_host_linear_cross_entropy_run(flp_context *context, const flp_cross_entropy_case *c, int64_t plan_rows, char *message, size_t bytes);
#endif
