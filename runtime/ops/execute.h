/* Runs an operator's launches in the caller's workspace or in the context's shared scratch. */
#ifndef FLP_OPS_EXECUTE_H
#define FLP_OPS_EXECUTE_H
#include "plan/plan.h"

/* Enqueues on the stream of args, which are the operator's, checked, and have rows > 0. workspace: laid out for these rows, in memory.
 * FLP_CUDA_FAILED names the kernel. */
typedef flp_status flp_execute_launch(const flp_plan *plan, const void *args, const flp_workspace *workspace);

/* What is the same in the args of every operator. */
typedef struct {
    int64_t rows;
    void *workspace;
    size_t workspace_bytes;
    CUstream stream;
} flp_execute_call;

/* A plan on a GPU path. FLP_BAD_ARGUMENT: the workspace; else as flp_scratch_lend and launch. */
flp_status flp_execute_on_gpu(const flp_plan *plan, const flp_execute_call *call, flp_execute_launch *launch, const void *args);

/* For flp_X_execute: the plan is one of the operator's, args are there. *cuda_context: the id of the current one, 0 on the CPU path and
 * for no rows. */
flp_status flp_execute_begin(const flp_plan *plan, const flp_operator *operator, const void *args, int64_t rows,
                             unsigned long long *cuda_context);
#endif
