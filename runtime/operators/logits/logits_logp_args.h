/* logits_logp's arguments, both directions, and the call that they make. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_ARGS_H
#define FLP_OPERATORS_LOGITS_LOGP_ARGS_H
#include "operators/logits/logits_logp_cpu.h"
#include "core/arguments.h"

extern const flp_arguments flp_logits_logp_arguments, flp_logits_logp_backward_arguments;

/* Fills *call and checks what the tables do not say. FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
flp_status flp_logits_logp_args_fill(const flp_logits_logp_problem *normal, const flp_logits_logp_args *args, flp_logits_logp_call *call);
flp_status flp_logits_logp_args_fill_backward(const flp_logits_logp_backward_problem *normal, const flp_logits_logp_backward_args *args,
                                              flp_logits_logp_call *call);
#endif
