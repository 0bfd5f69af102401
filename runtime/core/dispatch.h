/* The context's own plans, for calls of flp_X, which take a problem and no plan. Each is made once, kept, and found by a packed key, first among this thread's
 * recent hits, then in a table that is read without a lock. */
#ifndef FLP_CORE_DISPATCH_H
#define FLP_CORE_DISPATCH_H
#include "core/context.h"
#include "core/operator.h"

flp_status flp_dispatch_create(flp_dispatch **dispatch);
/* Destroys the plans. NULL is allowed. */
void flp_dispatch_destroy(flp_dispatch *dispatch);

/* What a call contributes to finding or making its plan. */
typedef struct {
    int64_t rows;        /* not 0. FLP_BAD_ARGUMENT: not 1 .. FLP_PROBLEM_ROWS_MAX */
    uintptr_t addresses; /* of the arrays that decide on pointer_alignment, or'ed */
    CUstream stream;     /* while it is being captured, no plan can be made (FLP_CAPTURING) */
    /* Checks the call before a plan is made for it; NULL: nothing is checked. A call whose plan exists is checked against that plan instead. */
    flp_status (*check_new)(const void *problem, const void *args);
    /* Is called with a plan that was just made for the call, and may replace it; NULL: nothing is done. */
    void (*complete_new)(flp_context *context, const void *problem, const void *args, flp_plan **plan);
    const void *args; /* passed to these two */
} flp_dispatch_call;

/* Finds the plan of problem for the call, in the current CUDA context, or makes it. rows and pointer_alignment of problem are ignored. *cuda_context: the id of
 * the current CUDA context; 0: none is used, because the call takes the CPU path. */
flp_status flp_dispatch_find(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, unsigned long long *cuda_context,
                             flp_plan **plan);

/* flp_X_prepare: makes the plans that calls of any N up to the problem's rows need, and reserves the shared scratch of call->stream for them. call: what is the
 * same for all of these calls; its rows and addresses are ignored. sizes: of the caller's structs. */
flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, const flp_sizes *sizes);
#endif
