/* What linear_logp's backward kernels take. The device half is templates/common/linear_logp_backward_params.cuh.
 * KEEP IN STEP: linear_logp backward parameters. */
#ifndef FLP_OPS_LINEAR_LOGP_BACKWARD_PARAMS_H
#define FLP_OPS_LINEAR_LOGP_BACKWARD_PARAMS_H
#include <stdint.h>

#include "ops/matrix_product_params.h"

enum { FLP_ROW_GRADIENT_BYTES = 32 }; /* KEEP IN STEP: row gradients (templates/common/row_gradient.cuh) */

/* Which rows count: one block; with what factors: any number of blocks. Rows that count stand close together in all that follows. */
typedef struct {
    const void *target;
    const float *row_temperature, *lse, *entropy, *g_logp, *g_lse, *g_entropy, *g_sum; /* [rows]; entropy, g_lse, g_entropy, g_sum, row_temperature: or NULL.
                                                                                     g_sum: by sum_v w[v] z[v] */
    void *gradient;              /* [rows rounded up to 256] RowGradient of those that count; zeros up to a multiple of 256 */
    int32_t *row, *place, *count; /* [rows] where a counting row stands in hidden; [rows] the inverse, -1: it does not count; how many do */
    float *factor, *inverse_factor; /* a power of two that the derivatives are multiplied by, and what takes it back */
    unsigned long long *target_errors; /* an flp_tally; or NULL: bad targets are not counted */
    int64_t ignore_index;
    int32_t rows, vocab, target_bytes;
    float scale;                 /* log2(e) / temperature; log2(e) where row_temperature is given */
    float inverse_temperature;   /* where row_temperature is NULL */
    int32_t scales;              /* 1: the derivatives are stored in fp16; else the factor is 1 */
    int32_t places;              /* 1: row, place and count are written; 0: they have been */
    int32_t differentiates;      /* 1: gradient, factor and inverse_factor are written, which lse, entropy and g_* are read for */
    int32_t stash_columns;       /* with row_factor: those of the stash, which holds the first of the vocabulary */
    int32_t is_handed_over;      /* 1: the forward has left the row's sum and logp in gradient; lse and logp are not read */
    float *row_factor;           /* [rows]: what each row's part of the stash is multiplied by to be derivatives; NULL: there is none */
    const float *stash_offset;   /* [rows]: k of the stash' 2^(z2 - k) */
    const float *logp;           /* [rows]; or NULL: the derivative by the target's logit then takes p from the logit */
    flp_row_target *targets;     /* [rows]: of those that count; the derivative only where the stash has the target */
    int32_t *chunk_counts;       /* with places: for each chunk_rows of those that count, how many there are; not written where that is 0 */
    int32_t chunk_rows;
    int32_t ignores;             /* 1: rows whose target is ignore_index are ignored; 0: none is */
    /* Where another call places the rows, the forward of the pair: */
    unsigned long long *mark;    /* with places: takes mark_value. With differentiates: where it is not mark_value, row, place and count are not that
                                    forward's, and become those of a call in which all rows count, whose gradients are NaN. NULL: in one call */
    unsigned long long mark_value;
    int32_t *taken;              /* with differentiates: count, for what follows */
    unsigned long long *unmatched; /* an flp_tally: how many calls did not find the mark */
} flp_backward_rows_params;

/* The rows that count in the order of their targets: a thread for each. */
typedef struct {
    const flp_row_target *targets;
    const int32_t *row, *row_count; /* row: as above */
    flp_target_term *terms;         /* [rows] */
    int32_t rows, unused;
} flp_backward_terms_params;

/* The rows of hidden that count, close together: any number of blocks. */
typedef struct {
    const void *hidden;
    void *compact;               /* [rows][compact_stride] */
    float *sums;                 /* [rows][hidden_size], zeroed; or NULL */
    int64_t hidden_stride, compact_stride; /* elements */
    const int32_t *row, *count;  /* row: NULL: the rows lie close together already; compact may then be hidden */
    int32_t rows, hidden_size;
    const float *row_factor;     /* [rows]: each is multiplied by; NULL: 1 */
    int32_t skips_whole;         /* 1: where all rows count, there is nothing to do */
    int32_t unused;
    unsigned long long *mark;    /* the forward's, which has been seen: a second backward finds it cleared. NULL: there is none */
} flp_backward_gather_params;

/* The derivative by the logits of a chunk of the vocabulary. On sm_90a (hidden map, weight map, out map, this), on the portable
 * path (this). Launched as matrix_product. */
typedef struct {
    const void *hidden, *weight, *bias; /* hidden: the compact rows */
    void *out;                   /* [rows][out_stride] elements of hidden's dtype, of the columns from first_column on */
    int64_t hidden_stride, weight_stride, out_stride;
    const void *gradient;
    const int32_t *row_count;
    int32_t rows, vocab, first_column, columns;
    float softcap, inverse_softcap;
    int32_t group;
    float filter;                /* of filtering variants: derivatives below it (times factor) count for nothing where a block has no other */
    const void *class_weights;   /* w [vocab] of the variant's dtype; NULL: 1 */
    uint32_t *kept;              /* [rows / 64, rounded up][kept_words]: one bit for each 64 x 64 block that has others; 0 before */
    const float *factor;         /* what the derivatives are multiplied by */
    int32_t kept_words;
    int32_t waits_late;          /* 1: of the kernel before only what it reads of out matters, and it waited for those before it; this one then fills
                                    the multiprocessors that the other leaves idle at its end */
    flp_row_target *targets;     /* takes the derivatives by the targets' logits; these are 0 in out */
} flp_logit_gradients_params;

/* Behind a chunk: counts its blocks, and clears their bits. One block. */
typedef struct {
    uint32_t *kept;
    unsigned long long *statistics; /* an flp_tally: blocks kept, blocks */
    const int32_t *row_count;
    int32_t words, rows, columns; /* of kept in all; of the chunk; columns 0: nothing is counted */
    int32_t unused;
} flp_backward_filter_params;

/* grad_bias of a chunk: a block for each 32 columns. */
typedef struct {
    const void *gradients;
    void *out;
    int64_t stride;
    const int32_t *row_count;
    const float *factor;
    int32_t rows, columns;
    const float *row_factor;     /* [rows]; NULL: 1 */
    const flp_row_target *targets;
    int32_t first_column;        /* of the chunk */
    int32_t unused;
} flp_backward_bias_params;

/* grad_hidden from its sums: any number of blocks. */
typedef struct {
    const void *sums;            /* [places][sums_stride] of the variant's dtype */
    void *out;
    int64_t sums_stride, out_stride;
    const int32_t *place;
    const int32_t *count;        /* where this is all rows, there is nothing to do: they are in their places; or NULL */
    int32_t rows, hidden_size;
    /* Of variants with a weight, whose row of the target, times the derivative, is added to the sums: */
    const flp_row_target *targets;
    const void *weight;
    int64_t weight_stride;       /* elements, of the weight's rows in memory */
    const float *factor;         /* what the derivatives are multiplied by; NULL: 1 */
    int32_t first_place, places; /* whose sums these are; with the first place 0 rows that do not count are done, too */
} flp_backward_finish_params;

_Static_assert(sizeof(flp_backward_rows_params) == 248 && sizeof(flp_backward_terms_params) == 40 && sizeof(flp_backward_gather_params) == 88 &&
               sizeof(flp_logit_gradients_params) == 144 && sizeof(flp_backward_filter_params) == 40 && sizeof(flp_backward_bias_params) == 72 &&
               sizeof(flp_backward_finish_params) == 96, "templates/common/linear_logp_backward_params.cuh disagrees");
#endif
