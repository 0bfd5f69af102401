/* One row in fp64: its statistics and derivatives, and what arithmetic in fp32 may cost each of them.
 *
 * What fp32 knows of a logit is an interval: `logit` rounded to fp32, give or take `error`. Everything else follows from that with u = 2^-24:
 *
 * - z = softcap(logit) / temperature is found by one product with a rounded constant, 3 u of the larger of |z| and the row's largest |z|; equal
 *   logits keep equal z, whatever these are. tanh costs 8 u of the capped logit, z[v]'s and the largest's. e[v] is the sum, what z[v] may be
 *   off by beside the row's largest.
 * - S, a sum of positive terms, costs 24 u of itself (sum_roundings), exp2 and log2 included. lse is off by log(sum_v p[v] exp(e[v])) and by that.
 * - logp = -log1p(S' / exp(z[t])) where S' is of the others: it is off by (1 - p[t]) (e[t] + the others' mean e + 24 u), and by roundings
 *   of itself. So is 1 - p[t]. That is the promise for likely targets: nothing cancels.
 * - entropy is off by sum_v p |log p + H| e[v], its derivative by z, by roundings of the terms that it is made of, and by two of the distance between
 *   the row's offset and its largest z: the moment and the sum's logarithm both hold it. The kernels keep it below 60 binary orders.
 * - Saved exponentials of the target's others are 2^60 at most, and what they are multiplied by is 0 below 2^-126: where the others' part of the row's
 *   sum is below 2^-64, nothing may be left of their derivatives. */
#ifndef FLP_TESTS_RANDOM_ROW_H
#define FLP_TESTS_RANDOM_ROW_H
#include <stdint.h>

typedef struct {
    const double *logit; /* [vocab] */
    const double *error; /* [vocab], or NULL: they are exact */
    int64_t vocab;
    int64_t target; /* -1: none */
    double softcap, temperature;
} flp_random_row_inputs;

typedef struct {
    double lse, logp, entropy, largest; /* largest: z. NaN: of a row with NaN or +inf */
    double log_sum;                     /* lse - largest, with all its digits */
    double rest;                        /* 1 - p[target] */
    int64_t argmax;                     /* -1: any */
    double lse_error, logp_error, entropy_error;
    double sum_error; /* relative, of the sum beside the largest term */
} flp_random_row;

/* What a row's gradients come from. */
typedef struct {
    double logp, lse, entropy, sum; /* sum: by sum_v class_weights[v] z[v] */
    double error, lse_error;        /* what logp and lse may be off by */
    const double *class_weights;    /* NULL: 1 */
    int bare_lse;                   /* p comes from one fp32 lse */
    int of_lse;                     /* these come from lse too */
    int bare_target;                /* 1 - p[target] comes from that p, not from logp */
} flp_random_row_upstream;

/* z, e: [vocab] each, filled. */
void flp_random_row_compute(const flp_random_row_inputs *inputs, double *z, double *e, flp_random_row *row);

/* derivative, error: [vocab] each, by the logit; of a target in the vocabulary. */
void flp_random_row_differentiate(const flp_random_row_inputs *inputs, const flp_random_row *row, const double *z, const double *e,
                                  const flp_random_row_upstream *upstream, double *derivative, double *error);

/* 1 where rounding may have put entry v first. */
int flp_random_row_may_be_first(const flp_random_row_inputs *inputs, const flp_random_row *row, int64_t v);
#endif
