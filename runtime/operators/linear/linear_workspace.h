/* The workspace of linear_logp, its backward and linear_cross_entropy: what is handed from which launch to which. */
#ifndef FLP_OPERATORS_LINEAR_WORKSPACE_H
#define FLP_OPERATORS_LINEAR_WORKSPACE_H
#include "operators/linear/vocab_chunks.h"
#include "core/workspace.h"
#include "params/linear_logp_backward.h"

/* The launches of all three, in the order in which they come; each operator has some of them. */
#define FLP_LINEAR_STEP_LIST(X)                                                                                                     \
    X(SHARD_TARGETS, "targets of a shard") /* where each row's target lies among the shard's entries */                             \
    X(INDEX_ROWS, "index of valid rows")   /* which rows are valid, and their packed index */                                       \
    X(GATHER, "gathering for the forward")                                                                                          \
    X(OFFSETS, "saved exponentials' offsets")                                                                                       \
    X(TILES, "tiles") /* the first of what is done for each chunk of rows */                                                        \
    X(COMBINE, "combine")                                                                                                           \
    X(MERGE_SUMS, "what losses take of the shards")                                                                                 \
    X(TILES_AGAIN, "tiles that overflowed")                                                                                         \
    X(FORWARD_HIDDEN, "grad_hidden's product in the forward")                                                                       \
    X(LOSSES, "losses")                                                                                                             \
    X(DIFFERENTIATE, "derivatives of rows")                                                                                         \
    X(GATHER_AGAIN, "gathering for the backward")                                                                                   \
    X(ORDER_TARGETS, "order of targets")                                                                                            \
    X(OTHER_SHARDS, "targets of other shards")                                                                                      \
    X(SCALE_ROWS, "scaling of rows for the saved exponentials") /* the first chunk of the vocabulary, which the forward has left */ \
    X(SAVED_EXP_BLOCK, "saved exponentials computed again")                                                                         \
    X(SAVED_EXP_BIAS, "grad_bias of the saved exponentials")                                                                        \
    X(SAVED_EXP_WEIGHT, "grad_weight of the saved exponentials")                                                                    \
    X(UNSCALE_ROWS, "gathering behind the saved exponentials")                                                                      \
    X(SAVED_EXP_HIDDEN, "grad_hidden of the saved exponentials")                                                                    \
    X(UNSCALE_BEHIND, "gathering behind all blocks of saved exponentials") /* where they lie in grad_weight, in its place */        \
    X(CLEAR_FILTER, "clearing of the filter")                                                                                       \
    X(GRAD_LOGITS, "logit gradients") /* the first of what is done for each other chunk of the vocabulary */                        \
    X(BIAS, "grad_bias")                                                                                                            \
    X(WEIGHT, "grad_weight product")                                                                                                \
    X(HIDDEN, "grad_hidden product")                                                                                                \
    X(WEIGHT_SECOND, "grad_weight product behind grad_hidden's")                                                                    \
    X(COUNT_FILTER, "counting of the filter")      /* the last of that */                                                           \
    X(FINISH, "grad_hidden")                       /* the last of what is done for each chunk of rows */                            \
    X(BIAS_BEHIND, "grad_bias behind grad_hidden") /* of the last chunk of the vocabulary, where grad_hidden comes first */         \
    X(WEIGHT_BEHIND, "grad_weight product behind grad_hidden")                                                                      \
    X(STAGE, "staging of grad_hidden")                                                                                              \
    X(SCATTER, "scattering of grad_hidden")

typedef enum {
#define FLP_LINEAR_STEP(name, text) FLP_STEP_##name,
    FLP_LINEAR_STEP_LIST(FLP_LINEAR_STEP)
#undef FLP_LINEAR_STEP
        FLP_LINEAR_STEPS
} flp_linear_step;

