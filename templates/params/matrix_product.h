/* What matrix_product takes. */
#ifndef FLP_PARAMS_MATRIX_PRODUCT_H
#define FLP_PARAMS_MATRIX_PRODUCT_H
#include "params/rows.h"
#include "params/tiles.h"
#include "params/types.h"

/* out (+)= factor * A B. On sm_90a (A's map, B's map, out's map, this), on the portable path (this). Launched with
 * min(multiprocessors / cluster, row groups x column tiles) x cluster blocks. */
typedef struct MatrixProductParams {
    const void *a, *b;                  /* [rows, inner] or (a_transposed) [inner, rows]; [columns, inner] or (b_transposed) [inner, columns] */
    void *out;                          /* [rows, columns] */
    i64 a_stride, b_stride, out_stride; /* elements from row to row as they lie in memory */
    const i32 *row_count, *inner_count; /* on the device, where it alone knows; NULL: rows, inner */
    const float *factor;                /* on the device; NULL: 1 */
    i32 rows, columns, inner;
    i32 group;                /* clusters' row blocks that are walked together, for the L2 */
    i32 pdl_wait_in_epilogue; /* programmatic dependent launch. 1: the kernel before reads what this one reads, and waited for it; this one then fills
                                 the multiprocessors that the other leaves idle at its end. FLP_PDL_WAIT_BEFORE_STORE: it reads what this one writes, too */
    i32 head_workers; /* so many clusters begin while others are still at the kernel before: the first tiles are theirs alone, head_tiles for each. 0: there
                         are none */
    const float *row_factor; /* [rows] on the device: each row of the product is multiplied by its own; NULL: 1 */
    /* For filtering variants: */
    const u32 *kept; /* as flp_grad_logits_params': steps of the inner size whose blocks of dlogit have no bit are passed over */
    i32 kept_words;
    i32 kept_along; /* flp_kept_along */
    /* For variants with targets: what these contribute. */
    const flp_row_target *targets;           /* [valid rows] */
    const flp_sorted_target *sorted_targets; /* where out's rows or columns are vocabulary entries: [valid rows] */
    const void *others;                      /* weight where out's rows are the targets' own, else hidden, in the variant's dtype, as it lies in memory: */
    i64 others_stride;                       /* elements */
    i32 first_target;                        /* the vocabulary entry of out's first row, or column */
    i32 head_tiles;
    u32 *meetings; /* a counter, 0 before the launch and its alone, by which the clusters of Hopper's keep in step (clusters_in_step.cuh); NULL: they do not */
} flp_matrix_product_params;

enum { FLP_PDL_WAIT_BEFORE_STORE = 2 };

/* What of out lies along the rows or columns of dlogit. */
typedef enum {
    FLP_KEPT_ROWS_ALONG_ROWS,      /* grad_hidden: out's rows are dlogit's, its columns are summed over */
    FLP_KEPT_ROWS_ALONG_COLUMNS,   /* grad_weight [V, D]: out's rows are dlogit's columns */
    FLP_KEPT_COLUMNS_ALONG_COLUMNS /* grad_weight [D, V] */
} flp_kept_along;

FLP_PARAMS_BYTES(flp_matrix_product_params, 168);
#endif
