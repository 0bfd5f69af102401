/* What linear_logp's backward keeps of the valid rows. */
#ifndef FLP_PARAMS_ROWS_H
#define FLP_PARAMS_ROWS_H
#include "params/types.h"

/* A row's target apart from its other logits: of all derivatives that by the target's logit is mostly the largest, and were it rounded with the
 * others, its error would be that of the gradients. So it stays fp32, is 0 among the others, and its part of each product is added in fp32. */
typedef struct RowTarget {
    i32 target; /* -1: no row */
    float derivative;
} flp_row_target;

/* The rows in the order of their targets, those of one target in their own. */
typedef struct SortedTarget {
    i32 target;
    i32 at;  /* among the valid rows */
    i32 row; /* in hidden */
    i32 unused;
} flp_sorted_target;

/* What the derivatives by a row's logits are made of, with x = scale z[v] - offset and an integer offset:
 *   dz[v] = uniform_coefficient w[v] + 2^x (prob_coefficient + entropy_coefficient x) + [v = target] target_coefficient
 * and by the target's logit, where is_whole, uniform_coefficient w[v] + target_coefficient alone.
 *
 * Before that is known, a forward hands over in its place what it knows of the row: in offset and prob_coefficient the log2 of its sum, which is
 * theirs, and in target_coefficient logp. */
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
