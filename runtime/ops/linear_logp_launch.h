/* linear_logp on a GPU path: the tile kernel, then the combine. */
#ifndef FLP_OPS_LINEAR_LOGP_LAUNCH_H
#define FLP_OPS_LINEAR_LOGP_LAUNCH_H
#include "plan/plan.h"

/* Enqueues both kernels on args->stream. args has been checked and has rows > 0; workspace: device memory as
 * flp_workspace_lay_out lays it out. FLP_CUDA_FAILED names the kernel. */
flp_status flp_linear_logp_launch(const flp_plan *plan, const flp_linear_logp_args *args, char *workspace);
#endif
