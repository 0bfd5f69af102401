/* The plan: a problem, the path that answers it, its kernels and its memory. Each operator has a plan struct of its own that begins with an flp_plan
 * (operators/linear/linear_logp_plan.h). */
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
    flp_device device;                    /* GPU paths only, like the kernels */
    const flp_kernel *kernels[FLP_ROLES]; /* by role; NULL: the plan has none of this role */
    int32_t group[FLP_ROLES];             /* by role: row groups that a launch walks through the columns together; 0: the launch decides */
    int64_t workspace_bytes;              /* for the problem's rows */
    CUdeviceptr tallies;                  /* GPU paths: FLP_TALLIES flp_tally, owned by the plan */
    CUdeviceptr target_errors;            /* GPU paths: the tally of bad targets; 0: this is a pass (below) that does not count them */
    pthread_mutex_t tally_mutex;          /* guards what follows */
    uint64_t tally_side[FLP_TALLIES];     /* the value of each tally's `side` on the device */
    int64_t bad_count, bad_first;         /* CPU path: rows with bad targets */
    char *numerics, *description;
    flp_tuned tuned;
};

/* 1 on a GPU path. */
static inline int flp_plan_on_gpu(const flp_plan *plan)
{
    return plan->choice.path != FLP_BACKEND_CPU;
}

/* The problem with its defaults filled in, as the operator's own struct. */
static inline const void *flp_plan_problem(const flp_plan *plan)
{
    return (const char *)plan + plan->op->problem_at;
}

static inline int64_t flp_plan_rows(const flp_plan *plan)
{
    return *(const int64_t *)(const void *)((const char *)flp_plan_problem(plan) + plan->op->rows_at);
}

/* Lays out the workspace of a call of `rows` rows. On the CPU path it has no parts. */
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

/* cuda_context: the id of the current CUDA context. FLP_WRONG_CONTEXT: the plan's kernels are loaded into another one. */
static inline flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context)
{
    if (cuda_context == plan->device.context_id)
        return FLP_OK;
    return flp_status_fail(FLP_WRONG_CONTEXT, "the current CUDA context is number %llu, the plan belongs to number %llu", cuda_context,
                           plan->device.context_id);
}

/* For an operator's set_up. FLP_INTERNAL: the generator chose no kernel for a role of `wanted`, or one for a role that is in neither set. */
flp_status flp_plan_check_kernels(const flp_plan *plan, flp_role_set wanted, flp_role_set optional);

/* For a pass: a plan of another operator within a plan, such as the forward of a linear_cross_entropy. pass has its problem filled in. It gets what the two
 * plans share and plan's kernels of `roles`, and is set up by op. It owns nothing. */
flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *op, flp_role_set roles, flp_plan *pass);

/* The kernels that a plan of problem takes without a tuning on a GPU of this compute capability, none on the CPU path; no GPU is needed.
 * FLP_BAD_ARGUMENT: the problem is not acceptable. FLP_NO_VARIANT: no path has kernels; the message gives each path's reason. */
flp_status flp_plan_select(flp_context *context, const flp_operator *op, const void *problem, int compute_capability, flp_selection *selection);

/* Calls `take` with each kernel that a plan of problem may use on GPUs of this compute capability: without a tuning, and with each tuning of flp_tuned_list. A
 * kernel may come several times. Errors as flp_plan_select, FLP_OUT_OF_MEMORY. */
flp_status flp_plan_visit_kernels(flp_context *context, const flp_operator *op, const void *problem, int compute_capability,
                                  void (*take)(void *data, const char *variant), void *data);

/* The identity that a record of problem with the tuning wanted->tuning must agree with. wanted->problem is ignored; no GPU is needed. Errors as
 * flp_plan_select. */
flp_status flp_plan_identify(flp_context *context, const flp_operator *op, const void *problem, const flp_wanted_kernels *wanted,
                             flp_record_identity *identity);

/* The kernels that a plan of problem would use in the current CUDA context; none on the CPU path. Errors as flp_create_plan. */
flp_status flp_plan_foresee(flp_context *context, const flp_operator *op, const void *problem, flp_selection *selection);

/* flp_X_plan_create. */
flp_status flp_create_plan(flp_context *context, const flp_operator *op, const void *problem, flp_plan **plan);
/* Creates a plan with this tuning, whatever records say; NULL: as flp_create_plan. FLP_NO_VARIANT: the tuning is wrong, or is not "" on the CPU path, which has
 * no kernels to tune. */
flp_status flp_create_plan_tuned(flp_context *context, const flp_operator *op, const void *problem, const char *tuning, flp_plan **plan);
/* Adds to the plan's description why it is not tuned. Only before a caller has the plan. */
void flp_plan_say_untuned(flp_plan *plan, const char *why);

/* Writes what the generator is asked for a plan: the problem's canonical string and the operator's hint. text [FLP_PLAN_KERNELS_BYTES]: "" after a failure.
 * FLP_OUT_OF_MEMORY. */
enum { FLP_PLAN_KERNELS_BYTES = FLP_PROBLEM_TEXT_BYTES + FLP_HINT_BYTES };
flp_status flp_plan_kernels_text(const flp_plan *plan, char *text);
/* As flp_plan_kernels_text, for a problem; no GPU is needed. FLP_BAD_ARGUMENT: the problem is not acceptable. */
flp_status flp_plan_write_wanted(flp_context *context, const flp_operator *op, const void *problem, char *text);

/* Appends the tunings of launches (chunks) that are worth a try: op's offer_tunings. most_bytes: the largest workspace that they may have; FLP_PLAN_OWN_BYTES:
 * the workspace of the problem without a tuning. FLP_BAD_ARGUMENT: the problem is not acceptable; FLP_OUT_OF_MEMORY. */
enum { FLP_PLAN_OWN_BYTES = -1 };
flp_status flp_plan_offer(flp_context *context, const flp_operator *op, const void *problem, int decides_bits, int64_t most_bytes, flp_text *tunings);

/* Appends what the plan runs on: the GPU, or the CPU and its threads. */
void flp_describe_device(const flp_plan *plan, flp_text *text);

/* For an operator's describe: appends the lines of one kernel, each beginning with its role. */
void flp_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest);
#endif
