/* Runs a call of logits_logp, either direction, on its plan's path. */
#ifndef FLP_OPS_LOGITS_LOGP_RUN_H
#define FLP_OPS_LOGITS_LOGP_RUN_H
#include "cpu/logits_logp_cpu.h"
#include "ops/execute.h"

/* call: checked, rows > 0. flags: flp_execute_flags. cuda_context: the id of the current one; not looked at on the CPU path. */
flp_status flp_logits_logp_run(flp_plan *plan, const flp_logits_logp_call *call, const flp_execute_call *memory, unsigned flags,
                               unsigned long long cuda_context, flp_execute_launch *launch);

/* What dispatch needs to know before there is a plan: rows, and addresses at multiples of an element. */
flp_status flp_logits_logp_run_check_call(flp_dtype dtype, int64_t rows, const void *logits, const void *grad_logits);
#endif
