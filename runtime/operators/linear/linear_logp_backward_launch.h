/* linear_logp's backward on a GPU path: the valid rows, then the vocabulary chunk by chunk, then grad_hidden. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_LAUNCH_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_LAUNCH_H
#include "operators/linear/linear_logp_launch.h"

/* What a loss of sum_v w[v] z[v], linear_cross_entropy's, adds, to variants that take it. */
typedef struct {
    const void *class_weights; /* w [V]; NULL: 1 */
    const float *g_sum;        /* [rows]: the derivative by that sum */
} flp_backward_launch_more;

/* In parts and in one workspace, the call's, for a forward between them. First flp_packed_rows_index and the rows packed: of call->args, rows, hidden,
 * target, ignore_index, grad_hidden and stream are read. rows > 0. */
flp_status flp_linear_logp_backward_launch_rows(const flp_packed_call *call);
/* Where a forward has to leave its saved exponentials of each chunk. */
flp_saved_exp flp_linear_logp_backward_saved_exp(const flp_packed_call *call);
/* Then, chunk by chunk, behind its forward, the gradients. Without rows, all of it. */
flp_status flp_linear_logp_backward_launch_chunk(const flp_packed_call *call, const flp_backward_launch_more *more, int64_t first);
/* Behind the last. */
flp_status flp_linear_logp_backward_launch_end(const flp_packed_call *call);

/* For flp_operator_calls.launch, of a plan with a forward: that. args: flp_linear_logp_args, rows > 0. */
flp_status flp_linear_logp_backward_launch_forward(const flp_plan *plan, const void *args, const flp_workspace *workspace);

/* For flp_operator_calls.launch; args: flp_linear_logp_backward_args, rows >= 0. Of a plan with a forward, what is left to do. */
flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace);
#endif
