/* The plan: a problem, the path that answers it, its kernels and its memory. What is one operator's own lies behind this in a
 * structure of that operator (operators/linear/linear_logp_plan.h). */
#ifndef FLP_CORE_PLAN_H
#define FLP_CORE_PLAN_H
#include <pthread.h>

#include "base/status.h"
#include "core/choose.h"
#include "core/context.h"
#include "core/operator.h"
#include "core/tally.h"
#include "core/tuned.h"

struct flp_plan {
    uint64_t serial; /* from 1, never reused, unlike the address */
    flp_context *context;
    const flp_operator *op;
    flp_choice choice;
    flp_device device;                    /* GPU paths only, as the kernels */
    const flp_kernel *kernels[FLP_ROLES]; /* of each role; NULL where it has none */
    int32_t group[FLP_ROLES];             /* row groups that a launch of it walks together; 0: the launch decides */
    int64_t workspace_bytes;              /* of the problem's rows */
    CUdeviceptr tallies;                  /* GPU paths: FLP_TALLIES flp_tally, the plan's own */
    CUdeviceptr target_errors;            /* GPU paths: that of bad targets; 0 in a pass that does not count them */
    pthread_mutex_t tally_mutex;          /* guards what follows */
    uint64_t tally_side[FLP_TALLIES];     /* what stands in each */
    int64_t bad_count, bad_first;         /* CPU path */
    char *numerics, *description;
    flp_tuned tuned;
};

/* 1 on a GPU path. */
static inline int flp_plan_on_gpu(const flp_plan *plan)
{
    return plan->choice.path != FLP_BACKEND_CPU;
}

/* The problem with its defaults filled in, a structure of the operator's; its rows. */
static inline const void *flp_plan_problem(const flp_plan *plan)
{
    return (const char *)plan + plan->op->problem_at;
}

static inline int64_t flp_plan_rows(const flp_plan *plan)
{
    return *(const int64_t *)(const void *)((const char *)flp_plan_problem(plan) + plan->op->rows_at);
}

/* The workspace of a call of so many rows; on the CPU path it has no parts. */
static inline void flp_plan_lay_out(const flp_plan *plan, int64_t rows, flp_workspace *workspace)
{
    if (flp_plan_on_gpu(plan) && plan->op->lay_out)
        plan->op->lay_out(plan, rows, workspace);
    else
        *workspace = (flp_workspace){ .bytes = 0 };
}

/* The number of rows up to `rows` whose workspace is the largest. */
static inline int64_t flp_plan_most_rows(const flp_plan *plan, int64_t rows)
{
    return flp_plan_on_gpu(plan) && plan->op->most_rows ? plan->op->most_rows(plan, rows) : rows;
}

/* cuda_context: the id of the current one. FLP_WRONG_CONTEXT: the plan's kernels were loaded into another. */
static inline flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context)
{
    if (cuda_context == plan->device.context_id)
        return FLP_OK;
    return flp_status_fail(FLP_WRONG_CONTEXT, "the current CUDA context is number %llu, the plan belongs to number %llu", cuda_context,
                           plan->device.context_id);
}

/* For an operator's set_up. FLP_INTERNAL: the generator chose no kernel for a role of `wanted`, or one for a role that is in neither set. */
flp_status flp_plan_check_kernels(const flp_plan *plan, flp_role_set wanted, flp_role_set optional);

/* For a plan within another: pass, of which the problem is filled in, gets what the two share, and the other's kernels of `roles`, and is set up. It
 * owns nothing. */
flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *op, flp_role_set roles, flp_plan *pass);

/* The kernels that a plan of problem takes without a tuning on a GPU of this compute capability, none on the CPU path; no GPU is needed.
 * FLP_BAD_ARGUMENT: the problem is not acceptable. FLP_NO_VARIANT: for every path the reason. */
flp_status flp_plan_select(flp_context *context, const flp_operator *op, const void *problem, int compute_capability, flp_selection *selection);

/* Calls take with each kernel, some several times, that a plan of problem may take on GPUs of this compute capability: without a tuning, and with each that
 * the context's records may give it on any such machine. Errors as flp_plan_select's, FLP_OUT_OF_MEMORY. */
flp_status flp_plan_visit_kernels(flp_context *context, const flp_operator *op, const void *problem, int compute_capability,
                                  void (*take)(void *data, const char *variant), void *data);

/* What a record of problem must agree with where its tuning is that of wanted, whose problem does not count; no GPU is needed. Errors as flp_plan_select's. */
flp_status flp_plan_identify(flp_context *context, const flp_operator *op, const void *problem, const flp_wanted_kernels *wanted,
                             flp_record_identity *identity);

/* The kernels that a plan of problem would take in the CUDA context that is current; none on the CPU path. Errors as flp_create_plan's. */
flp_status flp_plan_foresee(flp_context *context, const flp_operator *op, const void *problem, flp_selection *selection);

/* flp_X_plan_create. */
flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan);
/* With this tuning, whatever records say. FLP_NO_VARIANT: what is wrong with it; on the CPU path it has no kernels to change. */
flp_status flp_create_plan_tuned(flp_context *context, const flp_operator *op, const void *problem, const char *tuning, flp_plan **plan);
/* Adds to the description why it is not tuned. Not once a caller has the plan. */
void flp_plan_say_untuned(flp_plan *plan, const char *why);

/* What the generator is asked for a plan: the problem's canonical string and the operator's hint. text [FLP_PLAN_KERNELS_BYTES] */
enum { FLP_PLAN_KERNELS_BYTES = FLP_PROBLEM_TEXT_BYTES + 32 };
void flp_plan_kernels_text(const flp_plan *plan, char *text);
/* The same of a problem; no GPU is needed. FLP_BAD_ARGUMENT: the problem is not acceptable. */
flp_status flp_plan_write_wanted(flp_context *context, const flp_operator *op, const void *problem, char *text);

/* Appends the tunings beyond kernels that are worth a try: op's offer_tunings. most_bytes: FLP_PLAN_OWN_BYTES stands for what the problem takes without one.
 * FLP_BAD_ARGUMENT: the problem is not acceptable; FLP_OUT_OF_MEMORY. */
enum { FLP_PLAN_OWN_BYTES = -1 };
flp_status flp_plan_offer(flp_context *context, const flp_operator *op, const void *problem, int decides_bits, int64_t most_bytes, flp_text *tunings);

/* What it runs on: the GPU, or the CPU and its threads. */
void flp_describe_device(const flp_plan *plan, flp_text *text);

/* For an operator's describe: the lines of one kernel, each beginning with its role. */
void flp_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest);
#endif
