/* linear_logp_backward's launches of one chunk of the vocabulary: the derivatives by its logits and their products. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_CHUNK_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_CHUNK_H
#include "operators/linear/linear_logp_backward.h"

/* A chunk of the vocabulary, or a slab of neighbouring chunks. dlogit holds the derivatives by its logits, or the saved exponentials, which times row_factor
 * are the derivatives. */
typedef struct {
    int64_t first, columns;
    char *dlogit; /* [rows][stride] or, with slab_columns, [slabs][slab_rows][slab_columns] */
    int64_t stride;
    int64_t slab_columns, slab_rows; /* of several slabs that are multiplied at once, the last of which may have fewer columns; 0: one slab */
    const float *row_factor;         /* NULL: 1 */
    int pdl_wait_in_epilogue;        /* of grad_hidden's product: params/matrix_product.h */
    int finishes_first;              /* 1: grad_hidden is finished before this chunk's grad_weight and grad_bias */
    int weight_goes_second;          /* 1: grad_weight's product comes after grad_hidden's, on whose idle clusters it begins; grad_bias comes before both */
    int weight_waits_to_store;       /* 1: grad_weight's product begins beside the product before it, and may overwrite what that one reads */
    flp_head_start weight_head;      /* of grad_weight's product, with weight_goes_second */
    int64_t behind;                  /* with it: the width of the last chunk, if its product for grad_hidden comes after grad_weight's; 0: it does not */
    flp_tile_work before;            /* the product that precedes the computation of dlogit */
} flp_dlogit_chunk;

/* The work of the products for grad_hidden and for grad_weight of so many vocabulary entries. */
flp_tile_work flp_backward_hidden_work(const flp_backward_execution *run, int64_t columns);
flp_tile_work flp_backward_weight_work(const flp_backward_execution *run, int64_t columns);

/* dlogit. */
flp_status flp_backward_compute_dlogit(const flp_backward_execution *run, const flp_dlogit_chunk *part);

/* The next four do nothing where their gradient is not requested. */
/* sums += dlogit . weight. With a direct product, grad_hidden = dlogit . weight, of the whole vocabulary. */
flp_status flp_backward_run_hidden_product(const flp_backward_execution *run, const flp_dlogit_chunk *part);
/* grad_weight (+)= dlogit^T . hidden. */
flp_status flp_backward_run_weight_product(const flp_backward_execution *run, const flp_dlogit_chunk *part);
/* grad_bias (+)= the sums of dlogit over the rows. */
flp_status flp_backward_run_bias(const flp_backward_execution *run, const flp_dlogit_chunk *part);
/* grad_bias, then grad_weight: all that does not use grad_hidden's sums. */
flp_status flp_backward_run_weight_products(const flp_backward_execution *run, const flp_dlogit_chunk *part);

/* With the filter: counts and clears its bits. columns: those of the chunk to which the bits belong; 0 before the first chunk: only clears. */
flp_status flp_backward_count_kept(const flp_backward_execution *run, int64_t columns);

/* The clusters of a product synchronise with one another (clusters_in_step.cuh) if each has at least so many steps. For tests, whose products are short: sets
 * this number for all plans of the process, and returns the one before. */
int64_t flp_backward_set_least_steps_in_step(int64_t steps);
#endif
