/* What the shared machinery (plans, dispatch, problem strings) must know of one operator and direction. The problem of each is a
 * struct of its own; what is shared sees it as bytes and finds the fields that all have by their offsets. */
#ifndef FLP_CORE_OPERATOR_H
#define FLP_CORE_OPERATOR_H
#include <stddef.h>

#include "base/sized.h"
#include "base/text.h"
#include "core/problem.h"
#include "core/workspace.h"
#include "jit/role.h"

struct flp_operator {
    const char *name; /* as its canonical strings begin */

    size_t problem_bytes; /* at most FLP_PROBLEM_BYTES */
    const flp_sized_struct *problem_struct;
    size_t rows_at, pointer_alignment_at, backend_at; /* in the problem: int64_t, int, flp_backend */
    const flp_field *const *fields;                   /* of the problem, in the order of its canonical string: a table in parts, NULL behind the last */
    /* What holds between fields, each of which is acceptable, and fields without a plain rule. FLP_BAD_ARGUMENT names the field, what it got and
     * what was wanted. NULL: nothing. */
    flp_status (*check)(void *normal);

    /* 1: FLP_BACKEND_AUTO on a GPU without kernels for it is FLP_NO_VARIANT rather than the CPU path, which takes host pointers. */
    int stays_on_gpu;

    size_t plan_bytes, problem_at; /* its plan begins with flp_plan; the normal problem's offset in it */
    /* All paths, with the normal problem, before one is chosen. NULL: there is nothing to do. */
    flp_status (*begin)(flp_plan *plan);
    /* GPU paths: what the generator must know beside the problem's string, as a part of it (":saved_exp"); "": nothing. NULL: as "". */
    const char *(*hint)(const flp_plan *plan);
    /* GPU paths, before the kernels are there: takes what a tuning says beyond kernels, of how they are launched, in place of what an earlier one said; "":
     * nothing. The hint stays. FLP_BAD_ARGUMENT: it cannot be had. NULL: there is nothing of the kind. */
    flp_status (*take_tuning)(flp_plan *plan, const char *tuning);
    /* GPU paths, once `begin` has run: appends the tunings beyond kernels that are worth a try, a line each: those that decide on a row's bits, or those that
     * do not; most_bytes: of the workspace. NULL: there are none. */
    void (*offer_tunings)(const flp_plan *plan, int decides_bits, int64_t most_bytes, flp_text *tunings);
    /* GPU paths: 1 where a call of so many rows launches the kernel of a role. NULL: it launches all. */
    int (*launches)(const flp_plan *plan, flp_role role, int64_t rows);
    /* GPU paths, once the kernels are there: checks that they are those wanted and derives what launches need. */
    flp_status (*set_up)(flp_plan *plan);
    /* GPU paths: the parts of the workspace of a call of so many rows, in their places; NULL: there is none. */
    void (*lay_out)(const flp_plan *plan, int64_t rows, flp_workspace *workspace);
    /* GPU paths: the number of rows up to `rows` whose workspace is the largest; NULL: `rows`. */
    int64_t (*most_rows)(const flp_plan *plan, int64_t rows);
    int64_t (*cpu_workspace_bytes)(const flp_plan *plan, int64_t rows); /* the CPU path; NULL: it takes none */
    void (*describe)(const flp_plan *plan, flp_text *text);             /* GPU paths: kernels and shapes as lines "key: value" */
    void (*write_numerics)(const flp_plan *plan, flp_text *text);
};

/* Room for the problem of any operator. */
enum { FLP_PROBLEM_BYTES = 256 };
typedef union {
    max_align_t aligned;
    char bytes[FLP_PROBLEM_BYTES];
} flp_problem_storage;

/* What the definition of every operator begins with. X: linear_logp, say, with flp_X_problem and flp_X_plan, whose problem lies in it; inside: what of the
 * problem holds rows, pointer_alignment and backend: nothing, or "forward." */
#define FLP_OPERATOR_OF(X, inside)                                                                                                                           \
    .name = #X, .problem_bytes = sizeof(flp_##X##_problem), .problem_struct = &flp_sized_##X##_problem, .rows_at = offsetof(flp_##X##_problem, inside rows), \
    .pointer_alignment_at = offsetof(flp_##X##_problem, inside pointer_alignment), .backend_at = offsetof(flp_##X##_problem, inside backend),                \
    .plan_bytes = sizeof(flp_##X##_plan), .problem_at = offsetof(flp_##X##_plan, problem)

/* flp_X_operator, flp_X_calls (core/call.h), and flp_X_plan_of: a plan of this operator as what it is. */
#define FLP_OPERATOR_DECLARE(X)                                                 \
    extern const flp_operator flp_##X##_operator;                               \
    extern const flp_operator_calls flp_##X##_calls;                            \
    static inline const flp_##X##_plan *flp_##X##_plan_of(const flp_plan *plan) \
    {                                                                           \
        return (const flp_##X##_plan *)(const void *)plan;                      \
    }                                                                           \
    _Static_assert(sizeof(flp_##X##_problem) <= FLP_PROBLEM_BYTES, "FLP_PROBLEM_BYTES is too small");

static inline int64_t *flp_operator_rows(const flp_operator *op, void *problem)
{
    return (int64_t *)(void *)((char *)problem + op->rows_at);
}

static inline int *flp_operator_pointer_alignment(const flp_operator *op, void *problem)
{
    return (int *)(void *)((char *)problem + op->pointer_alignment_at);
}

static inline flp_backend flp_operator_backend(const flp_operator *op, const void *problem)
{
    return *(const flp_backend *)(const void *)((const char *)problem + op->backend_at);
}
#endif
