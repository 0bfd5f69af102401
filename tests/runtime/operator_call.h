/* What the tests of operators share: a call with its plan and workspace on the fake driver, and test cases that hold for every operator. */
#ifndef FLP_TESTS_OPERATOR_CALL_H
#define FLP_TESTS_OPERATOR_CALL_H
#include "assertions.h"
#include "core/plan.h"

/* One operator: its functions; the test file's context, plan, problem and arguments; and those fields of them that the cases set. */
typedef struct {
    flp_status (*plan_create)(flp_context *context, const void *problem, flp_plan **plan);
    flp_status (*execute)(flp_plan *plan, const void *args);
    flp_status (*run)(flp_context *context, const void *problem, const void *args);
    flp_status (*prepare)(flp_context *context, const void *problem, void *stream);
    const char *prepare_name;
    flp_context **context;
    flp_plan **plan;
    void **memory; /* the workspace, malloc'ed */
    const void *problem, *args;
    const int64_t *most_rows; /* the problem's rows */
    flp_backend *backend;
    int64_t *rows; /* the arguments' rows */
    void **workspace, **stream;
    size_t *workspace_bytes;
} operator_call;

/* Defines the functions of an operator, logits_logp, as an operator_call has them. */
#define OPERATOR_CALL_FUNCTIONS(X)                                                          \
    static flp_status X##_plan_create(flp_context *of, const void *wanted, flp_plan **made) \
    {                                                                                       \
        return flp_##X##_plan_create(of, wanted, made);                                     \
    }                                                                                       \
    static flp_status X##_execute(flp_plan *of, const void *with)                           \
    {                                                                                       \
        return flp_##X##_execute(of, with);                                                 \
    }                                                                                       \
    static flp_status X##_run(flp_context *in, const void *wanted, const void *with)        \
    {                                                                                       \
        return flp_##X(in, wanted, with);                                                   \
    }                                                                                       \
    static flp_status X##_prepare(flp_context *in, const void *wanted, void *stream)        \
    {                                                                                       \
        return flp_##X##_prepare(in, wanted, stream);                                       \
    }
/* Its operator_call, with the test file's context, plan and workspace. most, of: the problem's rows and its backend. */
#define OPERATOR_CALL(X, its_problem, its_args, most, of)                                                                                                 \
    {                                                                                                                                                     \
        .plan_create = X##_plan_create, .execute = X##_execute, .run = X##_run, .prepare = X##_prepare, .prepare_name = "flp_" #X "_prepare",             \
        .context = &context, .plan = &plan, .memory = &workspace, .problem = &(its_problem), .args = &(its_args), .most_rows = &(most), .backend = &(of), \
        .rows = &(its_args).rows, .workspace = &(its_args).workspace, .stream = &(its_args).stream, .workspace_bytes = &(its_args).workspace_bytes,       \
    }

/* The running test's operator, which the setup of its file sets. */
extern const operator_call *operator_call_current;

/* Makes the problem's plan, and a workspace of exactly its bytes. The fake driver's counts of calls and launches begin anew. */
void operator_call_make_plan(void);

/* Called at the end of a setup: makes the plan on Hopper's path, or on the CPU path. Non-zero: it is on another path. */
int operator_call_start_on_gpu(void);
int operator_call_start_on_cpu(void);

/* Tear-down of every test: asserts that nothing is left on the device. */
int operator_call_stop(void **state);

/* The number of launches of kernels whose names begin with this. */
int operator_call_launches_of(const char *kernel);

/* Asserts that the call is refused after this change to `args`, which is then undone. */
#define REFUSED(change, part)                                                                                      \
    do {                                                                                                           \
        char saved_[sizeof(args)];                                                                                 \
        memcpy(saved_, &args, sizeof(args));                                                                       \
        change;                                                                                                    \
        assert_fails(FLP_BAD_ARGUMENT, operator_call_current->execute(*operator_call_current->plan, &args), part); \
        memcpy(&args, saved_, sizeof(args));                                                                       \
    } while (0)

/* Asserts that an array that the problem does not request is refused, in a call with rows and in one without. */
#define UNASKED(change, field)                                                 \
    do {                                                                       \
        REFUSED(change, "wanted NULL: the problem's " field);                  \
        REFUSED((change, args.rows = 0), "wanted NULL: the problem's " field); \
    } while (0)

/* ---- test cases: OPERATOR_CASE(name, setup) is the function operator_call_NAME as a test with the name alone. Those of another CUDA context and of failed
 * launches are for operators with the kernels of linear_logp's backward. */

void operator_call_executing_in_a_workspace_allocates_nothing_and_can_be_captured(void **state);
void operator_call_all_launches_are_on_the_stream(void **state);
void operator_call_another_cuda_context_is_refused(void **state);
void operator_call_a_failed_launch_names_the_kernel_and_is_the_last(void **state);
void operator_call_each_failed_launch_is_the_last(void **state);
void operator_call_calls_without_a_plan_share_one(void **state);
void operator_call_a_prepared_problem_can_be_captured(void **state);

#define OPERATOR_CASE(name, setup)                                   \
    {                                                                \
#name, operator_call_##name, setup, operator_call_stop, NULL \
    }
#endif
