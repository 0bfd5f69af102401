/* linear_logp on a GPU path: the tile kernel, then the combine. */
#ifndef FLP_OPS_LINEAR_LOGP_LAUNCH_H
#define FLP_OPS_LINEAR_LOGP_LAUNCH_H
#include "plan/plan.h"

/* What linear_cross_entropy wants beside linear_logp's outputs, of variants that sum up logits. */
typedef struct {
    const void *class_weights; /* w [V]; NULL: 1 */
    float *logit_sums;         /* [rows][splits], scratch */
    float *logit_sum;          /* [rows]: sum_v w[v] z[v] */
} flp_linear_logp_launch_more;

flp_status flp_linear_logp_launch_with(const flp_plan *plan, const flp_linear_logp_args *args, const flp_linear_logp_launch_more *more,
                                       char *workspace);

/* An flp_execute_launch. args: flp_linear_logp_args, checked, with rows > 0; workspace as flp_linear_logp_workspace_lay_out lays it out. */
flp_status flp_linear_logp_launch(const flp_plan *plan, const void *args, char *workspace);
#endif
