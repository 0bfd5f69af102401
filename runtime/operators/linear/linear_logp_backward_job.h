/* One call of linear_logp's backward on the CPU path: what its phases share.
 *
 * The vocabulary is processed in blocks of chunks, and for each block the rows in groups of sets. For a block and a group there are four phases, each of many
 * units on the thread pool: gather the group's rows, compute the derivatives by the logits, add their products with the weight to grad_hidden, and add their
 * products with hidden (and their sums) to the block's grad_weight (and grad_bias). A block's sums are complete after its last group, in which each unit
 * writes its part of grad_weight while it is in a cache; a row's are after the last block.
 *
 * The sizes of blocks, groups and units do not change the bits: grad_hidden's terms are added chunk by chunk, and grad_weight's in blocks of FLP_CHUNK_DEPTH
 * rows, of which a group is a multiple. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_JOB_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_JOB_H
#include "operators/linear/linear_logp_cpu.h"
#include "operators/linear/logit_chunk.h"
#include "operators/linear/logit_gradient.h"
#include "operators/linear/row_set.h"
#include "cpu/thread_pool.h"

enum {
    FLP_BACKWARD_GROUP_ROWS = 4 * FLP_CHUNK_DEPTH,
    FLP_BACKWARD_GROUP_SETS = FLP_BACKWARD_GROUP_ROWS / FLP_LANES,
    FLP_BACKWARD_BLOCK_CHUNKS = 16,
    FLP_BACKWARD_LOGITS = FLP_CHUNK_COLUMNS * FLP_LANES,             /* of one set and one chunk */
    FLP_BACKWARD_PANELS = FLP_BACKWARD_GROUP_ROWS / FLP_CHUNK_DEPTH, /* a chunk's derivatives by a group's rows, as grad_weight's products read them */
    FLP_BACKWARD_LINE_PANELS = 16,                                   /* panels of hidden whose sums are written to grad_weight as one line */
    FLP_BACKWARD_LINE_FLOATS = FLP_BACKWARD_LINE_PANELS * FLP_BACKWARD_LOGITS,
    FLP_BACKWARD_SCRATCH = FLP_BACKWARD_PANELS * FLP_CHUNK_PANEL_FLOATS + FLP_BACKWARD_LINE_FLOATS + 2 * FLP_CHUNK_DEPTH
};

typedef struct {
    const flp_linear_logp_backward_problem *problem;
    const flp_linear_logp_backward_args *args;
    const flp_backward_uniform *uniform; /* or NULL */
    const flp_saved_logits *saved;       /* or NULL */
    const flp_row_shares *shares;        /* or NULL */
    flp_linear_logp_args inputs;         /* those with which args begins */
    flp_thread_pool *pool;
    const flp_microkernel *kernel;

    int64_t rows, *row;     /* the rows that contribute to the gradients: their number, and their indices in the caller's arrays */
    int64_t chunks, panels; /* of the vocabulary; of sixteen components of hidden */

    int64_t first_chunk; /* of the block */
    int block_chunks;
    int64_t first_row; /* of the group: in row[] */
    int group_rows, sets;
    int parts; /* of the sets or lines, in the phase that runs: a unit has one */

    flp_logit_gradient gradient[FLP_BACKWARD_GROUP_SETS];
    int64_t words;                           /* 32-bit words of a row, as the microkernel reads it */
    float *hidden_sets;                      /* [FLP_BACKWARD_GROUP_SETS][words][16]: sixteen rows side by side */
    float *hidden_panels;                    /* [panels][words of FLP_BACKWARD_GROUP_ROWS][16]: sixteen components side by side; NULL without grad_weight */
    float *derivatives;                      /* [FLP_BACKWARD_BLOCK_CHUNKS][FLP_BACKWARD_GROUP_SETS][FLP_CHUNK_COLUMNS][16] */
    float *pairs;                            /* [same][same][FLP_CHUNK_COLUMNS / 2][16]: the same in bf16, two entries in a word; NULL: fp32 is used */
    float residual[FLP_BACKWARD_GROUP_ROWS]; /* with pairs: the rounding error of the derivative by the target's logit */
    float *grad_hidden;                      /* [sets of all rows][D][16]; NULL where the gradient is not requested */
    float *grad_weight;                      /* [FLP_BACKWARD_BLOCK_CHUNKS][panels][FLP_CHUNK_COLUMNS][16]; NULL: not requested, or the rows are one group */
    double *grad_bias;                       /* [FLP_BACKWARD_BLOCK_CHUNKS][FLP_CHUNK_COLUMNS]; NULL where it is not requested */
    float *scratch;                          /* for each thread: panels, a line's sums, the bias, the class weights */
} flp_backward_job;

/* The phases of one group, then of one block, then of the call. */
void flp_backward_gather(flp_backward_job *job);
void flp_backward_differentiate(flp_backward_job *job);
void flp_backward_add_to_hidden(flp_backward_job *job);
void flp_backward_add_to_weight(flp_backward_job *job);
void flp_backward_add_to_bias(flp_backward_job *job);
void flp_backward_store_bias(flp_backward_job *job);
void flp_backward_store_hidden(flp_backward_job *job);
/* Writes a line of a chunk's grad_weight: the sums [count][FLP_CHUNK_COLUMNS][16] of panels first .. first + count - 1, at most FLP_BACKWARD_LINE_PANELS. */
void flp_backward_store_weight(const flp_backward_job *job, int chunk, int64_t first, int count, const float *sums);

/* Returns the number of vocabulary entries of a chunk of the block; *first: the first of them. */
static inline int flp_backward_chunk(const flp_backward_job *job, int chunk, int64_t *first)
{
    *first = (job->first_chunk + chunk) * FLP_CHUNK_COLUMNS;
    int64_t left = job->problem->forward.vocab - *first;
    return left < FLP_CHUNK_COLUMNS ? (int)left : FLP_CHUNK_COLUMNS;
}

static inline int64_t flp_backward_panel_words(const flp_backward_job *job)
{
    return flp_microkernel_words(job->kernel, FLP_BACKWARD_GROUP_ROWS) * FLP_LANES;
}

static inline float *flp_backward_pairs(const flp_backward_job *job, int chunk, int set)
{
    return job->pairs + ((int64_t)chunk * FLP_BACKWARD_GROUP_SETS + set) * (FLP_BACKWARD_LOGITS / 2);
}

static inline float *flp_backward_derivatives(const flp_backward_job *job, int chunk, int set)
{
    return job->derivatives + ((int64_t)chunk * FLP_BACKWARD_GROUP_SETS + set) * FLP_BACKWARD_LOGITS;
}
#endif
