/* linear_logp on the host device: one case of tests/cases.h. */
#ifndef FLP_TESTS_HOST_LINEAR_LOGP_H
#define FLP_TESTS_HOST_LINEAR_LOGP_H
#include "cases.h"

/* Fills in what a problem leaves open, as tests/cases.c does: strides, int64 targets, ignore_index -100. */
void flp_host_linear_logp_complete(flp_case *c);

/* Plans, launches, and checks against fp64. flp_host_suite_begin must have been called. 1, or 0 and a message: what failed, or the rule that a kernel broke. */
int flp_host_linear_logp_run(flp_context *context, const flp_case *c, char *message, size_t bytes);
/* The same with data and reference that the caller has made; the results stay in data. */
int flp_host_linear_logp_run_data(flp_context *context, const flp_case *c, flp_case_data *data, const flp_reference *reference, char *message, size_t bytes);
#endif
