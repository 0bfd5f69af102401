/* How linear_logp's backward cuts the vocabulary and the rows into chunks, and where it stores what it keeps of a chunk. */
#ifndef FLP_OPERATORS_VOCAB_CHUNKS_H
#define FLP_OPERATORS_VOCAB_CHUNKS_H
#include "fusedlogp.h"
#include "params/tiles.h"

enum {
    FLP_BACKWARD_COLUMNS = 256, /* the least width of a chunk: one tile */
    FLP_PART_STEP = 64          /* parts of grad_hidden's product are multiples of this: whole steps of any kernel */
};

/* The backward processes the vocabulary chunk by chunk. For each chunk it stores dlogit, the derivatives of the loss by the logits, of all rows. Where the
 * forward leaves saved exponentials, the terms 2^(z2 - k), where z2 is a logit in base 2 and k an integer for each row, they take the place of the first
 * chunk's dlogit, and its logits are not computed again. A saved exponential times a factor of its row is the derivative. grad_hidden's product is multiplied
 * by these factors row by row; grad_weight's product takes the rows of hidden times their factors.
 *
 * There are three places where dlogit or the saved exponentials of a chunk may be stored:
 *   1. the workspace (FLP_PART_DLOGIT);
 *   2. grad_weight's memory, as long as its own entries have not been written there: it then holds saved exponentials ("lent") or dlogit ("borrowed");
 *   3. the workspace, for one chunk of rows at a time: possible where the first chunk is the whole vocabulary.
 *
 * All widths are multiples of FLP_BACKWARD_COLUMNS. They are the same for any number of rows of a call, because they decide grad_hidden's bits: its sums are
 * added up chunk by chunk. A plan chooses them once (operators/linear/linear_budget.h). */
typedef struct {
    int saves_exp; /* 1: the forward leaves saved exponentials */
    /* 1: grad_hidden is one product of the whole vocabulary's saved exponentials or derivatives, without sums over chunks, and in its own dtype. The product, or
     * what adds its parts (part_columns), is written to grad_hidden as packed rows, which then move by way of dlogit's memory to their places. */
    int direct;
    /* 1, only with a forward whose backward computes grad_hidden alone: the forward computes grad_hidden's product, in fp32. The product of each chunk of rows
     * replaces these rows. A row's upstream gradient is not known yet, but it is only a factor, which the backward applies. */
    int in_forward;
    /* 1, only with direct and saved exponentials in the workspace: grad_hidden's product comes before grad_weight's, which then fills the multiprocessors that
     * the long tiles of the former's last wave leave idle. The rows times their factors need a place of their own. */
    int hidden_first;
    /* > 0, only with saved exponentials of the whole vocabulary and grad_hidden alone: its product is one of parts of so many vocabulary entries (the last part
     * may have fewer), each with sums of its own, which are then added in their order. Few rows have few tiles, which are then enough for all multiprocessors.
     * It decides grad_hidden's bits, and so does not depend on the rows. 0: there is one part. */
    int64_t part_columns;
    /* 1, only with row_chunk and grad_hidden alone: its product has narrower tiles, because they fill more multiprocessors. With parts, up to 1024 rows have
     * tiles that are chosen without it (gen/select/linear_logp_backward.lua). */
    int narrow;
    int64_t row_chunk;     /* > 0: the rows are processed in chunks of this many, a multiple of FLP_BACKWARD_ROW_BLOCK; 0: all at a time */
    int64_t columns;       /* width of a chunk whose dlogit is stored in the workspace */
    int64_t saved_columns; /* width of the saved exponentials, from the vocabulary's first entry on; 0: there are none */
    /* > 0: the saved exponentials are stored in grad_weight, which is written later, in blocks of this many columns. saved_columns is a multiple of it, and
     * each block is a chunk of grad_hidden's sums. A call of more than borrowed_rows rows may have room only for the first blocks, there or in the workspace.
     * The other blocks are then computed again, as soon as there is room for them, with the same bits. 0: one block, in the workspace. */
    int64_t lent_columns;
    /* 1, only with lent_columns: the vocabulary's other entries, "the rest", have saved exponentials, too, in blocks of the same width, which the workspace
     * holds while their products read them. In calls of up to rest_rows rows the forward saves them in grad_weight, behind the other blocks, and they are moved
     * before grad_weight is written. In calls of more rows they are computed again: right behind the forward as many as the workspace then has room for, each
     * other one behind all blocks before it. */
    int saves_rest;
    int64_t rest_rows;
    int64_t rest_bytes; /* what the rest may take of the workspace beyond one of its blocks, in calls of up to borrowed_rows rows */
    /* Only with lent_columns: in calls of more than borrowed_rows rows, the workspace has room for blocks of this many columns, of which it saves those that it
     * has room for where grad_weight has room for fewer; 0: for one block. */
    int64_t spare_columns;
    int keeps_scaled;         /* 1, only with saves_rest: what is computed again finds the rows times their factors in the workspace */
    int64_t borrowed_columns; /* width of a chunk whose dlogit is stored in grad_weight, after the chunk's own part of it; 0: there is none */
    /* Chunks have borrowed_columns as long as grad_weight has room for dlogit of this many rows. Where a call has more rows than fit, dlogit is stored in the
     * workspace. */
    int64_t borrowed_rows;
    /* Neighbouring chunks whose dlogit together takes no more than this share launches (flp_vocab_slab). 0: each chunk has its own. */
    int64_t slab_bytes;
} flp_backward_chunks;

