/* A vocabulary cut into shards: the cases of cases.h and gradient_cases.h, shard by shard, by any path. */
#ifndef FLP_TESTS_SHARDS_H
#define FLP_TESTS_SHARDS_H
#include "gradient_cases.h"

enum { FLP_MOST_SHARDS = 8 };

/* Where shards begin and end, in sixteenths of the vocabulary. */
typedef struct {
    const char *name;
    int ranks, cut[FLP_MOST_SHARDS + 1];
} flp_cutting;

/* 1, 2, 4, 8, uneven (3, 4, 5 and 4 sixteenths), and some of them empty. */
enum { FLP_CUTTINGS = 6 };
extern const flp_cutting flp_cuttings[FLP_CUTTINGS];

flp_linear_logp_problem flp_shard_of(const flp_linear_logp_problem *whole, const flp_cutting *cutting, int rank);

/* A tensor of the vocabulary, from the shard's first entry on; NULL where the shard is empty. step: elements from entry to entry. */
const void *flp_shard_tensor(const void *whole, const flp_linear_logp_problem *shard, flp_dtype dtype, int64_t step);
/* step, of a weight with that row stride. */
int64_t flp_shard_step(const flp_linear_logp_problem *shard, int64_t stride);

flp_linear_logp_args flp_shard_args(const flp_linear_logp_args *whole, const flp_linear_logp_problem *shard, float *partials);
flp_linear_logp_merge_args flp_shard_merge_args(const flp_linear_logp_args *whole, const float *partials, int ranks);

/* A shard's problem of the whole with its gradients, whose part of grad_hidden is [rows, D] f32, and its args. */
flp_linear_logp_backward_problem flp_shard_backward_of(const flp_linear_logp_backward_problem *whole, const flp_cutting *cutting, int rank);
flp_linear_logp_backward_args flp_shard_backward_args(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args,
                                                      const flp_linear_logp_backward_problem *shard, float *grad_hidden);
/* parts [ranks][rows][D], summed up in fp32 in their order, into grad_hidden, or added to what stands there. */
void flp_shard_sum_hidden(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args, const float *parts, int ranks);

/* linear_cross_entropy's, with its default memory_budget. */
flp_linear_cross_entropy_problem flp_shard_cross_entropy_of(const flp_linear_cross_entropy_problem *whole, const flp_cutting *cutting, int rank);
flp_linear_cross_entropy_args flp_shard_cross_entropy_args(const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                                           const flp_linear_cross_entropy_problem *shard, float *partials, float *grad_hidden);
/* All shards' partials, then all their merges, by plans, whose bad targets are those of the last one. scratch: [ranks][rows][FLP_PARTIAL_FLOATS] partials and
 * [ranks][rows][D] parts of grad_hidden. */
typedef struct {
    float *partials, *grad_hidden;
    int64_t bad_count, bad_first;
} flp_shard_cross_entropy;
flp_status flp_shard_run_cross_entropy_parts(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                             const flp_cutting *cutting, flp_shard_cross_entropy *run);
/* The same, and the sum of the parts of grad_hidden, which the host can read. */
flp_status flp_shard_run_cross_entropy(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                       const flp_cutting *cutting, flp_shard_cross_entropy *run);
#endif
