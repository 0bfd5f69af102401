/* A forward and the backward that takes what it left, on the host device: what the forward writes, and what a backward does that finds none. */
#ifndef FLP_TESTS_HOST_FORWARD_PAIR_H
#define FLP_TESTS_HOST_FORWARD_PAIR_H
#include "gradient_cases.h"

/* Checks a case with_forward, whose gradients are those of the pair run once, and stay: 1 where the forward's outputs are linear_logp's with 0 in the
 * rows that it blanks; where each backward takes one forward, and a backward that finds none, or another's, writes NaN and says so. */
int flp_host_forward_pair_check(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data, char *message, size_t bytes);
#endif
