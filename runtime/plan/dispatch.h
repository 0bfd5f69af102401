/* The plans that flp_linear_logp made: found by a packed key, in this thread's last hit or in a table read without a lock. */
#ifndef FLP_PLAN_DISPATCH_H
#define FLP_PLAN_DISPATCH_H
#include "plan/context.h"

flp_status flp_dispatch_create(flp_dispatch **dispatch);
/* Destroys the plans. NULL is allowed. */
void flp_dispatch_destroy(flp_dispatch *dispatch);

/* The plan of problem for 1 <= rows <= FLP_PROBLEM_ROWS_MAX, in the CUDA context that is current; makes it where there is none. Of
 * problem, rows and pointer_alignment do not count: the alignment is that of `addresses`, the two addresses or'ed.
 * *cuda_context: the id of the current one; 0 where the problem asks for none. stream: whose capture forbids making a plan (FLP_CAPTURING). */
flp_status flp_dispatch_find(flp_context *context, const flp_linear_logp_problem *problem, int64_t rows, uintptr_t addresses,
                             CUstream stream, unsigned long long *cuda_context, flp_plan **plan);
#endif
