/* What the gradient filter passed over in one execution, for the results. */
#ifndef FLP_BENCH_FILTER_OUTCOME_H
#define FLP_BENCH_FILTER_OUTCOME_H
#include <jansson.h>

#include "backward_check.h"

typedef struct {
    double eps; /* the problem's grad_filter_eps */
    int64_t blocks, passed_over;
} flp_filter_outcome;

/* Counts what the filter passed over in the plan's executions since the last call of this function. */
flp_status flp_filter_outcome_take(flp_plan *plan, double eps, flp_filter_outcome *outcome);

/* Adds to a case's object: grad_filter_eps, data, blocks, blocks_kept, grad_hidden_bound, grad_weight_bound; nothing where eps is 0. Returns 0
 * when out of memory. */
int flp_filter_outcome_add(const flp_filter_outcome *outcome, const flp_backward_errors *errors, json_t *result);
#endif
