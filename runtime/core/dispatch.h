/* The plans that calls without one made: found by a packed key, in this thread's recent hits or in a table read without a lock. */
#ifndef FLP_CORE_DISPATCH_H
#define FLP_CORE_DISPATCH_H
#include "core/context.h"
#include "core/operator.h"

flp_status flp_dispatch_create(flp_dispatch **dispatch);
/* Destroys the plans. NULL is allowed. */
void flp_dispatch_destroy(flp_dispatch *dispatch);

/* log2 of the rows that the plan for so many rows is made for; of fewer than 1 or too many, one that no plan is made for. Variants change after 64 and
 * 128 and nowhere else but by tunings, as a test asks of gen/select; above 2^10 the bucket bounds what the scratch grows to. */
static inline unsigned flp_dispatch_bucket(uint64_t rows)
{
    if (rows <= 64)
        return 6;
    if (rows <= 128)
        return 7;
    if (rows <= 1024)
        return 10;
    return 64 - (unsigned)__builtin_clzll(rows - 1);
}

/* The rows, 1 .. FLP_PROBLEM_ROWS_MAX, that the plan for a call of so many is made for. */
static inline int64_t flp_dispatch_rows(int64_t rows)
{
    return INT64_C(1) << flp_dispatch_bucket((uint64_t)rows);
}

/* What a call decides of its plan. */
typedef struct {
    int64_t rows;        /* not 0. FLP_BAD_ARGUMENT: not 1 .. FLP_PROBLEM_ROWS_MAX */
    uintptr_t addresses; /* of the arrays whose alignment counts, or'ed */
    CUstream stream;     /* whose capture forbids making a plan (FLP_CAPTURING) */
    /* What a call is refused for before a plan is made for it; NULL: nothing. One whose plan is there is checked against that instead. */
    flp_status (*check_new)(const void *problem, const void *args);
    /* What is done with a plan that was made for it, which this may replace; NULL: nothing. */
    void (*complete_new)(flp_context *context, const void *problem, const void *args, flp_plan **plan);
    const void *args; /* of these two */
} flp_dispatch_call;

/* The plan of problem for the call, in the CUDA context that is current; makes it where there is none. Of problem, rows and
 * pointer_alignment do not count. *cuda_context: the id of the current one; 0 where the problem asks for none. */
flp_status flp_dispatch_find(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, unsigned long long *cuda_context,
                             flp_plan **plan);

/* flp_X_prepare: the plans that dispatch makes for any N up to the problem's rows, and the shared scratch of the call's stream for them. call: with
 * what is the same for all of them. sizes: of the caller's structs. */
flp_status flp_prepare_problem(flp_context *context, const flp_operator *op, const void *problem, const flp_dispatch_call *call, const flp_sizes *sizes);
#endif
