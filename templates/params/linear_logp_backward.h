/* Parameters of linear_logp's backward kernels, except the matrix products (matrix_product.h). */
#ifndef FLP_PARAMS_LINEAR_LOGP_BACKWARD_H
#define FLP_PARAMS_LINEAR_LOGP_BACKWARD_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/tiles.h"
#include "params/types.h"

/* linear_logp_backward_rows has two tasks, in one launch or in two. With `indexes`, a launch of one block finds the valid rows (their target is neither ignored
 * nor out of range) and packs their indices: wherever these structs speak of valid or packed rows, these lie contiguously, in their original order. With
 * `differentiates`, a launch of any number of blocks computes from the upstream gradients the coefficients of each valid row's derivatives. */
typedef struct BackwardRowsParams {
    const void *target; /* [rows] int32 or int64 */
    /* [rows]; row_temperature, entropy, g_lse, g_entropy and g_sum may be NULL. g_sum is the upstream gradient of sum_v w[v] z[v]. */
    const float *row_temperature, *lse, *entropy, *g_logp, *g_lse, *g_entropy, *g_sum;
    flp_row_gradient *gradient;      /* [rows rounded up to FLP_BACKWARD_ROW_BLOCK]: the valid rows', then zeros with target -1 up to a multiple of it */
    i32 *row, *packed_index, *count; /* [rows] a valid row's index in hidden; [rows] the inverse, -1: not a valid row; the number of valid rows */
    float *factor, *inverse_factor;  /* a power of two by which the derivatives are multiplied where they are stored in fp16, else 1; and its inverse */
    flp_tally *target_errors;        /* NULL: bad targets are not counted */
    i64 ignore_index;
    i32 rows, vocab, target_bytes;
    float scale;                   /* log2(e) / temperature; log2(e) where row_temperature is given */
    float inverse_temperature;     /* where row_temperature is NULL */
    i32 chunks;                    /* with indexes: the number of chunk_counts */
    i32 indexes;                   /* 1: this launch writes row, packed_index and count; 0: an earlier launch has */
    i32 differentiates;            /* 1: this launch writes gradient, factor and inverse_factor, from lse, entropy and g_* */
    i32 saved_columns;             /* with row_factor: the number of columns of the saved exponentials, which begin at the vocabulary's first */
    i32 is_handed_over;            /* 1: the forward has left each row's sum and logp in gradient; lse and logp are not read */
    float *row_factor;             /* [rows]: the factor that turns a row's saved exponentials into derivatives; NULL: there are no saved exponentials */
    const float *saved_exp_offset; /* [rows]: k of the saved exponentials' 2^(z2 - k) */
    const float *logp;             /* [rows]; or NULL: the derivative by the target's logit is then computed with p from that logit */
    flp_row_target *targets;       /* [rows]: the valid rows'; receives the derivative only where the target is among the saved exponentials */
    i32 *chunk_counts;             /* with indexes: receives the number of valid rows in each chunk of chunk_rows */
    i32 chunk_rows;
    i32 ignores; /* 1: rows whose target is ignore_index are ignored; 0: no row is */
    /* For a backward whose forward is a call of its own and indexes the rows. With indexes: receives mark_value. With differentiates: a mark other than
     * mark_value shows that row, packed_index and count are not that forward's. They are then overwritten as if all rows were valid, and all gradients become
     * NaN. NULL: one call does both. */
    u64 *mark;
    u64 mark_value;
    i32 *taken;           /* with differentiates: receives the count that the following kernels use */
    flp_tally *unmatched; /* counts the calls that did not find the mark */
    u32 *meetings;        /* [FLP_MEETINGS]; with differentiates: set to 0 for the products (matrix_product.h) */
    /* With differentiates and g_sum, where the derivatives are stored in fp16: w [classes], by which g_sum is multiplied; NULL: all 1. */
    const void *class_weights;
    i32 class_weight_dtype; /* flp_dtype */
    i32 classes;
} flp_backward_rows_params;

enum { FLP_MEETINGS = 2 }; /* counters: one of grad_weight's product, one of grad_hidden's */

enum { FLP_TARGET_ORDER_ROWS = 8 }; /* of a block */

/* Sorts the valid rows by target: ceil(rows / FLP_TARGET_ORDER_ROWS) blocks. */
typedef struct TargetOrderParams {
    const flp_row_target *targets;
    const i32 *row, *row_count; /* as flp_backward_rows_params' row and count */
    flp_sorted_target *sorted;  /* [rows] */
    i32 rows, unused;
} flp_target_order_params;

