/* What linear_cross_entropy's loss kernel takes. The device half is templates/common/token_loss_params.cuh.
 * KEEP IN STEP: token loss parameters. */
#ifndef FLP_OPS_LINEAR_CROSS_ENTROPY_PARAMS_H
#define FLP_OPS_LINEAR_CROSS_ENTROPY_PARAMS_H
#include <stdint.h>

/* The rows' losses and derivatives, and their sum: one block. */
typedef struct {
    const void *target;
    const float *logp, *lse, *entropy; /* [rows]; entropy: NULL where the loss uses none */
    const float *logit_sum;      /* [rows] sum_v w[v] z[v]; NULL where the loss does not use uniform */
    const void *class_weights;   /* [vocab]; or NULL */
    const float *token_weights;  /* [rows]; or NULL */
    const float *g_loss;         /* [rows], or [1] where `reduces`; or NULL: 1 */
    const float *input[8];       /* [rows], as many as the loss takes */
    float parameter[8];
    float *loss;                 /* [rows], or [1] where `reduces` */
    float *g_logp, *g_lse, *g_entropy, *g_sum; /* [rows]; NULL where not wanted */
    int64_t ignore_index;
    int32_t rows, vocab, target_bytes;
    int32_t class_weight_dtype;  /* flp_dtype */
    int32_t reduces, divides;    /* 1: sum or mean; mean */
    const int32_t *place;        /* [rows]: where a row stands among those that count; -1: it does not */
    int32_t first_place, places; /* those that stand here, and with the first place 0 those that do not count; of the others, no more than a mean needs */
    int32_t adds;                /* 1: the sum is added to *loss */
    int32_t ignores;             /* 1: rows whose target is ignore_index are ignored; 0: none is */
} flp_token_loss_params;

_Static_assert(sizeof(flp_token_loss_params) == 256, "templates/common/token_loss_params.cuh disagrees");
#endif
