/* A naive fp64 linear_logp to hold every path against, and the measure of the error. Shares no code with the library. */
#ifndef FLP_TESTS_REFERENCE_H
#define FLP_TESTS_REFERENCE_H
#include "fusedlogp.h"

typedef struct {
    int64_t rows, vocab;
    double *logits;     /* [rows][vocab], before softcap and temperature */
    double *logp, *lse; /* [rows]; a +inf logit makes both NaN, nothing but -inf lse -inf and logp NaN */
    double *entropy;    /* [rows]; NaN where lse is not finite */
    int64_t *argmax;    /* [rows]: smallest index of the largest logit; -1: the row holds NaN or +inf, any index will do */
    double *rounding;   /* [rows]: what rounding to fp32 may cost logp and lse, see flp_reference_compute */
    double *entropy_rounding;
    double *largest;              /* [rows]: the largest finite |z| */
    int knows_logp;               /* for gradients: 1: the path has logp, and owes the derivative by the target's logit in its own digits; set by the caller */
    double *logp_rounding;        /* [rows]: logp's own where it is known apart; NULL: rounding */
    int64_t bad_count, bad_first; /* out-of-range targets; -1 where there is none */
} flp_reference;

/* problem: strides and target dtype filled in; args: host pointers, of which only the inputs are read.
 *
 * rounding[i] is an estimate of the error of a computation that accumulates in fp32, with u = 2^-24:
 *     u ((0.41 sqrt(D) S + 3 M) / temperature + 8)
 * S, M: the largest |hidden . weight| (or ||hidden|| ||weight|| / sqrt(D), where terms cancel) and the largest finite
 * |logit| of the row. Partial sums that wander to S over D additions, each rounded with a deviation of u / sqrt(3) of it,
 * end u S sqrt(D / 6) = 0.41 u sqrt(D) S off. Adding the bias, the scale's own rounding and multiplying by it take one u
 * of the logit each; exp2 and log2 of the sum 4 u each.
 * The entropy's derivative by z[v] is -p (log p + H): entropy_rounding[i] is rounding[i] with sum_v p |log p + H| as a factor of the part that
 * the logits cost, and with 8 (1 + H) for exp2, log2 and the products p log p.
 * Returns 0 when out of memory. Free with flp_reference_free. */
int flp_reference_compute(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, flp_reference *reference);
void flp_reference_free(flp_reference *reference);

typedef struct {
    double norm;        /* ||got - want|| over what is finite in both */
    double relative;    /* the same divided by ||want||; 0 where both are 0 */
    double largest;     /* max |got - want| */
    int64_t largest_at; /* where; -1: nothing finite */
    int64_t unlike_at;  /* first place where one is NaN or infinite and the other is not the same; -1: none */
} flp_reference_error;

void flp_reference_compare(const float *got, const double *want, int64_t count, flp_reference_error *error);

/* Whether a call with these arguments ignores the rows of that target. */
int flp_reference_ignores(unsigned flags, int64_t ignore_index, int64_t target);

/* Element `index` of a typed array that need not be aligned. */
double flp_reference_decode(flp_dtype dtype, const void *data, int64_t index);
/* Stores value, cut (not rounded) to what the dtype holds; magnitudes up to 60000 for FLP_F16. */
void flp_reference_encode(flp_dtype dtype, double value, void *data, int64_t index);
#endif
