/* One call of any operator: check, plan, context, targets, memory, launches. What differs from operator to operator is a flp_operator_calls. */
#ifndef FLP_CORE_CALL_H
#define FLP_CORE_CALL_H
#include "core/arguments.h"
#include "core/plan.h"
#include "core/dispatch.h"

/* What a call's args say, in the words of all operators. What an operator does not have is 0. */
typedef struct {
    int64_t rows;
    CUstream stream;
    void *workspace;
    size_t workspace_bytes;
    unsigned flags; /* flp_execute_flags */
    const void *target;
    int64_t ignore_index;
    const int64_t *row_index; /* or NULL: row i's target is target[row_index[i]], 0 .. target_rows - 1 */
    int64_t target_rows;
} flp_call;

/* Room for the args of any operator as this library knows them, and for what is made of them. */
enum { FLP_CALL_ARGS_BYTES = 1024, FLP_CALL_WORK_BYTES = 512 };

typedef struct flp_operator_calls {
    const flp_operator *op;
    const flp_arguments *arguments;
    /* Takes args as the caller's header has them; NULL: flp_sized_take. own [FLP_CALL_ARGS_BYTES] */
    const void *(*take)(const void *args, void *own, const flp_sizes *sizes, flp_status *status);

    /* What the table of arguments does not say, but for the targets' values and the size of the workspace; NULL: nothing. plan: NULL for a call of
     * no rows that takes none; normal: its problem, defaults filled in. work [FLP_CALL_WORK_BYTES]: is filled in where makes_work is 1.
     * FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
    flp_status (*check)(const flp_plan *plan, const void *normal, const void *args, void *work);
    int makes_work;          /* 1: the two below are given work; 0: args */
    int takes_no_workspace;  /* 1: of a plan that has one for another call */
    int writes_without_rows; /* 1: with rows = 0 there are still zeros to write, by the plan of one row */

    /* GPU paths: enqueues on the stream. workspace: laid out for the call's rows, in memory. FLP_CUDA_FAILED names the kernel. */
    flp_status (*launch)(const flp_plan *plan, const void *work, const flp_workspace *workspace);
    /* The CPU path. bad_count, bad_first: out-of-range targets and the first such row; only added to / lowered. */
    flp_status (*run_on_cpu)(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first);

    /* The call that comes before one with these args, of a plan for which there is one, with their workspace: it leaves there, and in arrays that they read,
     * what the plan's problem says. For who makes calls up; NULL: there is none. Errors as flp_call_execute. */
    flp_status (*execute_before)(flp_plan *plan, const void *args);

    /* flp_tune_first_use, which makes calls itself; NULL: its problems are not tuned on first use. */
    void (*tune)(const struct flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan);
} flp_operator_calls;

/* flp_X_plan_create and flp_X_prepare. */
flp_status flp_call_create_plan(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan, const flp_sizes *sizes);
flp_status flp_call_prepare(const flp_operator_calls *calls, flp_context *context, const void *problem, CUstream stream, const flp_sizes *sizes);

/* flp_X_execute and flp_X, with structs as the caller's header has them. */
flp_status flp_call_execute(const flp_operator_calls *calls, flp_plan *plan, const void *args, const flp_sizes *sizes);
flp_status flp_call_run(const flp_operator_calls *calls, flp_context *context, const void *problem, const void *args, const flp_sizes *sizes);

/* For launch. Launches one kernel as its manifest says: threads, shared memory, and beside the end of the kernel before it where it waits itself.
 * blocks: along x. */
flp_status flp_call_launch(const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters);

/* The functions of fusedlogp.h that every operator has. X: flp_linear_logp, say, with X_operator and X_calls. */
#define FLP_CALL_FUNCTIONS(X)                                                                                                   \
    flp_status X##_problem_format_sized(const X##_problem *problem, char *text, size_t bytes, const flp_sizes *sizes)           \
    {                                                                                                                           \
        return flp_problem_text_format(&X##_operator, problem, text, bytes, sizes);                                             \
    }                                                                                                                           \
    flp_status X##_problem_parse_sized(const char *text, X##_problem *problem, const flp_sizes *sizes)                          \
    {                                                                                                                           \
        return flp_problem_text_parse(&X##_operator, text, problem, sizes);                                                     \
    }                                                                                                                           \
    flp_status X##_plan_create_sized(flp_context *context, const X##_problem *problem, flp_plan **plan, const flp_sizes *sizes) \
    {                                                                                                                           \
        return flp_call_create_plan(&X##_calls, context, problem, plan, sizes);                                                 \
    }                                                                                                                           \
    flp_status X##_execute_sized(flp_plan *plan, const X##_args *args, const flp_sizes *sizes)                                  \
    {                                                                                                                           \
        return flp_call_execute(&X##_calls, plan, args, sizes);                                                                 \
    }                                                                                                                           \
    flp_status X##_sized(flp_context *context, const X##_problem *problem, const X##_args *args, const flp_sizes *sizes)        \
    {                                                                                                                           \
        return flp_call_run(&X##_calls, context, problem, args, sizes);                                                         \
    }                                                                                                                           \
    flp_status X##_prepare_sized(flp_context *context, const X##_problem *problem, void *stream, const flp_sizes *sizes)        \
    {                                                                                                                           \
        return flp_call_prepare(&X##_calls, context, problem, stream, sizes);                                                   \
    }

/* For flp_operator_calls.tune. *plan is that of problem, in the CUDA context that is current; where tuning gives it a record, the plan that takes it stands
 * in its place. Within the context's seconds, on memory and a stream of the tuning's own. Threads and processes that ask for one problem at once tune it
 * once: the others wait for the record, up to ten seconds beyond that time. Never fails: the plan stays, and says why in its description; so does a warning.
 * This thread's error message stays. */
void flp_tune_first_use(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan);

/* ---- FLP_CHECK_TARGETS: looks at every target before anything is enqueued ---- */

typedef struct {
    const void *target; /* [rows] i32 or i64, where the plan's path reads it */
    flp_dtype dtype;
    int64_t rows, vocab, ignore_index;
    int ignores; /* 1: ignore_index is */
    CUstream stream;
    const int64_t *row_index; /* or NULL: row i's target is target[row_index[i]], 0 .. target_rows - 1 */
    int64_t target_rows;
} flp_targets;

/* On a GPU path copies them to the host, which waits for the stream (FLP_CAPTURING where it is captured).
 * FLP_BAD_TARGET: the first row whose target is neither ignored nor in the vocabulary, and its value, or whose index names none. */
flp_status flp_targets_check(const flp_plan *plan, const flp_targets *wanted);
#endif