/* A chunk of rows: those that go through all of a call at a time. Valid rows (not ignored, no bad target) stand packed in what says so. */
typedef enum {
    FLP_PART_ENTRY, /* [rows] i32, of a shard of the vocabulary: the entry of each row's target (params/linear_logp_shard.h), for which others take it */
    FLP_PART_ROW,
    FLP_PART_PACKED_INDEX, /* [rows] i32: where the row of a packed index stands in hidden; a row's packed index, -1: it is not valid */
    FLP_PART_COUNTS,       /* flp_backward_counts */
    FLP_PART_CHUNK_COUNTS, /* i32: for each chunk of rows, how many of it there are */
    FLP_PART_PACKED_ROWS,  /* [rows][packed stride] of hidden's dtype: the valid rows; not there where grad_hidden holds them, which is written last. With
                              grad_hidden's product in the forward, that of a row in fp32 when it is there: so far apart are the rows */
    FLP_PART_FORWARD_ROWS, /* [rows][forward stride]: these, where the backward has them in grad_hidden and the forward is a call of its own */
    /* linear_logp's, by the tile kernel for the combine: [chunk rows][splits][2] f32, likewise, [chunk rows][splits] f32, [chunk rows][2] f32 */
    FLP_PART_PARTIAL,
    FLP_PART_BEST,
    FLP_PART_MOMENT,
    FLP_PART_TARGET_LOGIT,
    FLP_PART_TICKET,     /* u64: the tile kernel's own */
    FLP_PART_LOGIT_SUMS, /* [chunk rows][splits] f32: linear_cross_entropy's, as the next */
    FLP_PART_LOGP,
    FLP_PART_LSE,
    FLP_PART_ENTROPY,
    FLP_PART_LOGIT_SUM, /* [rows] f32: where the caller wants none */
    FLP_PART_G_LOGP,
    FLP_PART_G_LSE,
    FLP_PART_G_ENTROPY,
    FLP_PART_G_SUM, /* [rows] f32 */
    /* For the saved exponentials, of valid rows: k [rows] f32; which rows overflowed, and which blocks of them [rows], [rows + 1] i32 */
    FLP_PART_SAVED_EXP_OFFSET,
    FLP_PART_OVERFLOW,
    FLP_PART_BLOCK_OVERFLOW,
    FLP_PART_ROW_FACTOR,   /* [chunk rows] f32: what a row's terms times it are derivatives */
    FLP_PART_GRADIENT,     /* [chunk rows rounded up to 256][32 bytes]: what each row's derivatives need; a forward hands the row's sum over there */
    FLP_PART_TARGETS,      /* [chunk rows][8 bytes]: of valid rows, the target and the derivative by its logit */
    FLP_PART_TARGET_ORDER, /* [chunk rows][16 bytes]: these rows in the order of their targets */
    FLP_PART_SCALED_ROWS,  /* [chunk rows][D] of hidden's dtype: packed rows times their factors, where saved exponentials are computed again and
                               grad_weight has no room for them, or grad_hidden's product comes first */
    FLP_PART_KEPT,         /* with a grad_filter_eps: [row blocks of 64, of rows rounded up to 256][kept words] u32, one bit a block */
    FLP_PART_DLOGIT,       /* [chunk rows][columns of the chunk] of hidden's dtype. The saved exponentials, where there is one. Where one chunk is all of the
                               vocabulary and grad_hidden one product of it, then [rows][D], on the way to their places */
    FLP_PART_SUMS,         /* [chunk rows][D] f32: grad_hidden's; not there where that is one product */
    FLP_LINEAR_PARTS
} flp_linear_part;

typedef struct {
    int32_t count;                   /* how many rows count */
    float factor, inverse_factor;    /* dlogit's factor and its inverse */
    int32_t taken;                   /* with_forward: count, as the backward takes it */
    uint32_t meetings[FLP_MEETINGS]; /* of grad_weight's product and of grad_hidden's: params/matrix_product.h */
    unsigned long long mark;         /* with_forward: says whose count, row and place these are, until a backward has taken them */
} flp_backward_counts;

/* What a call has to do. */
typedef struct {
    const flp_linear_logp_problem *forward;           /* its sizes, strides and dtypes */
    int splits;                                       /* of the vocabulary in the forward; 0: there is no forward */
    int argmax, entropy;                              /* 1: the forward gives it */
    int losses;                                       /* 1: linear_cross_entropy */
    int logit_sums;                                   /* 1: its loss takes the sum of all logits */
    const flp_linear_logp_backward_problem *backward; /* NULL: linear_logp's alone, of all rows; without any gradient: of the valid ones */
    flp_backward_chunks chunks;
} flp_linear_work;

/* The stride of packed rows in FLP_PART_PACKED_ROWS or grad_hidden, and in FLP_PART_FORWARD_ROWS; elements. */
int64_t flp_linear_work_packed_stride(const flp_linear_work *work);
int64_t flp_linear_work_forward_stride(const flp_linear_work *work);

/* Words of a row block in FLP_PART_KEPT. */
int64_t flp_linear_work_kept_words(const flp_linear_work *work);

/* How many rows of a call's go through all of it at a time. */
int64_t flp_linear_work_chunk_rows(const flp_linear_work *work, int64_t rows);

/* For so many rows of a call. */
void flp_linear_workspace_lay_out(const flp_linear_work *work, int64_t rows, flp_workspace *workspace);
#endif
