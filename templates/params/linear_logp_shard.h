/* Parameters of the kernels of a shard of the vocabulary, and the statistics of a row that a shard leaves for the merge: the FLP_PARTIAL_FLOATS that
 * runtime/fusedlogp.h describes in full. z is a logit, z2 = z log2(e) / temperature. */
#ifndef FLP_PARAMS_LINEAR_LOGP_SHARD_H
#define FLP_PARAMS_LINEAR_LOGP_SHARD_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/types.h"

typedef struct LinearPartial {
    float offset, sum;   /* k, an integer, -inf: all logits are -inf; sum of 2^(z2 - k) without the target's term */
    float target, scale; /* the target's z, and the factor that makes it z2; -inf and 0: the shard does not have the target */
    float moment;        /* sum of (z2 - k) 2^(z2 - k); 0 without entropy */
    float largest;       /* largest logit before the softcap; -inf without argmax */
    i32 largest_index;   /* its id in the whole vocabulary; FLP_NO_INDEX: none */
    float logit_sum;     /* sum of w[v] z[v]; 0 where it is not requested */
} flp_linear_partial;

enum { FLP_NO_INDEX = 0x7fffffff };

/* A row's entry: the index of its target within the shard, which the other kernels read as the row's target, or one of these values. To a forward, all of
 * these are out of range. To a backward, whose vocabulary ends at FLP_ENTRY_END, FLP_ENTRY_ELSEWHERE is a valid target that lies in none of its tiles. */
enum { FLP_ENTRY_ELSEWHERE = 0x7ffffffe, FLP_ENTRY_END = 0x7fffffff, FLP_ENTRY_BAD = -1, FLP_ENTRY_IGNORED = -2 };

/* linear_logp_shard_targets computes the rows' entries: ceil(rows / threads) blocks. */
typedef struct ShardTargetsParams {
    const void *target; /* [rows] int32 or int64, of the whole vocabulary */
    i32 *entry;         /* [rows] */
    i64 rows, ignore_index, vocab_first, vocab_total;
    i32 vocab, target_bytes; /* of the shard; 4 or 8 */
    i32 ignores;             /* 1: rows whose target is ignore_index are ignored; 0: no row is */
    i32 unused;
} flp_shard_targets_params;

/* linear_logp_partials, which a shard runs in place of the combine: ceil(rows / manifest.block_rows) blocks. */
typedef struct LinearPartialsParams {
    const float *partial, *best, *moment, *logit_sums; /* the tile kernel's: params/linear_logp.h */
    const float2 *target_logit;
    const i32 *entry;
    flp_linear_partial *out; /* [rows] */
    i64 rows;
    i32 vocab, vocab_first, splits;
    i32 unused;
} flp_linear_partials_params;

/* linear_logp_merge: ceil(rows / threads) blocks. */
typedef struct LinearMergeParams {
    const flp_linear_partial *partials; /* [ranks][rows] */
    const void *target;
    float *logp, *lse, *entropy; /* [rows]; or NULL */
    i32 *argmax;
    flp_tally *target_errors; /* counts the targets out of range and keeps the first such row */
    i64 rows, ignore_index, vocab_total;
    i32 ranks, target_bytes;
    i32 ignores;
    i32 unused;
} flp_linear_merge_params;

/* linear_logp_backward_other_shards: any number of blocks. */
typedef struct OtherShardsParams {
    flp_row_target *targets; /* [rows]: the valid rows' */
    const i32 *row_count;
    i32 rows;
    i32 unused;
} flp_other_shards_params;

FLP_PARAMS_BYTES(flp_linear_partial, 32);
FLP_PARAMS_BYTES(flp_shard_targets_params, 64);
FLP_PARAMS_BYTES(flp_linear_partials_params, 80);
FLP_PARAMS_BYTES(flp_linear_merge_params, 96);
FLP_PARAMS_BYTES(flp_other_shards_params, 24);
#endif
