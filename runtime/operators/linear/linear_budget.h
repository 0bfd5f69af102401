/* How linear_logp's backward and linear_cross_entropy spend their memory budget: the widths of chunks that fit it. */
#ifndef FLP_OPERATORS_LINEAR_BUDGET_H
#define FLP_OPERATORS_LINEAR_BUDGET_H
#include "base/status.h"
#include "operators/linear/linear_workspace.h"

/* The most splits of the vocabulary that any kernel of the forward has, for decisions that are made before the kernel is chosen. */
int flp_linear_budget_most_splits(int64_t vocab);

/* The work of linear_logp_backward, with the most splits where there is a forward. Of its chunks only `saves_exp` is filled in. */
flp_linear_work flp_linear_budget_backward_work(const flp_linear_logp_backward_problem *normal);

/* The least budget that is possible, in bytes, whatever the problem's. work: its backward has gradients; of its chunks only `saves_exp` is read, and its rows
 * are the problem's. */
int64_t flp_linear_budget_least(const flp_linear_work *work);

/* FLP_BAD_ARGUMENT: the problem's budget is less than the least; it names that. */
flp_status flp_linear_budget_check(const flp_linear_work *work);

/* The bytes of the workspace for the work's rows, with these chunks in place of its own. */
int64_t flp_linear_budget_bytes(const flp_linear_work *work, const flp_backward_chunks *chunks);

/* The chunks that the problem's budget allows: the workspace then exceeds it for no number of rows up to the problem's. With a budget of 0, the widths do not
 * depend on the rows. */
flp_backward_chunks flp_linear_budget_spend(const flp_linear_work *work);
#endif
