/* A naive fp64 backward of linear_logp, from the definition, and an estimate of the rounding error of each of its numbers. */
#ifndef FLP_TESTS_GRADIENT_REFERENCE_H
#define FLP_TESTS_GRADIENT_REFERENCE_H
#include "reference.h"

/* One gradient: each element is a sum of n terms dlogit x input.
 *
 * rounding estimates the error of a computation in fp32, with u = 2^-24. Each term adds to it, without regard to sign, the error of its dlogit and, for the n
 * additions, u sqrt(n) of the term. The error of a dlogit is its derivative by z times the error of z (flp_reference.rounding), and 8 u for exp2 and the
 * products of p. With a softcap, 1 - tanh^2 has as large an error as tanh. With a grad_filter_eps, a term that may be skipped adds all of itself.
 *
 * square is sqrt(sum of term^2) over all terms except the target's, whose dlogit stays in fp32. (In grad_hidden, terms of equal dlogit count as one.) If the
 * others are kept in a dtype of unit roundoff v, independent roundings cost v / sqrt(3) of square. In bf16, for a cross-entropy (upstream is given) and for
 * problems with_forward, the forward may leave saved exponentials; square then also counts what is rounded in addition. */
typedef struct {
    int64_t count;
    double *value, *rounding, *square; /* [count] */
} flp_gradient;

typedef struct {
    flp_gradient hidden; /* [rows][D] */
    flp_gradient weight; /* [V][D], whatever the layout */
    flp_gradient bias;   /* [V] */
} flp_gradient_reference;

/* Upstream gradients in fp64, in place of those of args: [rows] each; NULL: zeros. */
typedef struct {
    const double *g_logp, *g_lse, *g_entropy;
    const double *g_sum;         /* by sum_v class_weights[v] z[v] */
    const double *class_weights; /* [V]; NULL: 1 */
    const double *error;         /* the expected error of g_logp */
} flp_gradient_upstream;

/* problem: strides and target dtype are filled in. args: host pointers; only inputs are read, without lse and entropy, which are computed from the logits.
 * upstream: NULL: that of args. forward: from flp_reference_compute with the same inputs. Returns 0 when out of memory. Free with
 * flp_gradient_reference_free. */
int flp_gradient_reference_compute(const flp_linear_logp_backward_problem *problem, const flp_linear_logp_backward_args *args,
                                   const flp_gradient_upstream *upstream, const flp_reference *forward, flp_gradient_reference *reference);
void flp_gradient_reference_free(flp_gradient_reference *reference);

/* 1: an fp32 gradient is within 1e-4 of the reference in each number and within 1e-5 of it as a vector: the bounds that the project set out
 * with. Element (row, column) of `columns` columns is reference element row * row_factor + column * column_factor. */
int flp_gradient_is_close(const flp_gradient *reference, const float *got, int64_t row_factor, int64_t column_factor, int64_t columns);
#endif
