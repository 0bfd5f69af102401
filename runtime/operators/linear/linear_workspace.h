/* The workspace of linear_logp, its backward and linear_cross_entropy: its parts, and the launches that hand them to one another. */
#ifndef FLP_OPERATORS_LINEAR_WORKSPACE_H
#define FLP_OPERATORS_LINEAR_WORKSPACE_H
#include "operators/linear/vocab_chunks.h"
#include "core/workspace.h"
#include "params/linear_logp_backward.h"

/* The launches of all three operators, in order. Each operator has some of them. */
#define FLP_LINEAR_STEP_LIST(X)                                                                                                     \
    X(SHARD_TARGETS, "targets of a shard") /* where each row's target lies among the shard's entries */                             \
    X(INDEX_ROWS, "index of valid rows")   /* which rows are valid, and their packed index */                                       \
    X(GATHER, "gathering for the forward")                                                                                          \
    X(OFFSETS, "saved exponentials' offsets")                                                                                       \
    X(TILES, "tiles") /* begins the loop over chunks of rows */                                                                     \
    X(CHUNK_BEFORE, "grad_hidden of the chunk of rows before")                                                                      \
    X(COMBINE, "combine")                                                                                                           \
    X(MERGE_SUMS, "what losses take of the shards")                                                                                 \
    X(TILES_AGAIN, "tiles that overflowed")                                                                                         \
    X(FORWARD_HIDDEN, "grad_hidden's product in the forward")                                                                       \
    X(FORWARD_SUM, "sum of its parts in the forward")                                                                               \
    X(LOSSES, "losses")                                                                                                             \
    X(DIFFERENTIATE, "derivatives of rows")                                                                                         \
    X(GATHER_AGAIN, "gathering for the backward")                                                                                   \
    X(ORDER_TARGETS, "order of targets")                                                                                            \
    X(OTHER_SHARDS, "targets of other shards")                                                                                      \
    X(REST, "the rest's saved exponentials")                    /* which are moved, or computed again */                            \
    X(SCALE_ROWS, "scaling of rows for the saved exponentials") /* begins the chunk of the vocabulary that the forward has saved */ \
    X(UNSCALE_FOR_REST, "gathering for a block of the rest")    /* begins the loop over blocks that are computed again */           \
    X(SAVED_EXP_BLOCK, "saved exponentials computed again")                                                                         \
    X(SCALE_FOR_REST, "scaling of rows for a block of the rest")                                                                    \
    X(SAVED_EXP_BIAS, "grad_bias of the saved exponentials")                                                                        \
    X(SAVED_EXP_WEIGHT, "grad_weight of the saved exponentials")                                                                    \
    X(UNSCALE_ROWS, "gathering behind the saved exponentials")                                                                      \
    X(SAVED_EXP_HIDDEN, "grad_hidden of the saved exponentials")                                                                    \
    X(SAVED_EXP_SUM, "sum of grad_hidden's parts")                                                                                  \
    X(UNSCALE_BEHIND, "gathering behind all blocks of saved exponentials") /* as UNSCALE_ROWS, for blocks in grad_weight */         \
    X(CLEAR_FILTER, "clearing of the filter")                                                                                       \
    X(GRAD_LOGITS, "logit gradients") /* begins the loop over the other chunks of the vocabulary */                                 \
    X(BIAS, "grad_bias")                                                                                                            \
    X(WEIGHT, "grad_weight product")                                                                                                \
    X(HIDDEN, "grad_hidden product")                                                                                                \
    X(WEIGHT_SECOND, "grad_weight product behind grad_hidden's")                                                                    \
    X(COUNT_FILTER, "counting of the filter")      /* ends this loop */                                                             \
    X(FINISH, "grad_hidden")                       /* ends the loop over chunks of rows */                                          \
    X(BIAS_BEHIND, "grad_bias behind grad_hidden") /* of the last chunk of the vocabulary, if grad_hidden comes first */            \
    X(WEIGHT_BEHIND, "grad_weight product behind grad_hidden")                                                                      \
    X(STAGE, "staging of grad_hidden")                                                                                              \
    X(SCATTER, "scattering of grad_hidden")

typedef enum {
#define FLP_LINEAR_STEP(name, text) FLP_STEP_##name,
    FLP_LINEAR_STEP_LIST(FLP_LINEAR_STEP)
#undef FLP_LINEAR_STEP
        FLP_LINEAR_STEPS
} flp_linear_step;

/* The parts of the workspace. Valid rows are those whose target is neither ignored nor bad. "chunk rows" is the number of rows that are processed at a time
 * (flp_linear_work_chunk_rows); with in_forward (vocab_chunks.h), parts that are used after the forward have all rows instead. */
