/* What linear_logp's backward kernels take, but for the products (matrix_product.h). */
#ifndef FLP_PARAMS_LINEAR_LOGP_BACKWARD_H
#define FLP_PARAMS_LINEAR_LOGP_BACKWARD_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/tiles.h"
#include "params/types.h"

/* Which rows are valid: one block; with what factors: any number of blocks. Valid rows stand close together in all that follows. */
typedef struct BackwardRowsParams {
    const void *target;                                                                /* [rows] int32 or int64 */
    const float *row_temperature, *lse, *entropy, *g_logp, *g_lse, *g_entropy, *g_sum; /* [rows]; entropy, g_lse, g_entropy, g_sum, row_temperature: or NULL.
                                                                                     g_sum: by sum_v w[v] z[v] */
    flp_row_gradient *gradient;      /* [rows rounded up to 256] of the valid ones; zeros up to a multiple of 256 */
    i32 *row, *packed_index, *count; /* [rows] where a valid row stands in hidden; [rows] the inverse, -1: it is not valid; how many are */
    float *factor, *inverse_factor;  /* a power of two that the derivatives are multiplied by where they are stored in fp16, else 1; and its inverse */
    flp_tally *target_errors;        /* NULL: bad targets are not counted */
    i64 ignore_index;
    i32 rows, vocab, target_bytes;
    float scale;                   /* log2(e) / temperature; log2(e) where row_temperature is given */
    float inverse_temperature;     /* where row_temperature is NULL */
    i32 chunks;                    /* with indexes: how many chunk_counts there are */
    i32 indexes;                   /* 1: row, packed_index and count are written; 0: they have been */
    i32 differentiates;            /* 1: gradient, factor and inverse_factor are written, which lse, entropy and g_* are read for */
    i32 saved_columns;             /* with row_factor: those of the saved exponentials, which holds the first of the vocabulary */
    i32 is_handed_over;            /* 1: the forward has left the row's sum and logp in gradient; lse and logp are not read */
    float *row_factor;             /* [rows]: what each row's part of the saved exponentials is multiplied by to be derivatives; NULL: there are none */
    const float *saved_exp_offset; /* [rows]: k of the saved exponentials' 2^(z2 - k) */
    const float *logp;             /* [rows]; or NULL: the derivative by the target's logit then takes p from the logit */
    flp_row_target *targets;       /* [rows]: of the valid ones; the derivative only where the saved exponentials have the target */
    i32 *chunk_counts;             /* with indexes: for each chunk_rows of the valid ones, how many there are */
    i32 chunk_rows;
    i32 ignores; /* 1: rows whose target is ignore_index are ignored; 0: none is */
    /* Where another call indexes the rows, the forward of the pair: */
    u64 *mark; /* with indexes: takes mark_value. With differentiates: where it is not mark_value, row, packed_index and count are not that
                                    forward's, and become those of a call in which all rows are valid, whose gradients are NaN. NULL: in one call */
    u64 mark_value;
    i32 *taken;           /* with differentiates: count, for what follows */
    flp_tally *unmatched; /* how many calls did not find the mark */
    u32 *meetings;        /* [FLP_MEETINGS] with differentiates: zeroed for the products (matrix_product.h) */
} flp_backward_rows_params;

enum { FLP_MEETINGS = 2 }; /* counters: of grad_weight's product, of grad_hidden's */

enum { FLP_TARGET_ORDER_ROW_THREADS = 8 };

/* The valid rows in the order of their targets: FLP_TARGET_ORDER_ROW_THREADS threads for each. */
typedef struct TargetOrderParams {
    const flp_row_target *targets;
    const i32 *row, *row_count; /* row: as above */
    flp_sorted_target *sorted;  /* [rows] */
    i32 rows, unused;
} flp_target_order_params;

/* The valid rows of hidden, close together: any number of blocks. */
typedef struct BackwardGatherParams {
    const void *hidden;
    void *packed;                     /* [rows][packed_stride] */
    float *sums;                      /* [rows][hidden_size], zeroed; or NULL */
    i64 hidden_stride, packed_stride; /* elements */
    const i32 *row, *count;           /* row: NULL: the rows lie close together already; packed may then be hidden */
    i32 rows, hidden_size;
    const float *row_factor; /* [rows]: each is multiplied by; NULL: 1 */
    i32 skips_whole;         /* 1: where all rows are valid, there is nothing to do */
    i32 unused;
    u64 *mark; /* the forward's, which has been seen: a second backward finds it cleared. NULL: there is none */
} flp_backward_gather_params;

