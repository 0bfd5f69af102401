/* Saved exponentials that are stored in grad_weight until that is written (flp_vocab_lending). */
#ifndef FLP_OPERATORS_LINEAR_LOGP_BACKWARD_BLOCKS_H
#define FLP_OPERATORS_LINEAR_LOGP_BACKWARD_BLOCKS_H
#include "operators/linear/linear_logp_backward.h"

/* The products of all blocks and, with saves_rest, of the rest of the vocabulary. A run of blocks at a time: what is written of grad_weight may overwrite
 * blocks that both products have read. Where derivatives follow, the packed rows are what they were before. */
flp_status flp_backward_run_lent(const flp_backward_execution *run);
#endif
