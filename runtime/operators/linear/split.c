/* Cuts the vocabulary into rounds of equal splits and a tail of single tiles. */
#include "operators/linear/split.h"

flp_split flp_split_compute(int64_t vocab, int block_vocab, int n_split)
{
    const int32_t tiles = (int32_t)((vocab + block_vocab - 1) / block_vocab), big_tiles = tiles / n_split;

    if (big_tiles < 2)
        return (flp_split){ .tiles = tiles, .splits = tiles };
    return (flp_split){ .tiles = tiles, .splits = n_split + tiles % n_split, .big = n_split, .big_tiles = big_tiles };
}
