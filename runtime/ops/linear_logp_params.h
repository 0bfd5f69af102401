/* What linear_logp's kernels take. The device half is templates/common/linear_logp_params.cuh.
 * KEEP IN STEP: linear_logp parameters. */
#ifndef FLP_OPS_LINEAR_LOGP_PARAMS_H
#define FLP_OPS_LINEAR_LOGP_PARAMS_H
#include "plan/split.h"
#include <stdint.h>

/* Tile kernel: (hidden map, weight map, of linear_logp_stash the stash' map, this) on sm_90a, (this) on the portable path; this is passed by
 * value. Launched with min(multiprocessors / cluster, row groups x splits) x cluster blocks. */
typedef struct {
    const void *hidden, *weight, *bias, *target;
    const float *row_temperature; /* [rows] or NULL */
    float *partial;      /* [rows][splits][2]: offset k (an integer; -inf: nothing seen), sum of 2^(z2 - k) but for the target's, z2 = z log2(e) / temperature */
    float *best;         /* [rows][splits][2]: largest logit before softcap, its index (int32 bits); NULL without argmax */
    float *target_logit; /* [rows][2]: the target's z, and what makes it z2; not written where the target is not in the vocabulary */
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
    const int32_t *row, *row_count; /* of compact variants: [rows] where a row stands in target and row_temperature; how many rows there are, <= rows */
    /* Of linear_logp_stash: */
    float *offset;              /* [rows]: the integer k of the row's stash, 2^(z2 - k) */
    int32_t *overflow;          /* [rows]: 1: the row has terms too large for that */
    int32_t *block_overflow;    /* [1 + row blocks]: 1: some row has; some row of the block has */
    int32_t phase;              /* flp_stash_phase */
    int32_t stash_columns;      /* what is kept: those before; a multiple of the tile's */
    void *stash;                /* bf16 [rows][stash_columns]; sm_90a takes a tensor map for it */
} flp_linear_logp_params;

/* What a launch of linear_logp_stash does. */
typedef enum {
    FLP_STASH_OFFSETS, /* from the vocabulary's first tile, the offsets; the flags are cleared */
    FLP_STASH_KEEP,    /* all of the forward */
    FLP_STASH_AGAIN    /* once more for blocks of which a row overflowed: the combine has corrected its offset */
} flp_stash_phase;

/* Combine: ceil(rows / manifest.block_rows) blocks. */
typedef struct {
    const float *partial, *best, *target_logit;
    const void *target;
    float *logp, *lse;                 /* lse may be NULL */
    int32_t *argmax;                   /* may be NULL */
    unsigned long long *target_errors; /* an flp_tally: how many targets were out of range, the first such row */
    int64_t rows, ignore_index;
    int32_t vocab, target_bytes, splits;
    int32_t ignores;                   /* 1: rows whose target is ignore_index are ignored; 0: none is */
    const float *moment;
    float *entropy;                    /* may be NULL */
    const float *logit_sums;
    float *logit_sum;                  /* [rows]: sum_v w[v] z[v]; not written without logit_sums */
    const int32_t *place;              /* [rows]: where the row stands in partial and so on, -1: nowhere, it has no part; NULL: at its own place */
    float *offset;                     /* with overflow and block_overflow those of linear_logp_stash, or NULL */
    int32_t *overflow, *block_overflow;
    int32_t block_rows;                /* of one block_overflow */
    int32_t blanks_others;             /* 1: rows that have no part get lse, entropy and logit_sum 0 */
    int32_t first_place, places;       /* with place: rows that stand elsewhere are left alone; partial and what else goes by the place begins here */
    void *gradient;                    /* [places] RowGradient (templates/common/row_gradient.cuh): what is handed over to the backward; or NULL */
} flp_linear_logp_combine_params;

_Static_assert(sizeof(flp_linear_logp_params) == 216 && sizeof(flp_linear_logp_combine_params) == 184,
               "templates/common/linear_logp_params.cuh disagrees");
#endif
