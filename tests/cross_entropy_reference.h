/* A naive fp64 cross-entropy, and the token losses of the tests, each from its formula and with derivatives by hand. */
#ifndef FLP_TESTS_CROSS_ENTROPY_REFERENCE_H
#define FLP_TESTS_CROSS_ENTROPY_REFERENCE_H
#include "reference.h"

/* [rows] each. error: what a loss in fp32 may be off by; g_error, g_lse_error: what its g_logp and g_lse may, since these depend on logp
 * and lse themselves.
 * shared: the part of error that rows have in common, u of the largest logit: the scale is rounded once for all of them.
 * total_error is what the rows' errors amount to where all are the same way; total_deviation, where they are independent. */
typedef struct {
    int64_t rows;
    double total, total_error, total_deviation, total_shared; /* mean or sum; those of the reduction */
    double *loss, *error, *shared;
    double *g_logp, *g_lse, *g_entropy, *g_sum, *g_error, *g_lse_error; /* by the reduced loss, times g_loss; 0 of rows that do not count */
    double *class_weights;                                              /* [V] */
} flp_cross_entropy_reference;

/* 1: row i is neither ignored nor its target bad. */
int flp_cross_entropy_reference_has_part(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, int64_t i);

/* problem: strides and target dtype filled in; args: host pointers, token inputs and parameters among them, of which only the inputs are
 * read. forward: flp_reference_compute's. 0 when out of memory. */
int flp_cross_entropy_reference_compute(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args,
                                        const flp_reference *forward, flp_cross_entropy_reference *reference);
void flp_cross_entropy_reference_free(flp_cross_entropy_reference *reference);
#endif
