/* How the vocabulary is cut into splits, whose statistics the combine kernel merges in index order. */
#ifndef FLP_PLAN_SPLIT_H
#define FLP_PLAN_SPLIT_H
#include <stdint.h>

/* The vocabulary's `tiles` = ceil(vocab / block_vocab) tiles in order: the first `big` splits hold big_tiles tiles each, the next (where
 * rest_tiles > 0) rest_tiles, all others one. The small ones come last so that they even out the persistent blocks' ends. A function of
 * (vocab, block_vocab, max_split) alone: it decides a row's bits. The device half is Split in templates/common/linear_logp_params.cuh.
 * KEEP IN STEP: linear_logp parameters. */
typedef struct {
    int32_t tiles;
    int32_t splits;
    int32_t big, big_tiles, rest_tiles;
} flp_split;

/* vocab 1 .. 2^31 - 1, block_vocab >= 1, max_split >= 4. The result has at most max_split splits. */
flp_split flp_split_compute(int64_t vocab, int block_vocab, int max_split);
#endif
