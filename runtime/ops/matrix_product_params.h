/* What matrix_product takes. The device half is templates/common/matrix_product_params.cuh.
 * KEEP IN STEP: matrix product parameters. */
#ifndef FLP_OPS_MATRIX_PRODUCT_PARAMS_H
#define FLP_OPS_MATRIX_PRODUCT_PARAMS_H
#include <stdint.h>

/* What the device keeps of a row that counts: its target, and the derivative by the target's logit, in fp32 and apart from the others.
 * KEEP IN STEP: row targets (templates/common/row_target.cuh). */
typedef struct {
    int32_t target;
    float derivative;
} flp_row_target;

/* A row by its target; at: among those that count; row: in hidden. */
typedef struct {
    int32_t target, at, row, unused;
} flp_target_term;

/* out (+)= factor * left . right. On sm_90a (left map, right map, out map, this), on the portable path (this). Launched with
 * min(multiprocessors / cluster, row groups x column tiles) x cluster blocks. */
typedef struct {
    const void *left, *right; /* [rows, inner] or (km) [inner, rows]; [columns, inner] or (kn) [inner, columns] */
    void *out;                /* [rows, columns] */
    int64_t left_stride, right_stride, out_stride; /* elements from row to row as they lie in memory */
    const int32_t *row_count, *inner_count; /* on the device, where it alone knows; NULL: rows, inner */
    const float *factor;      /* on the device; NULL: 1 */
    int32_t rows, columns, inner;
    int32_t group;            /* clusters' row blocks that are walked together, for the L2 */
    int32_t waits_late;       /* 1: the kernel before reads what this one reads, and waited for it; this one then fills the
                                 multiprocessors that the other leaves idle at its end. 2: it reads what this one writes, too */
    int32_t unused;
    const float *row_factor;  /* [rows] on the device: each row of the product is multiplied by its own; NULL: 1 */
    /* Of filtering variants: */
    const uint32_t *kept;     /* as flp_logit_gradients_params': steps of the inner size whose blocks of dlogit have no bit are passed over */
    int32_t kept_words;
    int32_t kept_along;       /* flp_kept_along */
    /* Of variants with terms: what the rows' targets add. */
    const flp_row_target *targets; /* [rows that count] */
    const flp_target_term *terms;  /* of down and across: [rows that count], in the order of their targets */
    const void *others;            /* weight where out's rows are the targets' own, else hidden, in the variant's dtype, as it lies in memory: */
    int64_t others_stride;         /* elements */
    int32_t first_target;          /* the vocabulary entry of out's first row, or column */
    int32_t unused_too;
} flp_matrix_product_params;

/* What of out lies along the rows or columns of dlogit. */
typedef enum {
    FLP_KEPT_ROWS_ALONG_ROWS,      /* grad_hidden: out's rows are dlogit's, its columns are summed over */
    FLP_KEPT_ROWS_ALONG_COLUMNS,   /* grad_weight [V, D]: out's rows are dlogit's columns */
    FLP_KEPT_COLUMNS_ALONG_COLUMNS /* grad_weight [D, V] */
} flp_kept_along;

_Static_assert(sizeof(flp_matrix_product_params) == 160, "templates/common/matrix_product_params.cuh disagrees");
#endif
