/* linear_logp's backward on a GPU path: which rows count, then the vocabulary chunk by chunk, then grad_hidden. */
#ifndef FLP_OPS_LINEAR_LOGP_BACKWARD_LAUNCH_H
#define FLP_OPS_LINEAR_LOGP_BACKWARD_LAUNCH_H
#include "ops/execute.h"

/* What a loss of sum_v w[v] z[v], linear_cross_entropy's, adds, to variants that take it. */
typedef struct {
    const void *class_weights; /* w [V]; NULL: 1 */
    const float *g_sum;        /* [rows]: the derivative by that sum */
} flp_backward_launch_more;

flp_status flp_linear_logp_backward_launch_with(const flp_plan *plan, const flp_linear_logp_backward_args *args,
                                                const flp_backward_launch_more *more, char *workspace);

/* An flp_execute_launch; args: flp_linear_logp_backward_args, rows >= 0. */
flp_status flp_linear_logp_backward_launch(const flp_plan *plan, const void *args, char *workspace);
#endif