typedef struct {
    int64_t columns;
    int64_t borrowed; /* byte offset of dlogit in grad_weight; -1: it is stored in the workspace */
} flp_vocab_chunk;

/* The chunk that begins at vocabulary entry `first`, which comes after the saved exponentials. rows: those processed at a time. */
flp_vocab_chunk flp_vocab_chunk_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first);

/* Neighbouring chunks whose dlogit is stored side by side, so that one launch each computes their dlogit, grad_weight and grad_bias. These have no sums over
 * the vocabulary, so that no bit depends on the slabs. */
typedef struct {
    int64_t columns, chunks;
    int64_t last_columns; /* of its last chunk */
    int64_t borrowed;     /* as a chunk's; with more than one chunk, dlogit is stored in the workspace */
} flp_vocab_slab;

/* The slab that begins with the chunk at vocabulary entry `first`: as many chunks as fit into slab_bytes, at least one. */
flp_vocab_slab flp_vocab_slab_at(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows, int64_t first);

/* The width of the widest chunk whose dlogit or saved exponentials are stored in the workspace. rows: those processed at a time. */
int64_t flp_vocab_chunks_widest(const flp_backward_chunks *chunks, int64_t rows);

/* The bytes that slabs of several chunks may take. No smaller number of rows has more. */
int64_t flp_vocab_chunks_slab_bytes(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows);

/* 1: dlogit of a chunk of `columns` columns from vocabulary entry `first` on, and of `rows` rows, fits into grad_weight after the chunk's own part of it. */
int flp_vocab_chunks_can_borrow(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t columns, int64_t rows);

