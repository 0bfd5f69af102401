/* Runs one call of any operator: checks, plan, CUDA context, targets, workspace, launches. What differs from operator to operator is an flp_operator_calls. */
#ifndef FLP_CORE_CALL_H
#define FLP_CORE_CALL_H
#include "core/arguments.h"
#include "core/plan.h"
#include "core/dispatch.h"

/* The args that all operators have in common. What an operator does not have is 0. */
typedef struct {
    int64_t rows;
    CUstream stream;
    void *workspace;
    size_t workspace_bytes;
    unsigned flags; /* flp_execute_flags */
    const void *target;
    int64_t ignore_index;
    const int64_t *row_index; /* row i's target is target[row_index[i]], an index in 0 .. target_rows - 1; NULL: target[i] */
    int64_t target_rows;
} flp_call;

/* Room for the args of any operator as this library knows them, and for the work that an operator's check derives from them. */
enum { FLP_CALL_ARGS_BYTES = 1024, FLP_CALL_WORK_BYTES = 512 };

typedef struct flp_operator_calls {
    const flp_operator *op;
    const flp_arguments *arguments;
    /* Converts args from the caller's header's struct to this library's, as flp_sized_take does. NULL: flp_sized_take. own [FLP_CALL_ARGS_BYTES] */
    const void *(*take)(const void *args, void *own, const flp_sizes *sizes, flp_status *status);

    /* Checks what the table of arguments does not say, except for the targets' values and the size of the workspace. NULL: nothing is left to check. plan: NULL
     * for a call with 0 rows that needs no plan. normal: the problem with its defaults filled in. work [FLP_CALL_WORK_BYTES]: is filled in where makes_work is
     * 1. FLP_BAD_ARGUMENT names the argument, what it got and what was wanted. */
    flp_status (*check)(const flp_plan *plan, const void *normal, const void *args, void *work);
    int makes_work;          /* 1: launch and run_on_cpu are passed the work; 0: the args */
    int takes_no_workspace;  /* 1: the call needs none, although its plan has one for another call */
    int writes_without_rows; /* 1: a call with rows = 0 writes zeros, by the plan of one row */

    /* GPU paths: enqueues on the stream. workspace: laid out for the call's rows, with its memory. FLP_CUDA_FAILED names the kernel. */
    flp_status (*launch)(const flp_plan *plan, const void *work, const flp_workspace *workspace);
    /* The CPU path. The number of out-of-range targets is added to *bad_count, and *bad_first is lowered to the first row that has one. */
    flp_status (*run_on_cpu)(const flp_plan *plan, const void *work, int64_t *bad_count, int64_t *bad_first);

    /* Makes the call that must come before one with these args, where the plan's problem needs one (the forward of with_forward). It has the same workspace,
     * and leaves its results there and in arrays that the args read. For tunings, which make calls themselves. NULL: no problem of the operator needs one.
     * Errors as flp_call_execute. */
    flp_status (*execute_before)(flp_plan *plan, const void *args);

    /* flp_tune_first_use; NULL: the operator's problems are not tuned on first use. */
    void (*tune)(const struct flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan);
} flp_operator_calls;

/* flp_X_plan_create and flp_X_prepare. */
flp_status flp_call_create_plan(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan, const flp_sizes *sizes);
flp_status flp_call_prepare(const flp_operator_calls *calls, flp_context *context, const void *problem, CUstream stream, const flp_sizes *sizes);

/* flp_X_execute and flp_X. Structs are as the caller's header has them, with these sizes. */
flp_status flp_call_execute(const flp_operator_calls *calls, flp_plan *plan, const void *args, const flp_sizes *sizes);
flp_status flp_call_run(const flp_operator_calls *calls, flp_context *context, const void *problem, const void *args, const flp_sizes *sizes);

/* For flp_operator_calls.launch: launches one kernel with the threads and shared memory of its manifest. A kernel with dependent_launch, which waits for the
 * kernel before it by itself, may start before that one has ended (programmatic dependent launch). blocks: of the grid, along x. */
flp_status flp_call_launch(const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters);

/* Defines the functions of fusedlogp.h that every operator has. X: e.g. flp_linear_logp, for which there are X_operator and X_calls. */
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

/* For flp_operator_calls.tune: in a context with FLP_CONTEXT_TUNE, tunes the problem of *plan, which was just made in the current CUDA context. If this leaves
 * an exact record, a plan that follows the record replaces *plan. The tuning takes the context's tune_seconds, and has device memory and a stream of its own.
 * Threads and processes that need the same problem at once tune it only once: the others wait for the record, up to ten seconds beyond that time.
 * Never fails: if the problem cannot be tuned, *plan stays, and its description and a warning say why. Does not change this thread's error message. */
void flp_tune_first_use(const flp_operator_calls *calls, flp_context *context, const void *problem, flp_plan **plan);

/* ---- FLP_CHECK_TARGETS: checks every target before anything is enqueued ---- */

typedef struct {
    const void *target; /* [rows] i32 or i64, where the plan's path reads it */
    flp_dtype dtype;
    int64_t rows, vocab, ignore_index;
    int ignores; /* 1: rows whose target is ignore_index are ignored */
    CUstream stream;
    const int64_t *row_index; /* as in flp_call */
    int64_t target_rows;
} flp_targets;

/* On a GPU path the targets are copied to the host, which waits for the stream; FLP_CAPTURING: the stream is being captured.
 * FLP_BAD_TARGET names the first row whose target is neither ignored nor in the vocabulary, or whose row_index is out of range, and the value. */
flp_status flp_targets_check(const flp_plan *plan, const flp_targets *wanted);
#endif
