/* Parameters of logits_logp's kernels. */
#ifndef FLP_PARAMS_LOGITS_LOGP_H
#define FLP_PARAMS_LOGITS_LOGP_H
#include "params/tally.h"
#include "params/types.h"

/* Segments of a row whose sums a block of the forward or the fused kernels holds in shared memory. The sums of a longer row go through scratch memory. */
enum { FLP_LOGITS_SHARED_SEGMENTS = 512 };

/* All kernels of the forward and the backward take this struct, and each reads the fields that it needs. z2 = z log2(e) / temperature. */
typedef struct LogitsLogpParams {
    const void *logits, *target;  /* [logits_rows][logits_stride] elements of the variant's dtype; [rows] */
    const i64 *row_index;         /* [rows]: which row of logits each row of the call reads; NULL: its own */
    const float *row_temperature; /* [rows]; or NULL */
    i64 rows, logits_stride, logits_rows, ignore_index;
    i32 vocab;
    i32 target_bytes; /* 4 or 8 */
    i32 scatter;      /* 1: row i's results go to index row_index[i]; 0: to index i */
    i32 ignores;      /* 1: rows whose target is ignore_index are ignored; 0: no row is */
    float scale;      /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    i32 segments, parts, team_log2; /* runtime/operators/logits/logits_logp_plan.h */
    float *logp, *lse, *entropy;    /* [rows]: results, or NULL */
    i32 *argmax;
    flp_tally *target_errors; /* counts the bad targets and indices and keeps the first such row */
    /* [rows][segments][2]: the segment's origin (a logit; -inf: all are -inf), and the sum of 2^(z2 - k) without the target's term, where k is the integer
     * nearest to the origin's z2. */
    float *partial;
    float *moment;     /* [rows][segments]: sum of 2^(z2 - k) (z2 - k) */
    float *best;       /* [rows][segments][2]: the largest logit before the softcap, and its column (the bits of an int32) */
    float *normaliser; /* [rows][4]: the row's origin, the log2 of its sum of 2^(z2 - k), its entropy and its logp; or NULL */
    const float *g_logp, *g_lse, *g_entropy, *given_lse, *given_entropy, *given_logp; /* [rows]: inputs of the gradients; all but g_logp may be NULL */
    void *grad_logits;                                                                /* [logits_rows][grad_stride] elements of the variant's dtype */
    i64 grad_stride;
} flp_logits_logp_params;

FLP_PARAMS_BYTES(flp_logits_logp_params, 240);
#endif
