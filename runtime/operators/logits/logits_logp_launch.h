/* logits_logp on a GPU path, both directions. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_LAUNCH_H
#define FLP_OPERATORS_LOGITS_LOGP_LAUNCH_H
#include "operators/logits/logits_logp_cpu.h"
#include "core/plan.h"

/* A call and where it is enqueued: what flp_operator_calls.check makes of args. */
typedef struct {
    flp_logits_logp_call call;
    CUstream stream;
} flp_logits_logp_work;

/* For flp_operator_calls.launch. work->call is checked and has rows > 0. */
flp_status flp_logits_logp_launch(const flp_plan *plan, const void *work, const flp_workspace *workspace);
flp_status flp_logits_logp_launch_backward(const flp_plan *plan, const void *work, const flp_workspace *workspace);
#endif
