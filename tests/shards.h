/* Shards of a vocabulary: makes the problems and args of each shard of a case of cases.h, gradient_cases.h and others, for any path. */
#ifndef FLP_TESTS_SHARDS_H
#define FLP_TESTS_SHARDS_H
#include "gradient_cases.h"

enum { FLP_MOST_SHARDS = 8 };

/* Where shards begin and end, in sixteenths of the vocabulary. */
typedef struct {
    const char *name;
    int ranks, cut[FLP_MOST_SHARDS + 1];
} flp_cutting;

/* 1, 2, 4 and 8 equal shards, uneven ones (3, 4, 5 and 4 sixteenths), and some that are empty. */
enum { FLP_CUTTINGS = 6 };
extern const flp_cutting flp_cuttings[FLP_CUTTINGS];

flp_linear_logp_problem flp_shard_of(const flp_linear_logp_problem *whole, const flp_cutting *cutting, int rank);

/* A tensor over the vocabulary, from the shard's first entry on; NULL if the shard is empty. step: elements from one entry to the next. */
const void *flp_shard_tensor(const void *whole, const flp_linear_logp_problem *shard, flp_dtype dtype, int64_t step);
/* The step of a weight with this row stride. */
int64_t flp_shard_step(const flp_linear_logp_problem *shard, int64_t stride);

flp_linear_logp_args flp_shard_args(const flp_linear_logp_args *whole, const flp_linear_logp_problem *shard, float *partials);
flp_linear_logp_merge_args flp_shard_merge_args(const flp_linear_logp_args *whole, const float *partials, int ranks);

/* A shard's problem of a backward, and its args. grad_hidden: [rows, D] f32, the shard's part of it. */
flp_linear_logp_backward_problem flp_shard_backward_of(const flp_linear_logp_backward_problem *whole, const flp_cutting *cutting, int rank);
flp_linear_logp_backward_args flp_shard_backward_args(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args,
                                                      const flp_linear_logp_backward_problem *shard, float *grad_hidden);
/* Sums up parts [ranks][rows][D] in fp32, in their order, and writes the sum to grad_hidden or, if it is accumulated, adds it. */
void flp_shard_sum_hidden(const flp_linear_logp_backward_problem *whole, const flp_linear_logp_backward_args *args, const float *parts, int ranks);

/* The same for linear_cross_entropy, with its default memory_budget. */
flp_linear_cross_entropy_problem flp_shard_cross_entropy_of(const flp_linear_cross_entropy_problem *whole, const flp_cutting *cutting, int rank);
flp_linear_cross_entropy_args flp_shard_cross_entropy_args(const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                                           const flp_linear_cross_entropy_problem *shard, float *partials, float *grad_hidden);
/* Executes the partials of all shards, then the merges of all shards, by plans. partials: [ranks][rows][FLP_PARTIAL_FLOATS]; grad_hidden: [ranks][rows][D], the
 * parts of it; bad_count, bad_first: the bad targets that the last shard's plan has counted. */
typedef struct {
    float *partials, *grad_hidden;
    int64_t bad_count, bad_first;
} flp_shard_cross_entropy;
flp_status flp_shard_run_cross_entropy_parts(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                             const flp_cutting *cutting, flp_shard_cross_entropy *run);
/* The same, and sums up the parts of grad_hidden, which must be host memory. */
flp_status flp_shard_run_cross_entropy(flp_context *context, const flp_linear_cross_entropy_problem *whole, const flp_linear_cross_entropy_args *args,
                                       const flp_cutting *cutting, flp_shard_cross_entropy *run);
#endif
