/* Cuts the vocabulary into rounds of equal splits and a tail of single tiles. */
#include "plan/split.h"

flp_split flp_split_compute(int64_t vocab, int block_vocab, int round_splits)
{
    const int32_t tiles = (int32_t)((vocab + block_vocab - 1) / block_vocab), big_tiles = tiles / round_splits;

    if (big_tiles < 2)
        return (flp_split){ .tiles = tiles, .splits = tiles };
    return (flp_split){
        .tiles = tiles, .splits = round_splits + tiles % round_splits, .big = round_splits, .big_tiles = big_tiles
    };
}
