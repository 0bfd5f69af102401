/* Shards of the vocabulary: which entry of a shard a target is; and, for the CPU path, a row's partials (the statistics that a shard leaves) and their
 * merge. */
#ifndef FLP_OPERATORS_VOCAB_SHARD_H
#define FLP_OPERATORS_VOCAB_SHARD_H
#include <stdint.h>

#include "cpu/target_share.h"
#include "fusedlogp.h"
#include "params/linear_logp_shard.h"

_Static_assert(sizeof(flp_linear_partial) == FLP_PARTIAL_FLOATS * sizeof(float), "FLP_PARTIAL_FLOATS is another number");

/* The size of the vocabulary to which targets belong: that of all shards. */
static inline int64_t flp_vocab_shard_whole(const flp_linear_logp_problem *problem)
{
    return problem->vocab_total > 0 ? problem->vocab_total : problem->vocab;
}

/* The index of a valid target among the problem's own entries; -1: the target is in another shard. */
static inline int32_t flp_vocab_shard_entry(const flp_linear_logp_problem *problem, int64_t target)
{
    const int64_t entry = target - problem->vocab_first;

    return entry >= 0 && entry < problem->vocab ? (int32_t)entry : -1;
}

/* The partial of a row of which the shard has no entry. */
flp_linear_partial flp_vocab_shard_nothing(void);

/* The partial with these sums. others->scale is a number of fp32. target: the target's logit after the softcap; NULL: it is in another shard. The largest logit
 * and logit_sum are those of flp_vocab_shard_nothing. */
flp_linear_partial flp_vocab_shard_partial(const flp_other_sums *others, const float *target);

/* A row of the whole vocabulary, merged from its shards' partials. */
typedef struct {
    flp_row_shares shares; /* the origin is in base 2, for a scale of 1 */
    int has_target;        /* 1: some shard has the target; 0: logp is NaN */
    int32_t largest_index;
    double logit_sum;
} flp_vocab_shard_row;
/* parts: the row's partials in the order of ranks, `stride` elements from one to the next. */
flp_vocab_shard_row flp_vocab_shard_merge(const flp_linear_partial *parts, int ranks, int64_t stride);
#endif
