/* A naive fp64 linear_logp with which every path is compared, and the measure of the error. It shares no code with the library. */
#ifndef FLP_TESTS_REFERENCE_H
#define FLP_TESTS_REFERENCE_H
#include "fusedlogp.h"

typedef struct {
    int64_t rows, vocab;
    double *logits;     /* [rows][vocab], before softcap and temperature */
    double *logp, *lse; /* [rows]; a +inf logit makes both NaN; a row of -inf alone has lse -inf and logp NaN */
    double *entropy;    /* [rows]; NaN where lse is not finite */
    int64_t *argmax;    /* [rows]: smallest index of the largest logit; -1: any index will do, since the row holds NaN or +inf */
    double *rounding;   /* [rows]: the expected error of logp and lse in fp32, see flp_reference_compute */
    double *entropy_rounding;
    double *largest; /* [rows]: the largest finite |z| */
    int knows_logp; /* set by the caller, for gradients: 1: the path has logp, so the derivative by the target's logit must be right relative to its own size */
    double *logp_rounding;        /* [rows]: logp's error if it is known separately; NULL: rounding */
    int64_t bad_count, bad_first; /* out-of-range targets; -1 where there is none */
} flp_reference;

/* problem: strides and target dtype are filled in. args: host pointers; only inputs are read.
 *
 * rounding[i] is an estimate of the error of a computation that accumulates in fp32, with u = 2^-24:
 *     u ((0.41 sqrt(D) S + 3 M) / temperature + 8)
 * S is the row's largest |hidden . weight| (or ||hidden|| ||weight|| / sqrt(D), where terms cancel), M its largest finite |logit|. Partial sums that wander to
 * S over D additions, each of which is rounded with a deviation of u / sqrt(3) of the sum, have an error of u S sqrt(D / 6) = 0.41 u sqrt(D) S at the end.
 * Adding the bias, rounding the scale and multiplying by it cost one u of the logit each; exp2, and log2 of the sum, 4 u each.
 *
 * The entropy's derivative by z[v] is -p (log p + H): in entropy_rounding[i] the part of rounding[i] that comes from the logits is multiplied by
 * sum_v p |log p + H|, and 8 is replaced by 8 (1 + H), for exp2, log2 and the products p log p.
 *
 * Returns 0 when out of memory. Free with flp_reference_free. */
int flp_reference_compute(const flp_linear_logp_problem *problem, const flp_linear_logp_args *args, flp_reference *reference);
void flp_reference_free(flp_reference *reference);

typedef struct {
    double norm;        /* ||got - want|| over the elements that are finite in both */
    double relative;    /* the same divided by ||want||; 0 where both are 0 */
    double largest;     /* max |got - want| */
    int64_t largest_at; /* where; -1: nothing finite */
    int64_t unlike_at;  /* first index at which one is NaN or infinite and the other is not the same; -1: none */
} flp_reference_error;

void flp_reference_compare(const float *got, const double *want, int64_t count, flp_reference_error *error);

/* Whether a call with these arguments ignores rows with this target. */
int flp_reference_ignores(unsigned flags, int64_t ignore_index, int64_t target);

/* Element `index` of a typed array that need not be aligned. */
double flp_reference_decode(flp_dtype dtype, const void *data, int64_t index);
/* Stores value, truncated (not rounded) to the dtype; for FLP_F16 magnitudes up to 60000. */
void flp_reference_encode(flp_dtype dtype, double value, void *data, int64_t index);
#endif
