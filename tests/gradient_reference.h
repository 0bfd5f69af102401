/* A naive fp64 backward of linear_logp, from the definition, and what rounding may cost each of its numbers. */
#ifndef FLP_TESTS_GRADIENT_REFERENCE_H
#define FLP_TESTS_GRADIENT_REFERENCE_H
#include "reference.h"

/* One gradient: an element is a sum of terms dlogit x input.
 *
 * rounding estimates the error of a computation in fp32, with u = 2^-24: of each term what its dlogit is off by, and u sqrt(n) of it
 * for n additions; both added over the terms without regard to sign. A dlogit is off by its derivative by z times what rounding costs z
 * (flp_reference.rounding), and by 8 u for exp2 and the products of p; of a capped logit, 1 - tanh^2 is off as much as tanh is.
 * With a grad_filter_eps, terms that may be passed over count whole.
 * square is sqrt(sum of term^2), of all terms but the target's, whose dlogit stays in fp32 (in grad_hidden, terms of equal dlogit count as one): where the others are kept in a dtype of unit roundoff
 * v, independent roundings cost v / sqrt(3) of it. In bf16, of a cross-entropy (upstream is given) or with_forward, where the forward may leave
 * saved exponentials, what more is rounded then counts too. */
typedef struct {
    int64_t count;
    double *value, *rounding, *square; /* [count] */
} flp_gradient;

typedef struct {
    flp_gradient hidden; /* [rows][D] */
    flp_gradient weight; /* [V][D], whatever the layout */
    flp_gradient bias;   /* [V] */
} flp_gradient_reference;

/* Upstream gradients in fp64 instead of args': [rows] each, NULL for zeros. */
typedef struct {
    const double *g_logp, *g_lse, *g_entropy;
    const double *g_sum;         /* by sum_v class_weights[v] z[v] */
    const double *class_weights; /* [V]; NULL: 1 */
    const double *error;         /* what g_logp may be off by */
} flp_gradient_upstream;

/* problem: strides and target dtype filled in; args: host pointers, of which only the inputs are read. lse and entropy are those of the
 * logits, not args'. upstream: NULL for args'. forward: flp_reference_compute's of the same inputs.
 * Returns 0 when out of memory. Free with flp_gradient_reference_free. */
int flp_gradient_reference_compute(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                   const flp_gradient_upstream *upstream, const flp_reference *forward, flp_gradient_reference *reference);
void flp_gradient_reference_free(flp_gradient_reference *reference);
#endif
