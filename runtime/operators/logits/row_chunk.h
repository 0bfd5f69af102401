/* A chunk of one row of logits: its sums, and its gradients. */
#ifndef FLP_OPERATORS_LOGITS_ROW_CHUNK_H
#define FLP_OPERATORS_LOGITS_ROW_CHUNK_H
#include "fusedlogp.h"

enum { FLP_ROW_CHUNK_COLUMNS = 8192 }; /* a fixed number: how a row is cut decides its bits */

/* With z = softcap(logit) and d = (z - origin) scale: sum of 2^d, and of that times d, of all logits but the target. Taking the difference first
 * loses nothing, however large the logits are. */
typedef struct {
    double sum, moment;
    float origin;  /* the largest z; -inf: nothing but -inf and NaN seen */
    float largest; /* logit before the softcap; NaN never wins */
    int32_t largest_index;
} flp_logits_sums;

typedef struct {
    float scale;   /* log2(e) / temperature */
    float softcap; /* 0: none */
} flp_logits_transform;

/* What a row's gradients are made of: dz[v] = 2^d (power + moment d), or `target` where v is the target. */
typedef struct {
    float origin, log2_sum; /* d is no more than log2_sum, whatever a given lse was rounded to */
    float power, moment, target;
} flp_logits_factors;

/* softcap(logit), softcap 0: the logit itself; to the bit what the sums take of an equal one. */
float flp_row_chunk_soften(float logit, float softcap);
/* count <= FLP_ROW_CHUNK_COLUMNS logits; first: the column of the first one; target: the target's place in the chunk, or -1. */
void flp_row_chunk_sum(flp_dtype dtype, const void *logits, int count, int32_t first, int target, const flp_logits_transform *transform, flp_logits_sums *sums);
/* The sums of both parts; `later` holds larger columns. scale: log2(e) / temperature. */
void flp_row_chunk_merge(flp_logits_sums *sums, const flp_logits_sums *later, double scale);
/* gradients may be logits. */
void flp_row_chunk_differentiate(flp_dtype dtype, const void *logits, int count, const flp_logits_transform *transform, const flp_logits_factors *factors,
                                 int target, void *gradients);
#endif
