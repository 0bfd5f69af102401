/* What linear_logp's backward keeps of each valid row. */
#ifndef FLP_PARAMS_ROWS_H
#define FLP_PARAMS_ROWS_H
#include "params/types.h"

/* A row's target and the derivative by the target's logit. That derivative is mostly the largest of its row: rounded to 16 bits like the others, its error
 * would dominate the gradients' errors. So it is kept in fp32, its element among the others is 0, and its part of each product is added in fp32. */
typedef struct RowTarget {
    i32 target; /* -1: no row */
    float derivative;
} flp_row_target;

/* An element of the valid rows sorted by target. Rows with the same target keep their order. */
typedef struct SortedTarget {
    i32 target;
    i32 at;  /* index among the valid rows */
    i32 row; /* index in hidden */
    i32 unused;
} flp_sorted_target;

/* The coefficients from which the derivatives by a row's logits are computed. With x = scale z[v] - offset, where offset is an integer, and class weights w:
 *   dz[v] = uniform_coefficient w[v] + 2^x (prob_coefficient + entropy_coefficient x) + [v = target] target_coefficient
 * With is_whole, the derivative by the target's logit is uniform_coefficient w[v] + target_coefficient, without the term in 2^x.
 *
 * Until linear_logp_backward_rows has computed these, the struct holds what the forward hands over: offset + prob_coefficient is the log2 of the row's sum, and
 * target_coefficient is logp. */
typedef struct RowGradient {
    float scale, offset, prob_coefficient, entropy_coefficient, target_coefficient;
    i32 target;
    float uniform_coefficient;
    i32 is_whole;
} flp_row_gradient;

FLP_PARAMS_BYTES(flp_row_target, 8);
FLP_PARAMS_BYTES(flp_sorted_target, 16);
FLP_PARAMS_BYTES(flp_row_gradient, 32);
#endif
