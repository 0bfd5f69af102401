/* What logits_logp's kernels take. The device half is templates/common/logits_logp_params.cuh.
 * KEEP IN STEP: logits_logp parameters. */
#ifndef FLP_OPS_LOGITS_LOGP_PARAMS_H
#define FLP_OPS_LOGITS_LOGP_PARAMS_H
#include <stdint.h>

/* One for all four kernels, passed by value; each reads what it needs. */
typedef struct {
    const void *logits, *target;
    const int64_t *row_index;     /* or NULL */
    const float *row_temperature; /* or NULL */
    int64_t rows, logits_stride, logits_rows, ignore_index;
    int32_t vocab;
    int32_t target_bytes;         /* 4 or 8 */
    int32_t scatter;              /* 1: results lie at row_index[i] */
    int32_t ignores;              /* 1: rows whose target is ignore_index are ignored; 0: none is */
    float scale;                  /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    int32_t segments, parts, team_log2; /* plan/logits_logp_shape.h */
    float *logp, *lse, *entropy;  /* results, or NULL */
    int32_t *argmax;
    unsigned long long *target_errors; /* an flp_tally: how many targets or indices were bad, the first such row */
    float *partial;    /* [rows][segments][2]: origin (a logit; -inf: nothing but -inf) and sum of 2^(z2 - k) without the target, where z2 is z log2(e) / temperature
                        * and k the integer nearest to the origin's */
    float *moment;     /* [rows][segments]: sum of 2^(z2 - k) (z2 - k) */
    float *best;       /* [rows][segments][2]: largest logit before the softcap, its column (int32 bits) */
    float *normaliser; /* [rows][4]: the row's origin, log2 of its sum beside k, its entropy, its logp; or NULL */
    const float *g_logp, *g_lse, *g_entropy, *given_lse, *given_entropy, *given_logp; /* of gradients; all but g_logp may be NULL */
    void *grad_logits;
    int64_t grad_stride;
} flp_logits_logp_params;

_Static_assert(sizeof(flp_logits_logp_params) == 240, "templates/common/logits_logp_params.cuh disagrees");
#endif
