/* A plan in words, for flp_plan_describe. */
#ifndef FLP_CORE_DESCRIBE_H
#define FLP_CORE_DESCRIBE_H
#include "core/plan.h"

/* The text of flp_plan_describe, malloc'ed; NULL when out of memory. problem: its canonical string. */
char *flp_describe_plan(const flp_plan *plan, const char *problem);

/* What it runs on: the GPU, or the CPU and its threads. */
void flp_describe_device(const flp_plan *plan, flp_text *text);

/* For an operator's describe: the lines of one kernel, each beginning with its role. */
void flp_describe_kernel(flp_text *text, const char *role, const flp_manifest *manifest);
#endif
