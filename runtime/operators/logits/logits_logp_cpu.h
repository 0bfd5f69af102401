/* logits_logp on the host, both directions: chunks of rows on a pool of threads. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_CPU_H
#define FLP_OPERATORS_LOGITS_LOGP_CPU_H
#include "cpu/thread_pool.h"
#include "cuda/cuda_abi.h"
#include "fusedlogp.h"
#include "params/logits_logp.h"

/* One call of either direction, checked, with its defaults filled in: what its kernels take, but for what is the plan's. What is NULL is not wanted or not
 * given; given_lse, given_entropy and given_logp are those of a backward that knows them; without grad_logits it is the forward alone. */
typedef struct {
    flp_logits_logp_params params;
    flp_dtype dtype;
    double temperature; /* of rows without one of their own */
    CUstream stream;
} flp_logits_logp_call;

/* A fixed order of every sum makes a row's bits independent of the rows beside it and of the number of threads.
 * bad_count, bad_first: bad targets and indices met, and the first such row of the call; only added to / lowered.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_logits_logp_cpu(flp_thread_pool *pool, const flp_logits_logp_call *call, int64_t *bad_count, int64_t *bad_first);
/* The identity of its arithmetic. Static. */
const char *flp_logits_logp_cpu_numerics(void);
#endif
