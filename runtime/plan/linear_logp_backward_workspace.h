/* How linear_logp's backward spends its memory budget, and where its kernels find their scratch inside one workspace. */
#ifndef FLP_PLAN_LINEAR_LOGP_BACKWARD_WORKSPACE_H
#define FLP_PLAN_LINEAR_LOGP_BACKWARD_WORKSPACE_H
#include "fusedlogp.h"
#include "plan/workspace.h"

/* The vocabulary goes by in chunks: for each, dlogit of all rows lies here. Where the forward leaves a stash, the terms 2^(z2 - k), it is that
 * of the first chunk, in dlogit's place: this one is not computed anew. Where that is all of the vocabulary, the rows that count may go by in
 * chunks, too, one after the other (chunk rows: so many at a time; else all). Offsets in bytes, each a multiple of FLP_WORKSPACE_ALIGNMENT; -1:
 * not there. Rows that count (not ignored, no bad target) stand close together in gradient, compact, sums and dlogit. */
typedef struct {
    int64_t chunk_rows; /* 0 without any gradient: then there is nothing here but the compact rows */
    int64_t columns;   /* of a chunk whose dlogit lies here: a multiple of FLP_BACKWARD_COLUMNS, as are the next two, all the same for any number of
                          rows. The sums of grad_hidden are added up chunk by chunk, so they decide its bits */
    int64_t stash_columns; /* of the first, 0: there is no stash, and nothing for it */
    int64_t borrowed_columns; /* of a chunk that has its dlogit in grad_weight, behind its own part, which is written later; 0: there is none */
    int64_t borrowed_rows; /* chunks are so wide as long as there is room for so many rows; where there are more, they lie here */
    int64_t gradient;  /* [chunk rows rounded up to 256][32 bytes]: what each row's derivatives need; a forward hands the row's sum over there */
    int64_t row, place; /* [rows] i32: where a counting row stands in hidden, and the inverse */
    int64_t targets;   /* [chunk rows][8 bytes]: of rows that count, the target and the derivative by its logit */
    int64_t terms;     /* [chunk rows][16 bytes]: these rows in the order of their targets; -1 without grad_weight */
    int64_t counts;    /* one i32: how many rows count; then two f32: dlogit's factor and its inverse */
    int64_t chunk_counts; /* i32: for each chunk of rows, how many of it there are */
    int64_t compact;   /* [rows][compact_stride] of hidden's dtype; -1: in grad_hidden, which is written last */
    int64_t offset;    /* for the stash: [rows] f32: k */
    int64_t overflow, block_overflow; /* [rows], [rows + 1] i32 */
    int64_t row_factor; /* [chunk rows] f32: what a row's terms times it are derivatives */
    int64_t kept;      /* with a grad_filter_eps: [row blocks of 64, of rows rounded up to 256][kept_words] u32, one bit a block; else -1 */
    int64_t kept_words;
    int64_t dlogit;    /* [chunk rows][columns of the chunk] of hidden's dtype; where grad_hidden has no sums, with room for [rows][D] */
    int64_t scratch;   /* from here on, nothing is written before the forward has ended */
    int64_t sums;      /* [chunk rows][D] f32: grad_hidden's, -1 where not wanted, or where it is one product of a stash of the whole vocabulary, in
                          grad_hidden's own dtype: written there, rows close together, then by way of the stash to their places */
    int64_t bytes;     /* of all */
    int64_t compact_stride; /* elements */
    int64_t forward_stride; /* of compact rows that are not in grad_hidden */
} flp_linear_logp_backward_workspace;

enum {
    FLP_BACKWARD_COLUMNS = 256,  /* the least width of a chunk: one tile */
    FLP_BACKWARD_COUNTS_BYTES = 12
};

typedef struct {
    int64_t columns;
    int64_t borrowed; /* where in grad_weight dlogit lies, in bytes; -1: in the workspace */
} flp_vocab_chunk;

/* The chunk that begins at vocabulary entry `first`, behind the stash. */
flp_vocab_chunk flp_linear_logp_backward_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_linear_logp_backward_workspace *layout,
                                                  int64_t first);

/* Whatever the problem's memory_budget. The default is what a budget of 0 stands for. */
int64_t flp_linear_logp_backward_least_budget(const flp_linear_logp_backward_problem *normal);
int64_t flp_linear_logp_backward_default_budget(const flp_linear_logp_backward_problem *normal);

/* Within the budget for rows <= the problem's. stashes: 1: the forward leaves a stash. row_chunk: flp_linear_logp_backward_row_chunk's, or 0. */
flp_linear_logp_backward_workspace flp_linear_logp_backward_workspace_lay_out(const flp_linear_logp_backward_problem *normal, int stashes,
                                                                              int64_t row_chunk, int64_t rows);

/* 1: with a stash there is no need of sums. */
int flp_linear_logp_backward_is_direct(const flp_linear_logp_backward_problem *normal, int64_t row_chunk);

/* How many rows at a time have room for a stash of the whole vocabulary, where grad_weight is added to in fp32 and so may be completed chunk
 * of rows by chunk of rows; 0: too few, or all. */
int64_t flp_linear_logp_backward_row_chunk(const flp_linear_logp_backward_problem *normal);
#endif
