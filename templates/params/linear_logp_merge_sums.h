/* Parameters of linear_logp_merge_sums: ceil(rows / threads) blocks. */
#ifndef FLP_PARAMS_LINEAR_LOGP_MERGE_SUMS_H
#define FLP_PARAMS_LINEAR_LOGP_MERGE_SUMS_H
#include "params/linear_logp_shard.h"

typedef struct LinearMergeSumsParams {
    const flp_linear_partial *partials; /* [ranks][rows] */
    const void *target;
    float *logit_sum;     /* [rows]: sum of w[v] z[v]; or NULL */
    float *lse, *entropy; /* [rows]: as linear_logp_merge has written them; or NULL */
    i64 rows, ignore_index, vocab_total;
    i32 ranks, target_bytes;
    i32 ignores;
    i32 unused;
} flp_linear_merge_sums_params;

FLP_PARAMS_BYTES(flp_linear_merge_sums_params, 80);
#endif