/* Copies the valid rows of hidden to contiguous rows: any number of blocks. */
typedef struct BackwardGatherParams {
    const void *hidden;
    void *packed;                     /* [rows][packed_stride] */
    float *sums;                      /* [rows][hidden_size]: set to 0; or NULL */
    i64 hidden_stride, packed_stride; /* elements */
    const i32 *row, *count;           /* as above; row NULL: the rows of hidden are packed already, and packed may be hidden itself */
    i32 rows, hidden_size;
    const float *row_factor; /* [rows]: multiplies each packed row; NULL: 1 */
    i32 skips_whole;         /* 1: the kernel does nothing where all rows are valid */
    i32 pdl_wait_last;       /* as flp_backward_finish_params' */
    u64 *mark;               /* the forward's, which an earlier kernel has checked: set to 0, so that a second backward does not find it. NULL: there is none */
} flp_backward_gather_params;

/* The derivatives of the loss by the logits of a chunk of the vocabulary. Arguments on sm_90a: the tensor maps of hidden, weight and out, then this struct; on
 * the portable path this struct alone. Launched like matrix_product. */
typedef struct GradLogitsParams {
    const void *hidden, *weight, *bias;           /* hidden: the packed rows */
    void *out;                                    /* [rows][out_stride] elements of hidden's dtype: the columns of the chunk, from first_column on */
    i64 hidden_stride, weight_stride, out_stride; /* elements */
    const flp_row_gradient *gradient;             /* as above */
    const i32 *row_count;
    i32 rows, vocab, first_column, columns;
    float softcap, inverse_softcap;
    i32 group;                 /* as matrix_product's */
    float filter;              /* of filtering variants: the products skip a block of which no derivative (before factor) reaches this magnitude */
    const void *class_weights; /* w [vocab] of the variant's dtype; NULL: 1 */
    u32 *kept;                 /* [ceil(rows / FLP_KEPT_BLOCK)][kept_words]: receives a bit for each block that is not skipped; 0 before the launch */
    const float *factor;       /* on the device: multiplies the derivatives */
    i32 kept_words;
    /* 1: this kernel waits for the previous one only before it stores, and until then uses the multiprocessors that the previous one's last wave leaves idle.
     * The previous kernel must itself have waited for those before it, and may conflict with this one only in that it reads `out`. */
    i32 pdl_wait_in_epilogue;
    flp_row_target *targets;      /* receives the derivatives by the targets' logits; in out they are 0 */
    i32 head_workers, head_tiles; /* as matrix_product's; head_tiles is cut to the tiles that the variant can multiply before it must store */
} flp_grad_logits_params;

/* After a chunk: counts the blocks that its filter kept, and clears their bits. One block. */
typedef struct BackwardFilterParams {
    u32 *kept;
    flp_tally *statistics; /* blocks kept, and all blocks */
    const i32 *row_count;
    i32 words, rows, columns; /* all words of kept; rows and columns of the chunk, columns 0: nothing is counted */
    i32 unused;
} flp_backward_filter_params;

enum { FLP_BIAS_COLUMNS = 32 }; /* for each block */

/* grad_bias of a chunk of the vocabulary: ceil(columns / FLP_BIAS_COLUMNS) blocks. */
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

/* Writes grad_hidden from the products' sums, which are indexed by packed row: any number of blocks. */
typedef struct BackwardFinishParams {
    const void *sums;            /* [packed_rows][sums_stride] of the variant's dtype */
    void *out;                   /* [rows][out_stride] */
    i64 sums_stride, out_stride; /* elements */
    const i32 *packed_index;
    const i32 *count; /* the number of valid rows; where it is `rows`, out holds the result already and the kernel does nothing. Or NULL */
    i32 rows, hidden_size;
    /* For variants with a weight: the target's derivative times the target's row of the weight is added to the sums, which lack it. */
    const flp_row_target *targets;
    const void *weight;
    i64 weight_stride;             /* elements, of the weight's rows in memory */
    const float *factor;           /* on the device: multiplies the targets' derivatives; NULL: 1 */
    i32 first_packed, packed_rows; /* the rows of sums; the launch with first_packed 0 also sets the rows that are not valid to 0 */
    const float *row_factor;       /* [packed_rows]: multiplies each row's sums; NULL: 1 */
    u64 *mark;                     /* set to 0, as flp_backward_gather_params'; or NULL */
    /* For variants with parts, of a product in parts: the sums are [parts][part_rows][sums_stride], and the parts are added in their order. The rows stay
     * packed: out is [packed_rows][out_stride], packed_index and rows are not read, and count is the number of valid ones. */
    i64 part_rows;
    i32 parts;
    i32 pdl_wait_last; /* 1: waits for the kernel before at the end, and runs beside it until then (late_wait.cuh) */
} flp_backward_finish_params;

FLP_PARAMS_BYTES(flp_backward_rows_params, 272);
FLP_PARAMS_BYTES(flp_target_order_params, 40);
FLP_PARAMS_BYTES(flp_backward_gather_params, 88);
FLP_PARAMS_BYTES(flp_grad_logits_params, 152);
FLP_PARAMS_BYTES(flp_backward_filter_params, 40);
FLP_PARAMS_BYTES(flp_backward_bias_params, 72);
FLP_PARAMS_BYTES(flp_backward_finish_params, 128);
#endif
