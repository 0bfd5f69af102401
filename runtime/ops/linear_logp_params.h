/* What linear_logp's kernels take. The device half is templates/common/linear_logp_params.cuh.
 * KEEP IN STEP: linear_logp parameters. */
#ifndef FLP_OPS_LINEAR_LOGP_PARAMS_H
#define FLP_OPS_LINEAR_LOGP_PARAMS_H
#include "plan/split.h"
#include <stdint.h>

/* Tile kernel: (hidden map, weight map, this) on sm_90a, (this) on the portable path; this is passed by value. Launched with
 * min(multiprocessors / cluster, row groups x splits) x cluster blocks. */
typedef struct {
    const void *hidden, *weight, *bias, *target;
    const float *row_temperature; /* [rows] or NULL */
    float *partial;      /* [rows][splits][2]: offset k (an integer; -inf: nothing seen), sum of 2^(z2 - k), z2 = z log2(e) / temperature */
    float *best;         /* [rows][splits][2]: largest logit before softcap, its index (int32 bits); NULL without argmax */
    float *target_logit; /* [rows]: z2 of the target; not written where the target is not in the vocabulary */
    int64_t rows, hidden_stride, weight_stride; /* strides in elements */
    int32_t vocab, hidden_size;
    int32_t target_bytes; /* 4 or 8 */
    float scale;          /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    flp_split split;
    int32_t group;        /* clusters' row blocks that are walked together through the vocabulary, for the L2 */
    float *moment;        /* [rows][splits]: sum of (z2 - k) 2^(z2 - k); NULL without entropy */
    float *logit_sums;    /* [rows][splits]: sum of w[v] z2[v]; NULL where it is not wanted */
    const void *class_weights; /* w [vocab] of the variant's dtype; NULL: 1 */
} flp_linear_logp_params;

/* Combine: ceil(rows / manifest.block_rows) blocks. */
typedef struct {
    const float *partial, *best, *target_logit;
    const void *target;
    float *logp, *lse;                 /* lse may be NULL */
    int32_t *argmax;                   /* may be NULL */
    unsigned long long *target_errors; /* [2]: how many targets were out of range, the first such row (initially 0 and 2^64 - 1) */
    int64_t rows, ignore_index;
    int32_t vocab, target_bytes, splits;
    const float *moment;
    float *entropy;                    /* may be NULL */
    const float *logit_sums;
    float *logit_sum;                  /* [rows]: sum_v w[v] z[v]; not written without logit_sums */
} flp_linear_logp_combine_params;

_Static_assert(sizeof(flp_linear_logp_params) == 160 && sizeof(flp_linear_logp_combine_params) == 128,
               "templates/common/linear_logp_params.cuh disagrees");
#endif
