/* What linear_logp's kernels take. */
#ifndef FLP_PARAMS_LINEAR_LOGP_H
#define FLP_PARAMS_LINEAR_LOGP_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/tiles.h"
#include "params/types.h"

/* How the vocabulary's `tiles` = ceil(vocab / block_columns) tiles in order are cut: the first `big` splits hold big_tiles tiles each, all others one
 * (runtime/operators/linear/linear_logp_plan.h). */
typedef struct Split {
    i32 tiles;
    i32 splits;
    i32 big, big_tiles;
} flp_split;

/* Tile kernel: (hidden map, weight map, of linear_logp_save_exp the saved exponentials' map, this) on sm_90a, (this) on the portable path; this is passed by
 * value. Launched with min(multiprocessors / cluster, row groups x splits) x cluster blocks. */
typedef struct LinearLogpParams {
    const void *hidden, *weight;            /* [rows][hidden_stride]; [vocab][weight_stride], or (dv) [hidden_size][weight_stride] */
    const void *bias, *target;              /* [vocab]; [rows of the call] */
    const float *row_temperature;           /* [rows of the call]; or NULL */
    float *partial;                         /* [rows][splits][2]: offset k (an integer; -inf: nothing seen), sum of 2^(z2 - k) but for the target's,
                             z2 = z log2(e) / temperature */
    float *best;                            /* [rows][splits][2]: largest logit before softcap, its index (int32 bits); NULL without argmax */
    float2 *target_logit;                   /* [rows]: the target's z, and what makes it z2; not written where the target is not in the vocabulary */
    i64 rows, hidden_stride, weight_stride; /* strides in elements */
    i32 vocab, hidden_size;
    i32 target_bytes; /* 4 or 8 */
    float scale;      /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    flp_split split;
    i32 group;                  /* clusters' row blocks that are walked together through the vocabulary, for the L2 */
    float *moment;              /* [rows][splits]: sum of (z2 - k) 2^(z2 - k); NULL without entropy */
    float *logit_sums;          /* [rows][splits]: sum of w[v] z2[v]; NULL where it is not wanted */
    const void *class_weights;  /* w [vocab] of the variant's dtype; NULL: 1 */
    const i32 *row, *row_count; /* of packed variants: [rows] where a row stands in target and row_temperature; how many rows there are, <= rows */
    /* For linear_logp_save_exp: */
    float *offset;       /* [rows]: the integer k of the row's saved exponentials, 2^(z2 - k) */
    i32 *overflow;       /* [rows]: 1: the row has terms too large for that */
    i32 *block_overflow; /* [1 + row blocks]: 1: some row has; some row of the block has */
    i32 phase;           /* flp_save_exp_phase */
    i32 saved_columns;   /* what is kept: those before; a multiple of the tile's, or of a block's */
    void *saved_exp;     /* bf16 [blocks][saved_block_rows][saved_block_columns]; sm_90a takes a tensor map for it, a matrix of all blocks' rows */
    i32 saved_block_columns, saved_block_rows;
    u32 saved_block_reciprocal; /* ceil(2^32 / (saved_block_columns / FLP_SAVED_BLOCK_UNIT)): a column's block by a multiplication; 0: one block */
    i32 first_tile;             /* of FLP_SAVE_EXP_BLOCK; else 0 */
    u64 *ticket;                /* of linear_logp's kernels that take tickets, which set it themselves: the next of the splits that hold one tile */
} flp_linear_logp_params;

enum { FLP_SAVED_BLOCK_UNIT = 32 /* divides saved_block_columns and the columns at which stores begin */ };

/* What a launch of linear_logp_save_exp does. */
typedef enum {
    FLP_SAVE_EXP_OFFSETS, /* from the vocabulary's first tile, the offsets; the flags are cleared */
    FLP_SAVE_EXP_KEEP,    /* all of the forward */
    FLP_SAVE_EXP_AGAIN,   /* once more for row blocks of which a row overflowed: the combine has corrected its offset */
    FLP_SAVE_EXP_BLOCK    /* behind the forward: a block that there was no room for, and no sums; split is that of its tiles, saved_block_rows 0 */
} flp_save_exp_phase;

/* Combine: ceil(rows / manifest.block_rows) blocks. */
typedef struct LinearLogpCombineParams {
    const float *partial, *best; /* as above, and so are all others of the same name */
    const float2 *target_logit;
    const void *target;
    float *logp, *lse;        /* [rows]; lse may be NULL */
    i32 *argmax;              /* [rows]; may be NULL */
    flp_tally *target_errors; /* how many targets were out of range, the first such row */
    i64 rows, ignore_index;
    i32 vocab, target_bytes, splits;
    i32 ignores; /* 1: rows whose target is ignore_index are ignored; 0: none is */
    const float *moment;
    float *entropy; /* [rows]; may be NULL */
    const float *logit_sums;
    float *logit_sum;        /* [rows]: sum_v w[v] z[v]; not written without logit_sums */
    const i32 *packed_index; /* [rows]: where the row stands in partial and so on, -1: nowhere, it has no part; NULL: at its own place */
    float *offset;           /* with overflow and block_overflow those of linear_logp_save_exp, or NULL */
    i32 *overflow, *block_overflow;
    i32 block_rows;                /* of one block_overflow */
    i32 blanks_others;             /* 1: rows that have no part get lse, entropy and logit_sum 0 */
    i32 first_packed, packed_rows; /* with packed_index: rows that stand elsewhere are left alone; partial and what else goes by the place begins here */
    flp_row_gradient *gradient;    /* [packed_rows]: what is handed over to the backward; or NULL */
} flp_linear_logp_combine_params;

FLP_PARAMS_BYTES(flp_linear_logp_params, 240);
FLP_PARAMS_BYTES(flp_linear_logp_combine_params, 184);
#endif
