/* A naive fp64 cross-entropy, and the token losses of the tests, each from its formula and with derivatives that were derived by hand. */
#ifndef FLP_TESTS_CROSS_ENTROPY_REFERENCE_H
#define FLP_TESTS_CROSS_ENTROPY_REFERENCE_H
#include "reference.h"

/* Arrays are [rows]. error: the expected error of a loss in fp32. g_error, g_lse_error: those of g_logp and g_lse, which depend on logp and lse.
 *
 * shared: the part of error that the rows have in common. It is u = 2^-24 of the largest logit, because the scale is rounded once for all of them.
 *
 * total_error is the error of the reduced loss if all rows' errors have the same sign; total_deviation if they are independent. */
typedef struct {
    int64_t rows;
    double total, total_error, total_deviation, total_shared; /* of the reduced loss, mean or sum */
    double *loss, *error, *shared;
    double *g_logp, *g_lse, *g_entropy, *g_sum, *g_error, *g_lse_error; /* derivatives of the reduced loss, times g_loss; 0 for rows that do not count */
    double *class_weights;                                              /* [V] */
} flp_cross_entropy_reference;

/* 1: row i is not ignored, and its target is in the vocabulary. */
int flp_cross_entropy_reference_has_part(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args, int64_t i);

/* problem: strides and target dtype are filled in. args: host pointers, those of token inputs and parameters included; only inputs are read. forward: from
 * flp_reference_compute. 0 when out of memory. */
int flp_cross_entropy_reference_compute(const flp_linear_cross_entropy_problem *problem, const flp_linear_cross_entropy_args *args,
                                        const flp_reference *forward, flp_cross_entropy_reference *reference);
void flp_cross_entropy_reference_free(flp_cross_entropy_reference *reference);
#endif
