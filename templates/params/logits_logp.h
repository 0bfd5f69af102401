/* What logits_logp's kernels take. */
#ifndef FLP_PARAMS_LOGITS_LOGP_H
#define FLP_PARAMS_LOGITS_LOGP_H
#include "params/tally.h"
#include "params/types.h"

/* Segments whose sums a block of the forward or the fused kernels holds: longer rows meet in scratch. */
enum { FLP_LOGITS_SHARED_SEGMENTS = 512 };

/* One for all kernels of the forward and the backward; each reads what it needs. */
typedef struct LogitsLogpParams {
    const void *logits, *target;  /* [logits_rows][logits_stride] elements of the variant's dtype; [rows] */
    const i64 *row_index;         /* [rows]: the row of logits; or NULL: the row itself */
    const float *row_temperature; /* [rows]; or NULL */
    i64 rows, logits_stride, logits_rows, ignore_index;
    i32 vocab;
    i32 target_bytes; /* 4 or 8 */
    i32 scatter;      /* 1: results lie at row_index[i] */
    i32 ignores;      /* 1: rows whose target is ignore_index are ignored; 0: none is */
    float scale;      /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    i32 segments, parts, team_log2; /* runtime/operators/logits/logits_logp_plan.h */
    float *logp, *lse, *entropy;    /* [rows]: results, or NULL */
    i32 *argmax;
    flp_tally *target_errors; /* how many targets or indices were bad, the first such row */
    float *partial;           /* [rows][segments][2]: origin (a logit; -inf: nothing but -inf) and sum of 2^(z2 - k) without the target,
                        * where z2 is z log2(e) / temperature and k the integer nearest to the origin's */
    float *moment;            /* [rows][segments]: sum of 2^(z2 - k) (z2 - k) */
    float *best;              /* [rows][segments][2]: largest logit before the softcap, its column (int32 bits) */
    float *normaliser;        /* [rows][4]: the row's origin, log2 of its sum beside k, its entropy, its logp; or NULL */
    const float *g_logp, *g_lse, *g_entropy, *given_lse, *given_entropy, *given_logp; /* [rows]: of gradients; all but g_logp may be NULL */
    void *grad_logits;                                                                /* [logits_rows][grad_stride] elements of the variant's dtype */
    i64 grad_stride;
} flp_logits_logp_params;

FLP_PARAMS_BYTES(flp_logits_logp_params, 240);
#endif
