/* The plans that calls without one made: found by a packed key, in this thread's recent hits or in a table read without a lock. */
#ifndef FLP_CORE_DISPATCH_H
#define FLP_CORE_DISPATCH_H
#include "core/context.h"
#include "core/operator.h"

flp_status flp_dispatch_create(flp_dispatch **dispatch);
/* Destroys the plans. NULL is allowed. */
void flp_dispatch_destroy(flp_dispatch *dispatch);

/* The rows, 1 .. FLP_PROBLEM_ROWS_MAX, that the plan for a call of so many is made for. */
int64_t flp_dispatch_rows(int64_t rows);

/* What a call decides of its plan. */
typedef struct {
    int64_t rows;        /* not 0. FLP_BAD_ARGUMENT: not 1 .. FLP_PROBLEM_ROWS_MAX */
    uintptr_t addresses; /* of the arrays whose alignment counts, or'ed */
    CUstream stream;     /* whose capture forbids making a plan (FLP_CAPTURING) */
    /* What a call is refused for before a plan is made for it; NULL: nothing. One whose plan is there is checked against that instead. */
    flp_status (*check_new)(const void *problem, const void *args);
    const void *args; /* check_new's */
} flp_dispatch_call;

/* The plan of problem for the call, in the CUDA context that is current; makes it where there is none. Of problem, rows and
 * pointer_alignment do not count. *cuda_context: the id of the current one; 0 where the problem asks for none. */
flp_status flp_dispatch_find(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, unsigned long long *cuda_context,
                             flp_plan **plan);

/* flp_X_prepare: the plans that dispatch makes for any N up to the problem's rows, and the shared scratch of stream for them. sizes: of the
 * caller's structs. */
flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, CUstream stream, const flp_sizes *sizes);
#endif
