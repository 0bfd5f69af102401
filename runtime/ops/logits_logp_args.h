/* The rules for logits_logp's arguments, both directions, and the call that they make. */
#ifndef FLP_OPS_LOGITS_LOGP_ARGS_H
#define FLP_OPS_LOGITS_LOGP_ARGS_H
#include "cpu/logits_logp_cpu.h"

/* Checks everything but the targets' values and the workspace, and fills *call; of args with rows = 0 only the scalars.
 * FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
flp_status flp_logits_logp_args_check(const flp_logits_logp_problem *normal, const flp_logits_logp_args *args, flp_logits_logp_call *call);
flp_status flp_logits_logp_args_check_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args,
                                               flp_logits_logp_call *call);
#endif
