/* The bare product with the portable path's mma.sync tiles: the baseline of that path's forward. */
#ifndef FLP_BENCH_MMA_PRODUCT_H
#define FLP_BENCH_MMA_PRODUCT_H
#include "core/plan.h"
#include "operators/linear/matrix_product_launch.h"

/* Names the kernel of matrix_product that has the tile, the stages and the architecture of a portable forward's tile kernel, and writes the dtype that it
 * reads. FLP_BAD_ARGUMENT: `tile` is not the variant of such a kernel. */
flp_status flp_mma_product_name(const char *tile, char variant[FLP_VARIANT_BYTES]);

/* Makes a plan of that kernel alone. It owns nothing, and its kernel lives as long as forward's context. */
flp_status flp_mma_product_load(const flp_plan *forward, const char *tile, flp_plan *product);

/* logits [rows, vocab] = hidden [rows, hidden_size] . weight [vocab, hidden_size]^T, all of dtype. Enqueues. */
flp_status flp_mma_product_launch(const flp_plan *product, flp_dtype dtype, const void *hidden, const void *weight, void *logits, int64_t rows,
                                  int64_t hidden_size, int64_t vocab, CUstream stream);
#endif
