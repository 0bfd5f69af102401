/* What the kernels of a shard of the vocabulary take, and what a shard leaves of a row: FLP_PARTIAL_FLOATS of runtime/fusedlogp.h, which says it in full. */
#ifndef FLP_PARAMS_LINEAR_LOGP_SHARD_H
#define FLP_PARAMS_LINEAR_LOGP_SHARD_H
#include "params/rows.h"
#include "params/tally.h"
#include "params/types.h"

typedef struct LinearPartial {
    float offset, sum;   /* k, an integer, -inf: nothing but -inf; sum of 2^(z2 - k) but for the target's */
    float target, scale; /* the target's z, and what makes it z2; -inf and 0: it lies elsewhere */
    float moment;        /* sum of (z2 - k) 2^(z2 - k); 0 without entropy */
    float largest;       /* logit before softcap; -inf without argmax */
    i32 largest_index;   /* in the whole vocabulary; FLP_NO_INDEX: none */
    float logit_sum;     /* sum of w[v] z[v]; 0 where it is not wanted */
} flp_linear_partial;

enum { FLP_NO_INDEX = 0x7fffffff };

/* Where a row's target lies: the entry of the shard's own, which other kernels take for a target, or one of these. To a forward none of them is a target;
 * a backward, whose vocabulary ends at FLP_ENTRY_END, takes the first for a target that none of its tiles has. */
enum { FLP_ENTRY_ELSEWHERE = 0x7ffffffe, FLP_ENTRY_END = 0x7fffffff, FLP_ENTRY_BAD = -1, FLP_ENTRY_IGNORED = -2 };

/* linear_logp_shard_targets: ceil(rows / threads) blocks. */
typedef struct ShardTargetsParams {
    const void *target; /* [rows] int32 or int64, of the whole vocabulary */
    i32 *entry;         /* [rows] */
    i64 rows, ignore_index, vocab_first, vocab_total;
    i32 vocab, target_bytes; /* of the shard; 4 or 8 */
    i32 ignores;             /* 1: rows whose target is ignore_index are ignored; 0: none is */
    i32 unused;
} flp_shard_targets_params;

/* linear_logp_partials, in place of the combine: ceil(rows / manifest.block_rows) blocks. */
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
    flp_tally *target_errors; /* how many targets were out of range, the first such row */
    i64 rows, ignore_index, vocab_total;
    i32 ranks, target_bytes;
    i32 ignores;
    i32 unused;
} flp_linear_merge_params;

/* linear_logp_backward_other_shards: any number of blocks. */
typedef struct OtherShardsParams {
    flp_row_target *targets; /* [rows]: of valid rows */
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
