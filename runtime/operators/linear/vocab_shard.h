/* Shards of the vocabulary: where a target lies, and on the CPU path the parts of a row's statistics that shards leave and their merging. */
#ifndef FLP_OPERATORS_VOCAB_SHARD_H
#define FLP_OPERATORS_VOCAB_SHARD_H
#include <stdint.h>

#include "cpu/target_share.h"
#include "fusedlogp.h"
#include "params/linear_logp_shard.h"

_Static_assert(sizeof(flp_linear_partial) == FLP_PARTIAL_FLOATS * sizeof(float), "FLP_PARTIAL_FLOATS is another number");

/* The vocabulary that targets are of: that of all shards. */
static inline int64_t flp_vocab_shard_whole(const flp_linear_logp_problem *problem)
{
    return problem->vocab_total > 0 ? problem->vocab_total : problem->vocab;
}

/* The entry of a valid target among the problem's own; -1: it lies in another shard. */
static inline int32_t flp_vocab_shard_entry(const flp_linear_logp_problem *problem, int64_t target)
{
    const int64_t entry = target - problem->vocab_first;

    return entry >= 0 && entry < problem->vocab ? (int32_t)entry : -1;
}

/* The part of a row without any entry. */
flp_linear_partial flp_vocab_shard_nothing(void);

/* The part with these sums; others->scale is that of fp32. target: its logit after the softcap; NULL: it lies in another shard. Largest logit and logit_sum
 * are left as in flp_vocab_shard_nothing. */
flp_linear_partial flp_vocab_shard_partial(const flp_other_sums *others, const float *target);

/* The row whose parts these are, `stride` parts from one to the next, in the order of ranks. */
typedef struct {
    flp_row_shares shares; /* origin in the logarithm to base 2: a scale of 1 */
    int has_target;        /* some part has the target; else logp is NaN */
    int32_t largest_index;
    double logit_sum;
} flp_vocab_shard_row;
flp_vocab_shard_row flp_vocab_shard_merge(const flp_linear_partial *parts, int ranks, int64_t stride);
#endif
