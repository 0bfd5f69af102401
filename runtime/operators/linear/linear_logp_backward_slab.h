/* The products of a slab of neighbouring chunks: in which order they run, and which of them run beside one another. */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_SLAB_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_SLAB_H
#include "operators/linear/linear_logp_backward_chunk.h"

/* The head start of grad_weight's product over the end of grad_hidden's, which precedes it in the same chunk. */
flp_head_start flp_backward_weight_head_start(const flp_backward_execution *run, const flp_tile_work *hidden, int64_t columns);
/* The width of the chunk that begins at vocabulary entry `first`. */
int64_t flp_backward_chunk_columns(const flp_backward_execution *run, int64_t first);
/* 1: one launch can add grad_hidden's products of many blocks of saved exponentials to the sums, block by block, from several slabs. Otherwise
 * each block has a launch of its own: because the kernel takes no slabs, because so few rows leave half of the clusters idle that two launches run side by
 * side, or because many clusters would have no tile in the last of several waves, which the products that follow fill. KEEP IN STEP: takes_slabs
 * (gen/select/linear_logp_backward.lua). */
int flp_backward_adds_blocks(const flp_backward_execution *run);
/* grad_hidden's products of a slab's columns [begin, end), chunk by chunk. The slab's first waits as the slab says, the others before they add to the sums of
 * the one before. */
flp_status flp_backward_run_hidden_products(const flp_backward_execution *run, const flp_dlogit_chunk *slab, int64_t begin, int64_t end);
/* All products of a chunk or slab, in its order. */
flp_status flp_backward_run_products(const flp_backward_execution *run, const flp_dlogit_chunk *part);
/* 1: grad_hidden's product may come before grad_weight's. Not if it is direct, because it then overwrites the rows, which grad_weight's product reads. Not with
 * the filter, which leaves tiles of all lengths, so that nobody knows which clusters are idle when. Where grad_weight's tiles are so long that an idle cluster
 * has no time for one, it has for those of the next chunk's derivatives: grad_hidden's product then comes second. */
int flp_backward_weight_can_go_second(const flp_backward_execution *run);
/* 1: `count` of grad_hidden's products have their clusters all at once. */
int flp_backward_run_at_once(const flp_backward_execution *run, int64_t count);
/* The head start of grad_weight's product of size->columns entries over the end of grad_hidden's products of size->chunks chunks. None of these is wider than
 * the first, of `widest` entries. Where they run beside one another, each holds its clusters until the one before it ends: all do as long as the first one. */
flp_head_start flp_backward_head_start_behind(const flp_backward_execution *run, int64_t widest, const flp_vocab_slab *size);
#endif
