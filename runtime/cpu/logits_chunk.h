/* A chunk of one row of logits: its sums, and its gradients. */
#ifndef FLP_CPU_LOGITS_CHUNK_H
#define FLP_CPU_LOGITS_CHUNK_H
#include "fusedlogp.h"

enum { FLP_LOGITS_CHUNK_COLUMNS = 8192 }; /* a fixed number: how a row is cut decides its bits */

/* With z2 = log2(e) / temperature * softcap(logit): sum of 2^(z2 - offset), and of that times (z2 - offset). The offset is an integer, so that
 * changing it rounds nothing. */
typedef struct {
    double sum, moment;
    float offset; /* -FLT_MAX: nothing but -inf seen */
    float largest; /* logit before the softcap; NaN never wins */
    int32_t largest_index;
} flp_logits_sums;

typedef struct {
    float scale;   /* log2(e) / temperature */
    float softcap; /* 0: none */
} flp_logits_transform;

/* What a row's gradients are made of: dz[v] = 2^(z2 - offset) (power + moment (z2 - offset)), + target where v is the target. */
typedef struct {
    float offset, power, moment, target;
} flp_logits_factors;

/* count <= FLP_LOGITS_CHUNK_COLUMNS logits; first: the column of the first one. */
void flp_logits_chunk_sum(flp_dtype dtype, const void *logits, int count, int32_t first, const flp_logits_transform *transform,
                          flp_logits_sums *sums);
/* The sums of both parts; `later` holds larger columns. */
void flp_logits_chunk_merge(flp_logits_sums *sums, const flp_logits_sums *later);
/* target: the target's place in the chunk, or -1. gradients may be logits. */
void flp_logits_chunk_differentiate(flp_dtype dtype, const void *logits, int count, const flp_logits_transform *transform,
                                    const flp_logits_factors *factors, int target, void *gradients);
#endif
