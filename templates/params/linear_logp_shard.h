/* What a shard of the vocabulary leaves of a row: FLP_PARTIAL_FLOATS of runtime/fusedlogp.h, which says it in full. */
#ifndef FLP_PARAMS_LINEAR_LOGP_SHARD_H
#define FLP_PARAMS_LINEAR_LOGP_SHARD_H
#include "params/types.h"

typedef struct LinearPartial {
    float offset, sum;   /* k, an integer, -inf: nothing but -inf; sum of 2^(z2 - k) but for the target's */
    float target, scale; /* the target's z, and what makes it z2; -inf and 0: it lies elsewhere */
    float moment;        /* sum of (z2 - k) 2^(z2 - k); 0 without entropy */
    float largest;       /* logit before softcap; -inf without argmax */
    i32 largest_index;   /* in the whole vocabulary; FLP_NO_INDEX: none */
    float logit_sum;     /* sum of w[v] z[v]; 0 where it is not wanted */
} flp_linear_partial;

enum { FLP_NO_INDEX = 0x7fffffff };

FLP_PARAMS_BYTES(flp_linear_partial, 32);
#endif
