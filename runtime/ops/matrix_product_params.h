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
} flp_matrix_product_params;

_Static_assert(sizeof(flp_matrix_product_params) == 104, "templates/common/matrix_product_params.cuh disagrees");
#endif
