/* A forward and its backward as two calls of one plan, on the host device: what the forward writes, and what a backward does without its forward. */
#ifndef FLP_TESTS_HOST_FORWARD_PAIR_H
#define FLP_TESTS_HOST_FORWARD_PAIR_H
#include "gradient_cases.h"

/* Checks a case with_forward. data has the gradients of one execution of the pair, and has them again afterwards. 1: the forward's outputs are those of
 * linear_logp, with 0 in the rows that it blanks; each backward takes the results of one forward; and a backward that finds none, or those of another forward,
 * writes NaN and reports it. Else 0 and a message. */
int flp_host_forward_pair_check(flp_context *context, const flp_gradient_case *c, flp_gradient_case_data *data, char *message, size_t bytes);
#endif
