/* What matrix_product takes. The device half is templates/common/matrix_product_params.cuh.
 * KEEP IN STEP: matrix product parameters. */
#ifndef FLP_OPS_MATRIX_PRODUCT_PARAMS_H
#define FLP_OPS_MATRIX_PRODUCT_PARAMS_H
#include <stdint.h>

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
    const float *row_factor;  /* [rows] on the device: each row of the product is multiplied by its own, sm_90a alone; NULL: 1 */
    /* Of filtering variants: */
    const uint32_t *kept;     /* as flp_logit_gradients_params': steps of the inner size whose blocks of dlogit have no bit are passed over */
    int32_t kept_words;
    int32_t kept_along;       /* flp_kept_along */
} flp_matrix_product_params;

/* What of out lies along the rows or columns of dlogit. */
typedef enum {
    FLP_KEPT_ROWS_ALONG_ROWS,      /* grad_hidden: out's rows are dlogit's, its columns are summed over */
    FLP_KEPT_ROWS_ALONG_COLUMNS,   /* grad_weight [V, D]: out's rows are dlogit's columns */
    FLP_KEPT_COLUMNS_ALONG_COLUMNS /* grad_weight [D, V] */
} flp_kept_along;

_Static_assert(sizeof(flp_matrix_product_params) == 120, "templates/common/matrix_product_params.cuh disagrees");
#endif
