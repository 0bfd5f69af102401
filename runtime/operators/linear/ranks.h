/* The ranks of an NCCL communicator, each with a shard of the vocabulary: what they agree on before the first exchange of a call, and the exchanges. */
#ifndef FLP_OPERATORS_LINEAR_RANKS_H
#define FLP_OPERATORS_LINEAR_RANKS_H
#include <stddef.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"
#include "fusedlogp.h"

/* What ranks have to agree on, and where each one's shard lies. */
typedef struct {
    uint32_t call; /* which call, of which version of the library; 1: the rank's own call was refused */
    uint32_t rows, hidden, vocab_total, dtype, options;
    uint32_t vocab_first, vocab;
} flp_rank_terms;

/* name: of the call. inputs: what its args begin with. others: a digest of further options. */
flp_rank_terms flp_ranks_terms(const char *name, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, uint32_t others);

/* Digests begin with FLP_RANKS_DIGEST. */
#define FLP_RANKS_DIGEST UINT32_C(2166136261)
uint32_t flp_ranks_mix(uint32_t hash, const void *bytes, size_t count);
/* A digest of a token loss's definition: a name means what each rank's context was told. 0: none has that name, which the call's own part says. */
uint32_t flp_ranks_token_loss(flp_ranks *ranks, const char *name);

/* status: of the rank's own part of the call, which it returns where that failed, once the others know. Where the ranks have agreed on such a call before it
 * does nothing, unless FLP_CHECK_TARGETS stands in flags. */
flp_status flp_ranks_agree(flp_ranks *ranks, flp_rank_terms own, unsigned flags, flp_status status, CUstream stream);

/* What concerns the exchange alone; and that of grad_hidden, where it is wanted. */
flp_status flp_ranks_check(const flp_ranks *ranks, const flp_linear_logp_problem *problem);
flp_status flp_ranks_check_grad_hidden(const flp_linear_logp_backward_problem *problem, const void *grad_hidden_event);

flp_context *flp_ranks_context(const flp_ranks *ranks);
int flp_ranks_count(const flp_ranks *ranks);

/* partials [ranks][rows][FLP_PARTIAL_FLOATS]: where this rank's own lie, NULL of NULL; and everyone's, gathered in place. */
float *flp_ranks_own_part(const flp_ranks *ranks, float *partials, int64_t rows);
flp_status flp_ranks_gather(const flp_ranks *ranks, float *partials, int64_t rows, CUstream stream);
/* CUevent: what a call's grad_hidden_event is. */
void *flp_ranks_grad_hidden_event(const flp_ranks *ranks);
/* grad_hidden's parts, count floats, summed up in place behind that event, beside what the stream has behind it; the stream then waits for it. */
flp_status flp_ranks_sum(const flp_ranks *ranks, void *grad_hidden, int64_t count, CUstream stream);
#endif
