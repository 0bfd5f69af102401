/* Logits of some rows and a chunk of the vocabulary, in blocks that stay in the caches.
 *
 * A logit is sum over blocks of FLP_CHUNK_DEPTH of (sum over k in the block): the short chains keep fp32's rounding small, and
 * the order depends on D alone. */
#ifndef FLP_OPERATORS_LOGIT_CHUNK_H
#define FLP_OPERATORS_LOGIT_CHUNK_H
#include "cpu/microkernel.h"
#include "cpu/row_statistics.h"
#include "operators/linear/weight_block.h"
#include "fusedlogp.h"

/* logits [sets][FLP_CHUNK_COLUMNS][16] = hidden . weight^T for entries first .. first + width - 1, width <= FLP_CHUNK_COLUMNS.
 * hidden [sets][D][16]; panel: room for FLP_CHUNK_PANEL_FLOATS. hidden and logits 64-byte aligned. */
void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                             const float *hidden, int sets, float *panel, float *logits);

/* bias [width] of those entries in fp32; zeros where the problem has none. */
void flp_logit_chunk_load_bias(const flp_linear_logp_problem *problem, const void *from, int64_t first, int width, float *bias);
#endif