/* The number of blocks of the rest, of which the last may be narrower; 0: the rest has no saved exponentials. */
int64_t flp_vocab_chunks_rest_blocks(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* The row stride, in elements, of the rest's saved exponentials after they have been moved to the workspace. */
int64_t flp_vocab_chunks_rest_stride(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* The bytes that the rest's saved exponentials may take in the workspace. No smaller number of rows has more. */
int64_t flp_vocab_chunks_rest_bytes(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows);

/* The most rows of a call whose forward can save the rest behind the other blocks: whose rest takes at most rest_bytes more than a block in the workspace, and
 * whose blocks all fit into grad_weight such that none is overwritten before it has been read or moved. A multiple of FLP_BACKWARD_ROW_BLOCK. */
int64_t flp_vocab_chunks_most_rest_rows(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* The number of blocks of saved exponentials, of `columns` columns and `rows` rows each, that fit into grad_weight such that none is overwritten before it has
 * been read. Behind the blocks' own entries of grad_weight there is room for scaled_rows rows times their factors; 0: for none. */
int64_t flp_vocab_chunks_most_lent(const flp_linear_logp_backward_problem *normal, int64_t columns, int64_t rows, int64_t scaled_rows);

/* With lent_columns: where the saved exponentials of `rows` rows are stored. Computing a block again takes the packed rows, and grad_weight's product takes the
 * rows times their factors. So where blocks are computed again, the latter have a place of their own.
 *
 * Neighbouring blocks are stored side by side as a slab, as those of dlogit are. Few rows have few and wide slabs, which spares them launches. */
typedef struct {
    int64_t blocks; /* the number of blocks that are saved */
    int64_t again;  /* the number of blocks that are computed again */
    int64_t rest;   /* the number of blocks of the rest that are saved behind these: all or 0 */
    int64_t early;  /* the number of blocks of the rest that are computed again right behind the forward, and stored one behind the other */
    /* The number of blocks of a slab, which may be the rest's; the last slab may have fewer. 1 where blocks are computed again, or are in the workspace. */
    int64_t slab_blocks;
    int64_t slab_bytes; /* from slab to slab */
    int64_t slab_rows;  /* from slab to slab, in rows of slab_blocks x lent_columns elements */
    int64_t first;      /* byte offset of the first slab in grad_weight; -1: the blocks are in the workspace, as dlogit, where more of them fit */
    int64_t scaled;     /* the rows times their factors: byte offset in grad_weight, or an flp_scaled_place */
} flp_vocab_lending;
typedef enum {
    FLP_SCALED_IN_WORKSPACE = -1, /* they have a part of their own */
    FLP_SCALED_IN_PLACE = -2      /* they replace the packed rows, which nothing reads any more, or only blocks of the rest, for which they are packed again */
} flp_scaled_place;
flp_vocab_lending flp_vocab_chunks_lending(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, int64_t rows);

/* 1: grad_weight's product of a block of the rest that is computed again finds the rows times their factors in place of the packed rows: they have no other
 * place, or one that the product overwrites. */
int flp_vocab_chunks_scales_in_place(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, const flp_vocab_lending *lending,
                                     int64_t block);

/* A run of blocks whose exponentials one launch stores, one block after the other. */
typedef struct {
    int64_t begin, end; /* blocks [begin, end) */
    int64_t first;      /* byte offset of the slab that begins with block `begin` in grad_weight; -1: the blocks are in the workspace, as dlogit */
} flp_vocab_run;

/* The blocks from `begin` on that are computed again at once, when the products of all blocks before `begin` are complete: as many as fit into the part of
 * grad_weight that is not written yet such that none is overwritten before it has been read, or into the workspace, where more of them fit. At least one. */
flp_vocab_run flp_vocab_chunks_again(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, const flp_vocab_lending *lending,
                                     int64_t rows, int64_t begin);

/* The number of neighbouring slabs that grad_weight's product may read at once, at most `most`: the first begins at vocabulary entry `first` and at byte `at`
 * of grad_weight, and their own entries end before that. At least 1: the lending has made sure that one fits. */
int64_t flp_vocab_chunks_slabs_at_once(const flp_linear_logp_backward_problem *normal, int64_t first, int64_t slab_columns, int64_t at, int64_t most);

/* The stride, in elements, of packed rows that have a place of their own in the workspace. */
int64_t flp_vocab_chunks_row_stride(const flp_linear_logp_backward_problem *normal);

/* 1: a gradient is requested. */
static inline int flp_vocab_chunks_have_gradients(const flp_linear_logp_backward_problem *problem)
{
    return problem->grad_hidden != FLP_NONE || problem->grad_weight != FLP_NONE || problem->grad_bias != FLP_NONE;
}

/* 1: grad_hidden is the only gradient requested, as with a frozen head. */
static inline int flp_vocab_chunks_hidden_alone(const flp_linear_logp_backward_problem *problem)
{
    return problem->grad_hidden != FLP_NONE && problem->grad_weight == FLP_NONE && problem->grad_bias == FLP_NONE;
}

/* 1: each logit's derivative comes from a saved exponential, which is multiplied by its row's factor: no kernel computes derivatives. Without saves_rest or
 * lent_columns the forward saves all of them; else some may be computed again. */
static inline int flp_vocab_chunks_all_saved(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks)
{
    return chunks->saves_exp && (chunks->saves_rest || chunks->saved_columns >= normal->forward.vocab);
}

/* The size of the vocabulary, rounded up to whole tiles. */
int64_t flp_vocab_chunks_all_columns(const flp_linear_logp_backward_problem *normal);

/* 1: with a first chunk of this many columns, of saved exponentials or of derivatives, grad_hidden is one product without sums over chunks (`direct`). */
int flp_vocab_chunks_are_direct(const flp_linear_logp_backward_problem *normal, int saves_exp, int64_t columns);

/* The number of parts of grad_hidden's product. */
int64_t flp_vocab_chunks_parts(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* The rows from part to part of its sums, which have room for all rows of the last cluster. */
int64_t flp_vocab_chunks_part_rows(int64_t rows);

/* 1: packed rows have a place of their own in the workspace; 0: they are stored in grad_hidden until that is written. */
int flp_vocab_chunks_keep_packed(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* 1: grad_hidden can be finished before the last chunk's grad_weight and grad_bias, so that an exchange of it runs beside these. */
int flp_vocab_chunks_finish_first(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks);

/* Why derivatives can't come from saved exponentials, which hold 2^(z2 - k) in bf16 with one factor a row; NULL where they can. */
const char *flp_vocab_chunks_no_saved_exp(const flp_linear_logp_backward_problem *normal);

/* Writes what the generator must know of the chunks (flp_operator.hint): the words of gen/problem.lua's hints. text [FLP_HINT_BYTES] */
void flp_vocab_chunks_hint(const flp_linear_logp_backward_problem *normal, const flp_backward_chunks *chunks, char *text);
#endif
