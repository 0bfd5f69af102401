/* The problem: its rules, its defaults and its canonical string. */
#ifndef FLP_PLAN_PROBLEM_H
#define FLP_PLAN_PROBLEM_H
#include "fusedlogp.h"

enum { FLP_PROBLEM_TEXT_BYTES = 256 }; /* holds every canonical string */

/* The most rows of one call: row blocks x splits stay below 2^31 in the kernels' schedule. */
#define FLP_PROBLEM_ROWS_MAX (INT64_C(1) << 28)

/* Checks every field and fills in the defaults: strides, pointer_alignment (at most 16: more changes nothing), target_dtype.
 * FLP_BAD_ARGUMENT names the field, what it got and what was wanted. */
flp_status flp_problem_normalize(const flp_linear_logp_problem *problem, flp_linear_logp_problem *normal);

/* Bytes of an element of hidden and weight. */
int flp_problem_element_bytes(const flp_linear_logp_problem *normal);
#endif