/* The derivative by the logits of a chunk of the vocabulary. On sm_90a (hidden map, weight map, out map, this), on the portable
 * path (this). Launched as matrix_product. */
typedef struct GradLogitsParams {
    const void *hidden, *weight, *bias;           /* hidden: the packed rows */
    void *out;                                    /* [rows][out_stride] elements of hidden's dtype, of the columns from first_column on */
    i64 hidden_stride, weight_stride, out_stride; /* elements */
    const flp_row_gradient *gradient;             /* as above */
    const i32 *row_count;
    i32 rows, vocab, first_column, columns;
    float softcap, inverse_softcap;
    i32 group;                 /* as matrix_product's */
    float filter;              /* of filtering variants: derivatives below it (times factor) count for nothing where a block has no other */
    const void *class_weights; /* w [vocab] of the variant's dtype; NULL: 1 */
    u32 *kept;                 /* [rows / FLP_KEPT_BLOCK, rounded up][kept_words]: one bit for each block that has others; 0 before */
    const float *factor;       /* what the derivatives are multiplied by */
    i32 kept_words;
    i32 pdl_wait_in_epilogue;     /* 1: of the kernel before only what it reads of out matters, and it waited for those before it; this one then fills
                                    the multiprocessors that the other leaves idle at its end */
    flp_row_target *targets;      /* takes the derivatives by the targets' logits; these are 0 in out */
    i32 head_workers, head_tiles; /* as matrix_product's; of head_tiles as many as the variant can multiply before it waits */
} flp_grad_logits_params;

/* Behind a chunk: counts its blocks, and clears their bits. One block. */
typedef struct BackwardFilterParams {
    u32 *kept;
    flp_tally *statistics; /* blocks kept, blocks */
    const i32 *row_count;
    i32 words, rows, columns; /* of kept in all; of the chunk; columns 0: nothing is counted */
    i32 unused;
} flp_backward_filter_params;

enum { FLP_BIAS_COLUMNS = 32 }; /* of a block */

/* grad_bias of a chunk: ceil(columns / FLP_BIAS_COLUMNS) blocks. */
typedef struct BackwardBiasParams {
    const void *gradients; /* [rows][stride] elements of the variant's dtype */
    void *out;             /* [columns] */
    i64 stride;
    const i32 *row_count;
    const float *factor;
    i32 rows, columns;
    const float *row_factor; /* [rows]; NULL: 1 */
    const flp_row_target *targets;
    i32 first_column; /* of the chunk */
    i32 unused;
} flp_backward_bias_params;

/* grad_hidden from its sums: any number of blocks. */
typedef struct BackwardFinishParams {
    const void *sums;            /* [packed_rows][sums_stride] of the variant's dtype */
    void *out;                   /* [rows][out_stride] */
    i64 sums_stride, out_stride; /* elements */
    const i32 *packed_index;
    const i32 *count; /* where this is all rows, there is nothing to do: they are in their places; or NULL */
    i32 rows, hidden_size;
    /* For variants with a weight, whose row of the target, times the derivative, is added to the sums: */
    const flp_row_target *targets;
    const void *weight;
    i64 weight_stride;             /* elements, of the weight's rows in memory */
    const float *factor;           /* what the derivatives are multiplied by; NULL: 1 */
    i32 first_packed, packed_rows; /* whose sums these are; with the first place 0 rows that are not valid are done, too */
    const float *row_factor;       /* [packed_rows]: what a row's sums are multiplied by; NULL: 1 */
    u64 *mark;                     /* is cleared, as flp_backward_gather_params'; or NULL */
} flp_backward_finish_params;

FLP_PARAMS_BYTES(flp_backward_rows_params, 256);
FLP_PARAMS_BYTES(flp_target_order_params, 40);
FLP_PARAMS_BYTES(flp_backward_gather_params, 88);
FLP_PARAMS_BYTES(flp_grad_logits_params, 152);
FLP_PARAMS_BYTES(flp_backward_filter_params, 40);
FLP_PARAMS_BYTES(flp_backward_bias_params, 72);
FLP_PARAMS_BYTES(flp_backward_finish_params, 112);
#endif
