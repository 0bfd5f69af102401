/* Logits on the CPU path, chunk of the vocabulary by chunk. The weight is loaded in blocks that stay in a cache while many rows are multiplied by them. */
#ifndef FLP_OPERATORS_LOGIT_CHUNK_H
#define FLP_OPERATORS_LOGIT_CHUNK_H
#include "cpu/microkernel.h"
#include "cpu/row_statistics.h"
#include "fusedlogp.h"

enum {
    FLP_CHUNK_COLUMNS = 252,                 /* vocabulary entries: a multiple of every microkernel's; their weight block fills half a small L2 */
    FLP_CHUNK_DEPTH = FLP_MICROKERNEL_DEPTH, /* 16 KiB of sixteen rows' hidden, which stay in L1 while they are multiplied by all entries */
    FLP_CHUNK_PANEL_FLOATS = FLP_CHUNK_COLUMNS * FLP_CHUNK_DEPTH
};

/* Word k of entry e at data[e * entry_stride + k * depth_stride]. */
typedef struct {
    const float *data;
    int64_t entry_stride, depth_stride;
} flp_weight_block;

/* The block of vocabulary entries first .. first + width - 1 and components begin .. begin + depth - 1, at most FLP_CHUNK_COLUMNS and FLP_CHUNK_DEPTH. A word
 * holds as many neighbouring components as the kernel packs. The block is copied to panel [FLP_CHUNK_PANEL_FLOATS], or is the weight itself where that holds
 * such words and only few sets of rows will read it. */
flp_weight_block flp_weight_block_load(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                                       int64_t begin, int depth, int sets, float *panel);

/* The same block transposed: word k of `entry` e holds neighbouring vocabulary entries of component begin + e. width and depth are at most
 * FLP_CHUNK_COLUMNS. */
flp_weight_block flp_weight_block_load_turned(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first,
                                              int width, int64_t begin, int depth, int sets, float *panel);

/* logits [FLP_CHUNK_COLUMNS][16] of each set, logits_stride apart, = hidden . weight^T for entries first .. first + width - 1, width <= FLP_CHUNK_COLUMNS.
 * hidden [sets][words of D][16]; panel: room for FLP_CHUNK_PANEL_FLOATS. hidden and logits 64-byte aligned. */
void flp_logit_chunk_compute(const flp_microkernel *kernel, const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width,
                             const float *hidden, int sets, float *panel, float *logits, int64_t logits_stride);

/* Logits that a forward saves for the backward of the same call, which then does not compute them again: those of the first sets of valid rows, without the
 * bias. */
typedef struct {
    float *data;          /* [sets][chunks][FLP_CHUNK_COLUMNS][16] */
    int64_t sets, chunks; /* the sets that there is room for; the chunks of the whole vocabulary */
} flp_saved_logits;

static inline float *flp_saved_logits_at(const flp_saved_logits *saved, int64_t set, int64_t chunk)
{
    return saved->data + (set * saved->chunks + chunk) * FLP_CHUNK_COLUMNS * FLP_LANES;
}

/* Fills bias [width], in fp32, for entries first .. first + width - 1; zeros where the problem has no bias. */
void flp_logit_chunk_load_bias(const flp_linear_logp_problem *problem, const void *from, int64_t first, int width, float *bias);
#endif
