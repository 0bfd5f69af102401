/* Parameters of linear_logp's kernels: the tile kernel, which leaves statistics of each row and split of the vocabulary, the combine kernel, which merges them,
 * and the kernel that computes the offsets of saved exponentials beforehand. z is a logit, and z2 = z log2(e) / temperature is the same logit in base
 * 2. */
#ifndef FLP_PARAMS_LINEAR_LOGP_H
#define FLP_PARAMS_LINEAR_LOGP_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/tiles.h"
#include "params/types.h"

/* How the vocabulary's `tiles` = ceil(vocab / block_columns) tiles are cut, in order, into splits: each of the first `big` splits holds big_tiles tiles, each
 * later one a single tile (runtime/operators/linear/linear_logp_plan.h). */
typedef struct Split {
    i32 tiles;
    i32 splits;
    i32 big, big_tiles;
} flp_split;

/* Tile kernel. Its arguments on sm_90a are the tensor maps of hidden and weight, in linear_logp_save_exp also that of the saved exponentials, and then this
 * struct, by value; on the portable path this struct alone. Launched with min(resident clusters, row groups x splits) x cluster blocks. */
typedef struct LinearLogpParams {
    const void *hidden, *weight;  /* [rows][hidden_stride]; [vocab][weight_stride], or [hidden_size][weight_stride] in variants with dv */
    const void *bias, *target;    /* [vocab]; [rows of the call] */
    const float *row_temperature; /* [rows of the call]; or NULL */
    /* [rows][splits][2]: the offset k, an integer (-inf: all logits were -inf or NaN), and the sum of 2^(z2 - k) without the target's term. */
    float *partial;
    float *best;          /* [rows][splits][2]: the largest logit before the softcap, and its index (the bits of an int32); NULL without argmax */
    float2 *target_logit; /* [rows]: the target's z, and the factor that makes it z2; not written where the target is not in the vocabulary */
    i64 rows, hidden_stride, weight_stride; /* strides in elements */
    i32 vocab, hidden_size;
    i32 target_bytes; /* 4 or 8 */
    float scale;      /* log2(e) / temperature; log2(e) where row_temperature is given */
    float softcap, inverse_softcap;
    flp_split split;
    i32 group;                  /* row groups (a cluster's rows) that go through the vocabulary together, so that they share weight tiles in the L2 */
    float *moment;              /* [rows][splits]: sum of (z2 - k) 2^(z2 - k); NULL without entropy */
    float *logit_sums;          /* [rows][splits]: sum of w[v] z2[v]; NULL where it is not requested */
    const void *class_weights;  /* w [vocab], of the dtype that the variant names; NULL: all 1 */
    const i32 *row, *row_count; /* of packed variants: [rows] a packed row's index in target and row_temperature; the number of packed rows, <= rows */
    /* For linear_logp_save_exp: */
    float *offset;       /* [rows]: the integer k of the row's saved exponentials, 2^(z2 - k) */
    i32 *overflow;       /* [rows]: 1: a term of the row is too large for its offset */
    i32 *block_overflow; /* [1 + row blocks]: entry 0 is 1 if any row overflowed, entry 1 + b if any row of row block b did */
    i32 phase;           /* flp_save_exp_phase */
    i32 saved_columns;   /* the columns below this one are saved; a multiple of the tile's columns or of saved_block_columns */
    void *saved_exp;     /* bf16 [blocks][saved_block_rows][saved_block_columns]; sm_90a writes it through a tensor map of the matrix of all blocks' rows */
    i32 saved_block_columns, saved_block_rows;
    u32 saved_block_reciprocal; /* ceil(2^32 / (saved_block_columns / FLP_SAVED_BLOCK_UNIT)): divides a column by a multiplication; 0: there is one block */
    i32 first_tile;             /* FLP_SAVE_EXP_BLOCK: the first tile of the block of columns; else 0 */
    u64 *ticket;                /* the atomic counter of linear_logp's dynamic tile scheduler (tickets.cuh); the kernel itself initialises it */
} flp_linear_logp_params;

enum { FLP_SAVED_BLOCK_UNIT = 32 /* divides saved_block_columns and each column at which a store begins */ };

/* What a launch of linear_logp_save_exp does. */
typedef enum {
    FLP_SAVE_EXP_OFFSETS, /* computes the rows' offsets from the vocabulary's first columns, and clears the overflow flags: on sm_90a by a kernel of its own */
    FLP_SAVE_EXP_KEEP,    /* the whole forward: statistics and saved exponentials */
    FLP_SAVE_EXP_AGAIN,   /* repeats KEEP for the row blocks in which a row overflowed, after the combine has corrected that row's offset */
    /* After the forward: recomputes blocks of columns for which the forward had no room, without statistics. split describes the tiles of these blocks;
     * saved_exp is the address at which the first block of all would be. */
    FLP_SAVE_EXP_BLOCK
} flp_save_exp_phase;

/* Combine kernel: ceil(rows / manifest.block_rows) blocks. */
typedef struct LinearLogpCombineParams {
    const float *partial, *best; /* the tile kernel's, as is every other field that has the name of one of its parameters */
    const float2 *target_logit;
    const void *target;
    float *logp, *lse;        /* [rows]; lse may be NULL */
    i32 *argmax;              /* [rows]; may be NULL */
    flp_tally *target_errors; /* counts the targets out of range and keeps the first such row */
    i64 rows, ignore_index;
    i32 vocab, target_bytes, splits;
    i32 ignores; /* 1: rows whose target is ignore_index are ignored; 0: no row is */
    const float *moment;
    float *entropy; /* [rows]; may be NULL */
    const float *logit_sums;
    float *logit_sum;        /* [rows]: sum_v w[v] z[v]; not written without logit_sums */
    const i32 *packed_index; /* [rows]: the row's index in partial and the tile kernel's other arrays; -1: the row has no statistics; NULL: its own index */
    float *offset;           /* this, overflow and block_overflow: linear_logp_save_exp's, or NULL */
    i32 *overflow, *block_overflow;
    i32 block_rows;    /* rows for each entry of block_overflow */
    i32 blanks_others; /* 1: rows that are ignored or whose target is bad get lse, entropy and logit_sum 0 */
    /* With packed_index: only the packed rows from first_packed to first_packed + packed_rows are combined. partial and the other arrays that are indexed by
     * packed row begin with row first_packed. */
    i32 first_packed, packed_rows;
    flp_row_gradient *gradient; /* [packed_rows]: receives the row's log-sum-exp and logp for the backward (params/rows.h); or NULL */
} flp_linear_logp_combine_params;

FLP_PARAMS_BYTES(flp_linear_logp_params, 240);
FLP_PARAMS_BYTES(flp_linear_logp_combine_params, 184);
#endif
