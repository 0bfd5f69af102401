/* Parameters of matrix_product. */
#ifndef FLP_PARAMS_MATRIX_PRODUCT_H
#define FLP_PARAMS_MATRIX_PRODUCT_H
#include "params/rows.h"
#include "params/tiles.h"
#include "params/types.h"

/* out (+)= factor * A B. Arguments on sm_90a: the tensor maps of A, B and out, then this struct by value; on the portable path this struct alone. Launched with
 * min(resident clusters, row groups x column tiles) x cluster blocks, where resident clusters are those that fit at once on the multiprocessors that the launch
 * uses; a row group is a cluster's rows. */
typedef struct MatrixProductParams {
    const void *a, *b;                  /* [rows, inner] or, with a_transposed, [inner, rows]; [columns, inner] or, with b_transposed, [inner, columns] */
    void *out;                          /* [rows, columns] */
    i64 a_stride, b_stride, out_stride; /* elements from row to row of the matrix as stored */
    const i32 *row_count, *inner_count; /* on the device, where the host does not know the numbers; NULL: rows, inner */
    const float *factor;                /* on the device; NULL: 1 */
    i32 rows, columns, inner;
    i32 group;                /* row groups that are worked on together, so that they share B's tiles in the L2 */
    i32 pdl_wait_in_epilogue; /* one of FLP_PDL_WAIT_ */
    /* Clusters that begin while others still run the previous kernel: the first head_workers x head_tiles tiles are theirs alone, head_tiles each. 0: none */
    i32 head_workers;
    const float *row_factor; /* [rows] on the device: multiplies each row of the product; NULL: 1 */
    /* For filtering variants: */
    const u32 *kept; /* as flp_grad_logits_params': the product skips the steps along the inner size whose blocks of dlogit have no bit set */
    i32 kept_words;
    i32 kept_along; /* flp_kept_along */
    /* For variants that add the targets' derivatives (params/rows.h): */
    const flp_row_target *targets;           /* [valid rows] */
    const flp_sorted_target *sorted_targets; /* [valid rows], where out's rows or columns are vocabulary entries */
    const void *others;                      /* the matrix whose rows the derivatives multiply: weight where each row of out has its own target, else hidden */
    i64 others_stride;                       /* elements, of others as stored; its dtype is the variant's */
    i32 first_target;                        /* the vocabulary entry of out's first row or column */
    i32 head_tiles;                          /* see head_workers */
    /* A counter in global memory through which the clusters of a Hopper kernel synchronise with one another (clusters_in_step.cuh): 0 before the launch, and
     * used by no other launch. NULL: they do not synchronise. */
    u32 *meetings;
    /* For variants in parts of the inner size (product_parts.cuh): out is [parts][part_rows][columns], and part i has the product over the elements from
     * i * part_inner on, as many of them; part_inner is a multiple of the variant's block_inner. part_rows: at least rows, and a multiple of a row group's. */
    i64 part_rows;
    i32 part_inner, parts; /* for variants with slabs, too: there each part's sums are added to out, one part after the other */
    /* For variants whose A lies in slabs (product_slabs.cuh), one behind the other: A as stored is [slabs][slab_rows][slab_columns], in place of [slab_rows]
     * [slabs x slab_columns]. A part lies in one slab, and so do the rows of a row group; slab_rows is a multiple of block_inner and of a row group's rows.
     * A single slab has slab_rows 0 and at least as many slab_columns as A. */
    i32 slab_rows, slab_columns;
} flp_matrix_product_params;

/* When the kernel waits for the previous one (programmatic dependent launch). */
enum {
    FLP_PDL_WAIT_FIRST, /* before its first load */
    /* At its end, because all that this kernel reads was complete before the previous one began to read it. Until then this one uses the multiprocessors that
     * the previous one's last wave leaves idle. */
    FLP_PDL_WAIT_LAST,
    FLP_PDL_WAIT_BEFORE_STORE /* the same, but before the first store, because the previous kernel also reads what this one writes */
};

/* Which dimension of out is one of dlogit [rows, vocabulary], and so how the filter's blocks map to a tile's steps. */
typedef enum {
    FLP_KEPT_ROWS_ALONG_ROWS,      /* grad_hidden: out's rows are dlogit's rows; the sum is over dlogit's columns */
    FLP_KEPT_ROWS_ALONG_COLUMNS,   /* grad_weight [V, D]: out's rows are dlogit's columns; the sum is over dlogit's rows */
    FLP_KEPT_COLUMNS_ALONG_COLUMNS /* grad_weight [D, V]: out's columns are dlogit's columns; the sum is over dlogit's rows */
} flp_kept_along;

FLP_PARAMS_BYTES(flp_matrix_product_params, 192);
#endif
