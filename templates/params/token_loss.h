/* Parameters of linear_cross_entropy's loss kernel. */
#ifndef FLP_PARAMS_TOKEN_LOSS_H
#define FLP_PARAMS_TOKEN_LOSS_H
#include "params/types.h"

/* The most inputs and parameters of a token loss, and the most operations of the loss and its derivatives. The generator reads these numbers here. */
enum { FLP_TOKEN_INPUTS = 8, FLP_TOKEN_PARAMETERS = 8, FLP_TOKEN_VALUES = 256 };

/* Computes the rows' losses, their derivatives, and the sum of the losses: one block. */
typedef struct TokenLossParams {
    const void *target;                   /* [rows] int32 or int64 */
    const float *logp, *lse, *entropy;    /* [rows]; entropy: NULL where the loss uses none */
    const float *logit_sum;               /* [rows]: sum_v w[v] z[v]; NULL where the loss does not use uniform */
    const void *class_weights;            /* [vocab]; or NULL */
    const float *token_weights;           /* [rows]; or NULL */
    const float *g_loss;                  /* the upstream gradient: [rows], or [1] where `reduces`; NULL: 1 */
    const float *input[FLP_TOKEN_INPUTS]; /* [rows] each; as many as the loss has inputs */
    float parameter[FLP_TOKEN_PARAMETERS];
    float *loss;                               /* [rows], or [1] where `reduces` */
    float *g_logp, *g_lse, *g_entropy, *g_sum; /* [rows]; NULL where not requested */
    i64 ignore_index;
    i32 rows, vocab, target_bytes;
    i32 class_weight_dtype;  /* flp_dtype */
    i32 reduces, divides;    /* reduces 1: sum or mean; divides 1: mean */
    const i32 *packed_index; /* [rows]: a row's index among the valid rows; -1: not a valid row */
    /* The launch computes the valid rows from first_packed to first_packed + packed_rows and, with first_packed 0, also the rows that are not valid. Of all
     * other rows the launch with first_packed 0 reads only what the mean's divisor needs. */
    i32 first_packed, packed_rows;
    const i32 *row, *row_count; /* of the launch's valid rows: their indices, in increasing order, and how many there are */
    double *sum_factor;         /* the factor of the sum of losses: the launch with first_packed 0 writes it, the others read it. NULL: there are no others */
    i32 adds;                   /* 1: the sum is added to *loss */
    i32 ignores;                /* 1: rows whose target is ignore_index are ignored; 0: no row is */
    i32 pdl_wait_last;          /* 1: waits for the kernel before at the end, and runs beside it until then (late_wait.cuh) */
    i32 unused;
} flp_token_loss_params;

FLP_PARAMS_BYTES(flp_token_loss_params, 288);
#endif
