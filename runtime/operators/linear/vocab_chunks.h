/* The chunks of the vocabulary, and of rows, in which linear_logp's backward goes by. */
#ifndef FLP_OPERATORS_VOCAB_CHUNKS_H
#define FLP_OPERATORS_VOCAB_CHUNKS_H
#include "fusedlogp.h"

enum { FLP_BACKWARD_COLUMNS = 256 /* the least width of a chunk: one tile */ };

/* For each chunk of the vocabulary dlogit of all rows is kept. Where the forward leaves saved exponentials, the terms 2^(z2 - k), they are those of the
 * first chunk, in dlogit's place: its logits are not computed again. Where that is all of the vocabulary, the valid rows may go by in chunks, too, one
 * after the other. Widths are multiples of FLP_BACKWARD_COLUMNS and the same for any number of rows: the sums of grad_hidden are added up chunk by chunk, so
 * they decide its bits. A plan chooses them once (operators/linear/linear_budget.h). */
typedef struct {
    int saves_exp;            /* 1: the forward leaves saved exponentials */
    int direct;               /* 1: grad_hidden is one product of the whole vocabulary's saved exponentials or derivatives, in its own dtype and without sums:
                                 written to grad_hidden, rows close together, then by way of dlogit's room to their places */
    int in_forward;           /* 1: of a forward and a backward that wants grad_hidden alone. That product is the forward's, of each chunk of rows in place of
                                 these, in fp32, before it is known what a row's upstream gradient is: a factor, which the backward applies */
    int hidden_first;         /* 1: with direct and saved exponentials in the workspace, that product comes before grad_weight's, which then fills the
                                 multiprocessors that the long tiles of the last round leave idle: the rows times their factors have a place of their own */
    int narrow;               /* with in_forward: 1: narrower tiles fill more multiprocessors with such a product */
    int64_t row_chunk;        /* > 0: rows go by in chunks of so many, a multiple of FLP_BACKWARD_ROW_BLOCK; 0: all at a time */
    int64_t columns;          /* of a chunk whose dlogit lies in the workspace */
    int64_t saved_columns;    /* of the first, 0: there are no saved exponentials */
    int64_t lent_columns;     /* > 0: the saved exponentials lie in grad_weight, which is written behind them, in blocks of so many columns, of which
                                 saved_columns is a multiple; each is a chunk. More than borrowed_rows may leave room for the first alone, there or in the
                                 workspace; the others are then computed again, in the workspace, for the same bits. 0: one, in the workspace */
    int64_t borrowed_columns; /* of a chunk that has its dlogit in grad_weight, behind its own part, which is written later; 0: there is none */
    int64_t borrowed_rows;    /* chunks are so wide as long as there is room for so many rows; where there are more, they lie in the workspace */
} flp_backward_chunks;

enum { FLP_BACKWARD_ROW_BLOCK = 256 /* rows of the tallest cluster, which plans hold their kernels to */ };

typedef struct {
    int64_t columns;
    int64_t borrowed; /* where in grad_weight dlogit lies, in bytes; -1: in the workspace */
} flp_vocab_chunk;

/* The chunk that begins at vocabulary entry `first`, behind the saved exponentials. rows: at a time. */
flp_vocab_chunk flp_vocab_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first);

/* The widest chunk whose dlogit or saved exponentials lie in the workspace. rows: at a time. */
int64_t flp_vocab_chunks_widest(const flp_backward_chunks *chunks, int64_t rows);

/* 1: from vocabulary entry `first` on, chunks of so many columns and rows have room in grad_weight behind their own part of it. */
int flp_vocab_chunks_can_borrow(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows);

/* How many blocks of so many columns, and rows, grad_weight has room for: each behind what is written before it has been read. */
int64_t flp_vocab_chunks_most_lent(const flp_linear_logp_backward_problem *normal, int64_t columns, int64_t rows);

/* The saved exponentials of so many rows where grad_weight lends them a place. Where a block is computed again, the products take both the rows and these times
 * their factors, which then have a place of their own. */
typedef struct {
    int64_t blocks;     /* that are saved */
    int64_t again;      /* that are computed again */
    int64_t first;      /* where in grad_weight the first block begins, in bytes; -1: where dlogit is in the workspace, which has room for more of them */
    int64_t block_rows; /* rows of a block */
    int64_t scaled;     /* where in grad_weight rows times their factors are, if blocks are computed again; -1: in the workspace */
} flp_vocab_lending;
flp_vocab_lending flp_vocab_chunks_lending(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows);

/* The stride of packed rows in a place of their own, in elements. */
int64_t flp_vocab_chunks_row_stride(const flp_linear_logp_backward_problem *normal);

/* 1: a gradient is asked for. */
static inline int flp_vocab_chunks_have_gradients(const flp_linear_logp_backward_problem *problem)
{
    return problem->grad_hidden != FLP_NONE || problem->grad_weight != FLP_NONE || problem->grad_bias != FLP_NONE;
}

/* 1: a frozen head, of which grad_hidden alone is asked for. */
static inline int flp_vocab_chunks_hidden_alone(const flp_linear_logp_backward_problem *problem)
{
    return problem->grad_hidden != FLP_NONE && problem->grad_weight == FLP_NONE && problem->grad_bias == FLP_NONE;
}

/* 1: no logit is computed again: what the forward leaves of each is its derivative, times its row's factor. */
static inline int flp_vocab_chunks_all_saved(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return chunks->saves_exp && chunks->saved_columns >= normal->forward.vocab;
}

/* The vocabulary in whole tiles. */
int64_t flp_vocab_chunks_all_columns(const flp_linear_logp_backward_problem *normal);

/* 1: a first chunk of so many columns, of saved exponentials or of derivatives, needs no sums of grad_hidden. */
int flp_vocab_chunks_are_direct(const flp_linear_logp_backward_problem *normal, int saves_exp, int64_t columns);

/* 1: rows times their factors may have a place of their own, and grad_hidden's product come before grad_weight's. chunks: of the whole vocabulary. */
int flp_vocab_chunks_can_go_hidden_first(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* 1: packed rows have a place of their own; 0: in grad_hidden, until it is written. */
int flp_vocab_chunks_keep_packed(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* 1: grad_hidden may be finished before the last chunk's grad_weight and grad_bias, for an exchange beside these. */
int flp_vocab_chunks_finish_first(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* Why derivatives can't come from saved exponentials, which hold 2^(z2 - k) in bf16 with one factor a row; NULL where they can. */
const char *flp_vocab_chunks_no_saved_exp(const flp_linear_logp_backward_problem *normal);

/* What the generator must know of them: "", ":direct", ":saved_exp", ":saved_exp:all_saved", ":saved_exp:direct", ":saved_exp:direct:hidden_first",
 * ":saved_exp:in_forward" or ":saved_exp:in_forward:narrow". */
const char *flp_vocab_chunks_hint(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);
#endif
