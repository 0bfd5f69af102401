/* The ranks of an NCCL communicator, each with a shard of the vocabulary: what they agree on before the first exchange of a call, and the exchanges. */
#ifndef FLP_OPERATORS_LINEAR_RANKS_H
#define FLP_OPERATORS_LINEAR_RANKS_H
#include <stddef.h>
#include <stdint.h>

#include "cuda/cuda_abi.h"
#include "fusedlogp.h"

/* What ranks have to agree on, and where each one's shard lies. */
typedef struct {
    uint32_t call; /* a digest of the call's name and the library's version; 1: the rank's own part of the call failed */
    uint32_t rows, hidden, vocab_total, dtype, options;
    uint32_t vocab_first, vocab;
} flp_rank_terms;

/* The terms of a call. name: the call's; inputs: those with which its args begin; others: a digest of further options. */
flp_rank_terms flp_ranks_terms(const char *name, const flp_linear_logp_problem *problem, const flp_linear_logp_args *inputs, uint32_t others);

/* Digests begin with FLP_RANKS_DIGEST. */
#define FLP_RANKS_DIGEST UINT32_C(2166136261)
uint32_t flp_ranks_mix(uint32_t hash, const void *bytes, size_t count);
/* A digest of a token loss' definition, because each rank's context may know another one by this name. 0: there is none of this name, which the rank's own part
 * of the call reports. */
uint32_t flp_ranks_token_loss(flp_ranks *ranks, const char *name);

/* Compares the terms of all ranks. status: that of the rank's own part of the call; if that failed, the other ranks are told, and status is returned. If the
 * ranks have agreed on such a call before, nothing is exchanged, unless flags contains FLP_CHECK_TARGETS.
 * FLP_BAD_ARGUMENT: the ranks disagree, or another rank's own part failed. FLP_CAPTURING, FLP_CUDA_FAILED, FLP_NCCL_FAILED. */
flp_status flp_ranks_agree(flp_ranks *ranks, flp_rank_terms own, unsigned flags, flp_status status, CUstream stream);

/* Check what the exchange requires beyond the rank's own part of the call; and what that of grad_hidden requires, if it is requested. */
flp_status flp_ranks_check(const flp_ranks *ranks, const flp_linear_logp_problem *problem);
flp_status flp_ranks_check_grad_hidden(const flp_linear_logp_backward_problem *problem, const void *grad_hidden_event);

flp_context *flp_ranks_context(const flp_ranks *ranks);
int flp_ranks_count(const flp_ranks *ranks);

/* partials: [ranks][rows][FLP_PARTIAL_FLOATS]. The address of this rank's own, NULL for NULL; and an all-gather of those of all ranks, in place. */
float *flp_ranks_own_part(const flp_ranks *ranks, float *partials, int64_t rows);
flp_status flp_ranks_gather(const flp_ranks *ranks, float *partials, int64_t rows, CUstream stream);
/* The CUevent that is a call's grad_hidden_event. */
void *flp_ranks_grad_hidden_event(const flp_ranks *ranks);
/* An all-reduce of the ranks' parts of grad_hidden, count floats, in place. It runs after that event, on a stream of its own, beside what `stream` runs after
 * the event; `stream` then waits for it. */
flp_status flp_ranks_sum(const flp_ranks *ranks, void *grad_hidden, int64_t count, CUstream stream);
#endif
