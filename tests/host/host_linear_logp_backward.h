/* linear_logp's backward on the host device: one case of tests/gradient_cases.h. */
#ifndef FLP_TESTS_HOST_LINEAR_LOGP_BACKWARD_H
#define FLP_TESTS_HOST_LINEAR_LOGP_BACKWARD_H
#include "gradient_cases.h"

/* As flp_host_linear_logp_run. */
int flp_host_linear_logp_backward_run(flp_context *context, const flp_gradient_case *c, char *message, size_t bytes);
/* The same with data and reference that the caller has made; the results stay in data. */
int flp_host_linear_logp_backward_run_data(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data,
                                           const flp_gradient_reference *reference, char *message, size_t bytes);
#endif
