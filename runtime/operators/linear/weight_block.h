/* Blocks of the weight in fp32, small enough to stay in a cache while many rows pass. */
#ifndef FLP_OPERATORS_WEIGHT_BLOCK_H
#define FLP_OPERATORS_WEIGHT_BLOCK_H
#include "fusedlogp.h"

enum {
    FLP_CHUNK_COLUMNS = 252, /* vocabulary entries: whole microkernels of any kind; their weight block fills half a small L2 */
    FLP_CHUNK_DEPTH = 256,   /* 16 KiB of sixteen rows' hidden, which stay in L1 while all entries pass */
    FLP_CHUNK_PANEL_FLOATS = FLP_CHUNK_COLUMNS * FLP_CHUNK_DEPTH
};

/* Entry e, component k at data[e * entry_stride + k * depth_stride]. */
typedef struct {
    const float *data;
    int64_t entry_stride, depth_stride;
} flp_weight_block;

/* Vocabulary entries first .. first + width - 1, components begin .. begin + depth - 1; at most FLP_CHUNK_COLUMNS and FLP_CHUNK_DEPTH. It
 * lies in panel [FLP_CHUNK_PANEL_FLOATS], or in the weight itself where that is fp32 and few sets of rows will read it. */
flp_weight_block flp_weight_block_load(const flp_linear_logp_problem *problem, const void *weight, int64_t first, int width, int64_t begin, int depth, int sets,
                                       float *panel);
#endif
