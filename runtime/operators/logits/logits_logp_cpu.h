/* logits_logp on the host, both directions: chunks of rows on a pool of threads. */
#ifndef FLP_OPERATORS_LOGITS_LOGP_CPU_H
#define FLP_OPERATORS_LOGITS_LOGP_CPU_H
#include "cpu/thread_pool.h"
#include "fusedlogp.h"

/* One call of either direction, checked, with its defaults filled in. What is NULL is not wanted or not given. */
typedef struct {
    flp_dtype dtype, target_dtype;
    int64_t rows, vocab, logits_stride, grad_stride;
    double softcap, temperature;
    const void *logits, *target;
    const int64_t *row_index;
    int64_t logits_rows, ignore_index;
    int ignores; /* 1: rows whose target is ignore_index are ignored; 0: none is */
    int scatter;
    const float *row_temperature;
    float *logp, *lse, *entropy; /* results */
    int32_t *argmax;
    const float *g_logp, *g_lse, *g_entropy;
    const float *given_lse, *given_entropy, *given_logp; /* of a backward that knows them */
    void *grad_logits;                                   /* NULL: the forward alone */
} flp_logits_logp_call;

/* A fixed order of every sum makes a row's bits independent of the rows beside it and of the number of threads.
 * bad_count, bad_first: bad targets and indices met, and the first such row of the call; only added to / lowered.
 * FLP_OUT_OF_MEMORY: nothing has been written. */
flp_status flp_logits_logp_cpu(flp_thread_pool *pool, const flp_logits_logp_call *call, int64_t *bad_count, int64_t *bad_first);
/* The identity of its arithmetic. Static. */
const char *flp_logits_logp_cpu_numerics(void);
#endif
