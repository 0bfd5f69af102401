/* The plan: a problem, the path that answers it, its kernels and its memory. What is one operator's own lies behind this in a
 * structure of that operator (plan/linear_logp_plan.h). */
#ifndef FLP_PLAN_PLAN_H
#define FLP_PLAN_PLAN_H
#include <pthread.h>

#include "plan/choose.h"
#include "plan/context.h"
#include "plan/operator.h"
#include "plan/tally.h"

struct flp_plan {
    uint64_t serial; /* from 1, never reused, unlike the address */
    flp_context *context;
    const flp_operator *operator;
    flp_choice choice;
    flp_device device;                                /* GPU paths only, as the kernels */
    const flp_kernel *kernels[FLP_ROLES];             /* of each role; NULL where it has none */
    CUdeviceptr tallies;                              /* GPU paths: FLP_TALLIES flp_tally, the plan's own */
    CUdeviceptr target_errors;                        /* GPU paths: that of bad targets; 0 in a pass that does not count them */
    pthread_mutex_t tally_mutex;                      /* guards what follows */
    uint64_t tally_side[FLP_TALLIES];                 /* what stands in each */
    int64_t bad_count, bad_first;                     /* CPU path */
    char *numerics, *description;
};

/* flp_X_plan_create. */
flp_status flp_plan_make(flp_context *context, const flp_operator *operator, const void *problem, flp_plan **plan);
/* With the problem as the caller's header has it. */
flp_status flp_plan_make_sized(flp_context *context, const flp_operator *operator, const void *problem, flp_plan **plan, const flp_sizes *sizes);

/* 1 on a GPU path. */
int flp_plan_on_gpu(const flp_plan *plan);

/* The problem with its defaults filled in, a structure of the operator's; its rows. */
const void *flp_plan_problem(const flp_plan *plan);
int64_t flp_plan_rows(const flp_plan *plan);

/* The workspace of a call of so many rows; on the CPU path it has no parts. */
void flp_plan_lay_out(const flp_plan *plan, int64_t rows, flp_workspace *workspace);
/* The number of rows up to `rows` whose workspace is the largest. */
int64_t flp_plan_most_rows(const flp_plan *plan, int64_t rows);

/* FLP_BAD_ARGUMENT: the plan is one of another operator, or NULL. */
flp_status flp_plan_check_operator(const flp_plan *plan, const flp_operator *operator);

/* cuda_context: the id of the current one. FLP_WRONG_CONTEXT: the plan's kernels were loaded into another. */
flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context);

/* For an operator's set_up. FLP_INTERNAL: the generator chose no kernel for a role of `wanted`, or one for a role that is in neither set. */
flp_status flp_plan_check_kernels(const flp_plan *plan, flp_role_set wanted, flp_role_set optional);

/* For a plan within another: pass, of which the problem is filled in, gets what the two share, and the other's kernels of `roles`, and is set up. It
 * owns nothing. */
flp_status flp_plan_set_up_pass(const flp_plan *plan, const flp_operator *operator, flp_role_set roles, flp_plan *pass);

/* For an operator's describe: the lines of one kernel, each beginning with its role. plan/describe.c */
void flp_plan_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest);

/* The text of flp_plan_describe, malloc'ed; NULL when out of memory. problem: its canonical string. plan/describe.c */
char *flp_plan_write_description(const flp_plan *plan, const char *problem);
#endif
