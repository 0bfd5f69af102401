/* How the vocabulary is cut into splits, whose statistics the combine kernel merges in index order. */
#ifndef FLP_OPERATORS_SPLIT_H
#define FLP_OPERATORS_SPLIT_H
#include <stdint.h>

#include "params/linear_logp.h"

/* The big splits are as many as a common GPU of the architecture has multiprocessors (n_split, a constant of the variant), so that with few
 * rows each block there gets one; the single tiles, which come last, even out the ends. A function of (vocab, block_vocab, n_split)
 * alone: it decides a row's bits.
 * vocab 1 .. 2^31 - 1, block_vocab >= 1, n_split >= 1. The result has fewer than 2 n_split splits. */
flp_split flp_split_compute(int64_t vocab, int block_vocab, int n_split);
#endif
