/* The plan: a problem, the path that answers it, its kernels and its memory. */
#ifndef FLP_PLAN_PLAN_H
#define FLP_PLAN_PLAN_H
#include <pthread.h>

#include "plan/choose.h"
#include "plan/context.h"
#include "plan/launch.h"
#include "plan/split.h"

struct flp_plan {
    flp_context *context;
    flp_linear_logp_problem problem; /* with its defaults filled in */
    flp_choice choice;
    flp_device device;               /* GPU paths only, as the kernels */
    const flp_kernel *tile, *combine;
    flp_split split;
    CUdeviceptr target_errors;       /* GPU paths: two 64-bit words, see plan/target_errors.h */
    pthread_mutex_t bad_mutex;       /* CPU path: guards the next two */
    int64_t bad_count, bad_first;
    char *numerics, *description;
};

/* 1 on a GPU path. */
int flp_plan_on_gpu(const flp_plan *plan);

/* cuda_context: the id of the current one. FLP_WRONG_CONTEXT: the plan's kernels were loaded into another. */
flp_status flp_plan_check_context(const flp_plan *plan, unsigned long long cuda_context);

/* The launches for so many rows; GPU paths only. */
flp_launch flp_plan_launch(const flp_plan *plan, int64_t rows);

/* The text of flp_plan_describe, malloc'ed; NULL when out of memory. problem: its canonical string. plan/describe.c */
char *flp_plan_write_description(const flp_plan *plan, const char *problem);
#endif