typedef enum {
    FLP_PART_ENTRY,        /* [rows] i32, for a shard: its entry for each row's target, which kernels read as the target (params/linear_logp_shard.h) */
    FLP_PART_ROW,          /* [rows] i32: the index in hidden of each packed row */
    FLP_PART_PACKED_INDEX, /* [rows] i32: the inverse, the packed index of each row; -1: the row is not valid */
    FLP_PART_COUNTS,       /* flp_backward_counts */
    FLP_PART_CHUNK_COUNTS, /* [chunks of rows] i32: the number of valid rows in each */
    /* [rows][packed stride] of hidden's dtype: the valid rows. Absent where they are stored in grad_hidden until that is written, at the end. With in_forward,
     * the stride leaves room for the row of fp32 products that replaces each row. */
    FLP_PART_PACKED_ROWS,
    FLP_PART_FORWARD_ROWS, /* [rows][forward stride]: the valid rows for a forward that is a call of its own, where the backward has them in grad_hidden */
    /* What linear_logp's tile kernel leaves for the combine (params/linear_logp.h): */
    FLP_PART_PARTIAL,      /* [chunk rows][splits][2] f32 */
    FLP_PART_BEST,         /* [chunk rows][splits][2] f32 */
    FLP_PART_MOMENT,       /* [chunk rows][splits] f32 */
    FLP_PART_TARGET_LOGIT, /* [chunk rows][2] f32 */
    FLP_PART_TICKET,       /* u64: the counter of the tile kernel's dynamic tile scheduler */
    FLP_PART_LOGIT_SUMS,   /* [chunk rows][splits] f32: linear_cross_entropy's, as are the parts up to G_SUM */
    /* [rows] f32 each: results of the forward for which the caller has no array, and the loss' derivatives by these results */
    FLP_PART_LOGP,
    FLP_PART_LSE,
    FLP_PART_ENTROPY,
    FLP_PART_LOGIT_SUM,
    FLP_PART_G_LOGP,
    FLP_PART_G_LSE,
    FLP_PART_G_ENTROPY,
    FLP_PART_G_SUM,
    /* For the saved exponentials of valid rows: */
    FLP_PART_SAVED_EXP_OFFSET, /* [rows] f32: k */
    FLP_PART_OVERFLOW,         /* [rows] i32: which rows overflowed */
    FLP_PART_BLOCK_OVERFLOW,   /* [rows + 1] i32: which blocks of rows have such a row (params/linear_logp.h) */
    FLP_PART_ROW_FACTOR,       /* [chunk rows] f32: the factor that turns a row's saved exponentials into derivatives */
    /* flp_row_gradient [chunk rows rounded up to FLP_BACKWARD_ROW_BLOCK]: the rows' coefficients; before, the sums that a forward hands over */
    FLP_PART_GRADIENT,
    FLP_PART_TARGETS,      /* flp_row_target [chunk rows]: the valid rows' targets and the derivatives by their logits */
    FLP_PART_TARGET_ORDER, /* flp_sorted_target [chunk rows]: the valid rows sorted by target */
    /* [chunk rows][forward stride] of hidden's dtype: the packed rows times their factors. Only where saved exponentials are computed again and these rows
     * have no place in grad_weight (FLP_SCALED_IN_WORKSPACE), or where grad_hidden's product comes first. */
    FLP_PART_SCALED_ROWS,
    /* With grad_filter_eps: [kept row blocks][kept words] u32: a bit for each block of dlogit that the products do not skip. */
    FLP_PART_KEPT,
    /* [chunk rows][columns of the chunk] of hidden's dtype: dlogit, or the saved exponentials in its place. With `direct`, grad_hidden's rows [rows][D] pass
     * through it at the end, on the way to their places. */
    FLP_PART_DLOGIT,
    FLP_PART_PARTS, /* [parts][chunk rows rounded up to FLP_BACKWARD_ROW_BLOCK][D] f32: the sums of grad_hidden's product, where it has parts */
    FLP_PART_SUMS,  /* [chunk rows][D] f32: the sums of grad_hidden; absent where grad_hidden is one product */
    FLP_LINEAR_PARTS
} flp_linear_part;

typedef struct {
    int32_t count;                   /* the number of valid rows */
    float factor, inverse_factor;    /* a power of two by which dlogit is multiplied where it is stored in fp16, else 1; and its inverse */
    int32_t taken;                   /* with_forward: the count that the backward uses */
    uint32_t meetings[FLP_MEETINGS]; /* counters of grad_weight's product and of grad_hidden's: params/matrix_product.h */
    unsigned long long mark;         /* with_forward: identifies the forward that wrote count, row and packed index, until a backward has used them; then 0 */
    double loss_factor;              /* of the sum of losses, from the launch of the first chunk of rows on */
} flp_backward_counts;

/* What a call has to do, as far as its workspace depends on it. */
typedef struct {
    const flp_linear_logp_problem *forward;           /* its sizes, strides and dtypes */
    int splits;                                       /* of the vocabulary in the forward; 0: there is no forward */
    int argmax, entropy;                              /* 1: the forward computes it */
    int losses;                                       /* 1: linear_cross_entropy */
    int logit_sums;                                   /* 1: its loss uses the weighted sum of a row's logits */
    const flp_linear_logp_backward_problem *backward; /* NULL: linear_logp alone, for all rows; without any gradient: the forward alone, for valid rows */
    flp_backward_chunks chunks;
} flp_linear_work;

/* Row strides in elements: of packed rows in FLP_PART_PACKED_ROWS or grad_hidden; of FLP_PART_FORWARD_ROWS. */
int64_t flp_linear_work_packed_stride(const flp_linear_work *work);
int64_t flp_linear_work_forward_stride(const flp_linear_work *work);

/* The row blocks of FLP_PART_KEPT for so many rows, and the words of each. */
int64_t flp_linear_work_kept_row_blocks(int64_t rows);
int64_t flp_linear_work_kept_words(const flp_linear_work *work);

/* The number of a call's rows that are processed at a time: a chunk of rows, or all. */
int64_t flp_linear_work_chunk_rows(const flp_linear_work *work, int64_t rows);

/* Lays out the workspace for a call of `rows` rows. */
void flp_linear_workspace_lay_out(const flp_linear_work *work, int64_t rows, flp_workspace *workspace);
#endif
