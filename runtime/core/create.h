/* Creates plans of any operator. */
#ifndef FLP_CORE_CREATE_H
#define FLP_CORE_CREATE_H
#include "core/operator.h"

/* flp_X_plan_create. */
flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan);
/* With the problem as the caller's header has it. */
flp_status flp_create_plan_sized(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan, const flp_sizes *sizes);
#endif
