/* How often a kernel of weighted_sum rounds a product on its way into a sum: the depth that the checks of weighted_sum_cases.h take. */
#ifndef FLP_TESTS_WEIGHTED_SUM_DEPTH_H
#define FLP_TESTS_WEIGHTED_SUM_DEPTH_H
#include <stdint.h>

#include "fusedlogp.h"

/* The depth of y's sums, by a plan of weighted_sum on a GPU path. */
int64_t flp_weighted_sum_depth(const flp_plan *plan);
/* The depth of grad_w's sums, by a plan of weighted_sum_backward on a GPU path. */
int64_t flp_weighted_gradient_depth(const flp_plan *plan, int64_t rows);
#endif
