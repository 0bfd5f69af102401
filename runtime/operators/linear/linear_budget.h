/* How linear_logp's backward and linear_cross_entropy spend their memory budget: the widths of chunks that fit it. */
#ifndef FLP_OPERATORS_LINEAR_BUDGET_H
#define FLP_OPERATORS_LINEAR_BUDGET_H
#include "base/status.h"
#include "operators/linear/linear_workspace.h"

/* The most splits of the vocabulary that any kernel of the forward has, for what is decided before there is one. */
int flp_linear_budget_most_splits(int64_t vocab);

/* The work of linear_logp_backward, with the most splits where there is a forward. The chunks are empty but for `saves_exp`. */
flp_linear_work flp_linear_budget_backward_work(const flp_linear_logp_backward_problem *normal);

/* work: with a backward that has gradients; of its chunks only `saves_exp` counts, and its rows are the problem's. The least budget, whatever the
 * problem's. */
int64_t flp_linear_budget_least(const flp_linear_work *work);

/* FLP_BAD_ARGUMENT: the problem's budget is less than the least; it names that. */
flp_status flp_linear_budget_check(const flp_linear_work *work);

/* What the layout of a work's rows takes with these chunks in the place of its own. */
int64_t flp_linear_budget_bytes(const flp_linear_work *work, const flp_backward_chunks *chunks);

/* Within the problem's budget, of which the layout then takes no more for any number of rows up to the problem's; a budget of 0 stands for widths
 * that do not depend on the rows. */
flp_backward_chunks flp_linear_budget_spend(const flp_linear_work *work);
#endif
