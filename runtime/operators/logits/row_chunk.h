/* A chunk of one row of logits: its sums, and its gradients. */
#ifndef FLP_OPERATORS_LOGITS_ROW_CHUNK_H
#define FLP_OPERATORS_LOGITS_ROW_CHUNK_H
#include "fusedlogp.h"

enum { FLP_ROW_CHUNK_COLUMNS = 8192 }; /* a fixed number, because how a row is cut decides its bits */

/* With z = softcap(logit) and d = (z - origin) scale: the sums of 2^d and of d 2^d over all logits except the target's. Because z - origin is computed before
 * it is multiplied by scale, it loses no digits, however large the logits are. */
typedef struct {
    double sum, moment;
    float origin;  /* the largest z; -inf: all are -inf or NaN */
    float largest; /* the largest logit, before the softcap; a NaN is never the largest */
    int32_t largest_index;
} flp_logits_sums;

typedef struct {
    float scale;   /* log2(e) / temperature */
    float softcap; /* 0: none */
} flp_logits_transform;

/* The coefficients of a row's gradients: dz[v] = 2^d (power + moment d), or `target` where v is the target. */
typedef struct {
    float origin, log2_sum; /* d is limited to log2_sum, which it may exceed where a given lse was rounded */
    float power, moment, target;
} flp_logits_factors;

/* softcap(logit), with the same bits as in the sums; with softcap 0, the logit itself. */
float flp_row_chunk_soften(float logit, float softcap);
/* The sums of count <= FLP_ROW_CHUNK_COLUMNS logits. first: the column of the first one; target: the target's index in the chunk, or -1. */
void flp_row_chunk_sum(flp_dtype dtype, const void *logits, int count, int32_t first, int target, const flp_logits_transform *transform, flp_logits_sums *sums);
/* Adds the sums of another chunk, `later`, which has larger columns. scale: log2(e) / temperature. */
void flp_row_chunk_merge(flp_logits_sums *sums, const flp_logits_sums *later, double scale);
/* The gradients of a chunk. gradients may be logits. */
void flp_row_chunk_differentiate(flp_dtype dtype, const void *logits, int count, const flp_logits_transform *transform, const flp_logits_factors *factors,
                                 int target, void *gradients);
#endif
