/* Logits of some rows and a chunk of the vocabulary, in blocks that stay in the caches.
 *
 * A logit is sum over blocks of FLP_CHUNK_DEPTH of (sum over k in the block): the short chains keep fp32's rounding small, and
 * the order depends on D alone. */
#ifndef FLP_CPU_LOGIT_CHUNK_H
#define FLP_CPU_LOGIT_CHUNK_H
#include "cpu/microkernel.h"
#include "cpu/row_statistics.h"
#include "fusedlogp.h"

enum {
    FLP_CHUNK_COLUMNS = 252, /* vocabulary entries: whole microkernels of any kind; their weight block fills half a small L2 */
    FLP_CHUNK_DEPTH = 256,   /* 16 KiB of sixteen rows' hidden, which stay in L1 while all entries pass */
    FLP_CHUNK_PANEL_FLOATS = FLP_CHUNK_COLUMNS * FLP_CHUNK_DEPTH
};

/* logits [sets][FLP_CHUNK_COLUMNS][16] = hidden . weight^T for entries first .. first + width - 1, width <= FLP_CHUNK_COLUMNS.
 * hidden [sets][D][16]; panel: room for FLP_CHUNK_PANEL_FLOATS. hidden and logits 64-byte aligned. */
void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight,
                             int64_t first, int width, const float *hidden, int sets, float *panel, float *logits);
#endif
