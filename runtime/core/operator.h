/* flp_operator: what the code that all operators share (plans, dispatch, problem strings) must know of one operator; a backward is an operator of its own.
 * Each operator's problem is a struct of its own. Shared code sees it as bytes, and finds the fields that all problems have by their offsets. */
#ifndef FLP_CORE_OPERATOR_H
#define FLP_CORE_OPERATOR_H
#include <stddef.h>

#include "base/sized.h"
#include "base/text.h"
#include "core/problem.h"
#include "core/workspace.h"
#include "jit/role.h"

enum { FLP_HINT_BYTES = 64 };

struct flp_operator {
    const char *name; /* the first part of its canonical strings */

    size_t problem_bytes; /* at most FLP_PROBLEM_BYTES */
    const flp_sized_struct *problem_struct;
    size_t rows_at, pointer_alignment_at, backend_at; /* in the problem: int64_t, int, flp_backend */
    const flp_field *const *fields;                   /* of the problem, in the order of its canonical string: tables of fields, then NULL */
    /* Checks conditions between fields, each of which has passed its own check, and fields for which the table has no rule. normal: the problem with its
     * defaults filled in. FLP_BAD_ARGUMENT names the field, what it got and what was wanted. NULL: nothing is left to check. */
    flp_status (*check)(void *normal);

    /* 1: on a GPU without kernels for the problem, FLP_BACKEND_AUTO is FLP_NO_VARIANT rather than the CPU path, which takes host pointers. */
    int stays_on_gpu;

    size_t plan_bytes, problem_at; /* size of its plan, which begins with flp_plan; offset of the problem there, with its defaults filled in */
    /* All paths: called when the plan has its problem with the defaults filled in, before a path is chosen. NULL: there is nothing to do. */
    flp_status (*begin)(flp_plan *plan);
    /* GPU paths: writes what the generator must know beyond the problem's string, as text to append to it (":saved_exp"); "": nothing. NULL: always "".
     * text [FLP_HINT_BYTES] */
    void (*hint)(const flp_plan *plan, char *text);
    /* GPU paths, before the kernels are there: takes over the items of a tuning that change how kernels are launched (chunks) and not the kernels, in place of
     * those of an earlier tuning. tuning "": none. The hint does not change. FLP_BAD_ARGUMENT: the plan cannot have this tuning. NULL: the operator has no such
     * items. */
    flp_status (*take_tuning)(flp_plan *plan, const char *tuning);
    /* GPU paths, once `begin` has run: appends the tunings of launches (chunks) that are worth a try, one a line. decides_bits 1: those that change a row's
     * bits; 0: those that do not. most_bytes: the largest workspace that they may have. NULL: there are none. */
    void (*offer_tunings)(const flp_plan *plan, int decides_bits, int64_t most_bytes, flp_text *tunings);
    /* GPU paths: 1 where a call of `rows` rows launches the kernel of a role. NULL: each call launches all kernels. */
    int (*launches)(const flp_plan *plan, flp_role role, int64_t rows);
    /* GPU paths, once the kernels are there: checks that they are of the roles that the problem needs, and derives what launches need. */
    flp_status (*set_up)(flp_plan *plan);
    /* GPU paths: fills in the parts of the workspace of a call of `rows` rows, with their offsets. NULL: calls take no workspace. */
    void (*lay_out)(const flp_plan *plan, int64_t rows, flp_workspace *workspace);
    /* GPU paths: the number of rows up to `rows` whose workspace is the largest; NULL: `rows`. */
    int64_t (*most_rows)(const flp_plan *plan, int64_t rows);
    int64_t (*cpu_workspace_bytes)(const flp_plan *plan, int64_t rows); /* CPU path; NULL: it takes none */
    void (*describe)(const flp_plan *plan, flp_text *text);             /* GPU paths: kernels and shapes as lines "key: value" */
    void (*write_numerics)(const flp_plan *plan, flp_text *text);
};

/* Room for the problem of any operator. */
enum { FLP_PROBLEM_BYTES = 256 };
typedef union {
    max_align_t aligned;
    char bytes[FLP_PROBLEM_BYTES];
} flp_problem_storage;

/* The initialisers that the definition of every operator begins with. X: its name, e.g. linear_logp, of the types flp_X_problem and flp_X_plan, which contains
 * the problem. inside: "forward." where rows, pointer_alignment and backend are fields of the problem's `forward`, else empty. */
#define FLP_OPERATOR_OF(X, inside)                                                                                                                           \
    .name = #X, .problem_bytes = sizeof(flp_##X##_problem), .problem_struct = &flp_sized_##X##_problem, .rows_at = offsetof(flp_##X##_problem, inside rows), \
    .pointer_alignment_at = offsetof(flp_##X##_problem, inside pointer_alignment), .backend_at = offsetof(flp_##X##_problem, inside backend),                \
    .plan_bytes = sizeof(flp_##X##_plan), .problem_at = offsetof(flp_##X##_plan, problem)

/* Declares flp_X_operator and flp_X_calls (core/call.h), and defines flp_X_plan_of, which casts a plan of this operator to its own type. */
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
