/* What linear_cross_entropy's loss kernel takes. */
#ifndef FLP_PARAMS_TOKEN_LOSS_H
#define FLP_PARAMS_TOKEN_LOSS_H
#include "params/types.h"

/* The most that a token loss takes, and operations of it and its derivatives. The generator reads these numbers here. */
enum { FLP_TOKEN_INPUTS = 8, FLP_TOKEN_PARAMETERS = 8, FLP_TOKEN_VALUES = 256 };

/* The rows' losses and derivatives, and their sum: one block. */
typedef struct TokenLossParams {
    const void *target;                   /* [rows] int32 or int64 */
    const float *logp, *lse, *entropy;    /* [rows]; entropy: NULL where the loss uses none */
    const float *logit_sum;               /* [rows] sum_v w[v] z[v]; NULL where the loss does not use uniform */
    const void *class_weights;            /* [vocab]; or NULL */
    const float *token_weights;           /* [rows]; or NULL */
    const float *g_loss;                  /* [rows], or [1] where `reduces`; or NULL: 1 */
    const float *input[FLP_TOKEN_INPUTS]; /* [rows], as many as the loss takes */
    float parameter[FLP_TOKEN_PARAMETERS];
    float *loss;                               /* [rows], or [1] where `reduces` */
    float *g_logp, *g_lse, *g_entropy, *g_sum; /* [rows]; NULL where not wanted */
    i64 ignore_index;
    i32 rows, vocab, target_bytes;
    i32 class_weight_dtype;        /* flp_dtype */
    i32 reduces, divides;          /* 1: sum or mean; mean */
    const i32 *packed_index;       /* [rows]: where a row stands among the valid ones; -1: it is not valid */
    i32 first_packed, packed_rows; /* those that stand here, and with the first place 0 those that are not valid; of the others, no more than a mean needs */
    i32 adds;                      /* 1: the sum is added to *loss */
    i32 ignores;                   /* 1: rows whose target is ignore_index are ignored; 0: none is */
} flp_token_loss_params;

FLP_PARAMS_BYTES(flp_token_loss_params, 256);
#endif
