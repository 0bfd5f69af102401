/* Cuts the vocabulary into big splits and a tail of single tiles. */
#include "plan/split.h"

flp_split flp_split_compute(int64_t vocab, int block_vocab, int max_split)
{
    const int32_t tiles = (int32_t)((vocab + block_vocab - 1) / block_vocab);
    const int32_t singles = max_split / 4;
    int32_t bulk, places, big_tiles, big, rest;

    if (tiles <= max_split)
        return (flp_split){ .tiles = tiles, .splits = tiles };
    bulk = tiles - singles;
    places = max_split - singles;
    big_tiles = (bulk - 1) / places + 1;
    big = bulk / big_tiles;
    rest = bulk - big * big_tiles;
    return (flp_split){
        .tiles = tiles, .splits = big + (rest > 0) + singles, .big = big, .big_tiles = big_tiles, .rest_tiles = rest
    };
}
