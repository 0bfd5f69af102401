/* What one flp_context holds: kernels, threads, known plans, scratch; and token losses as a plan has them. */
#ifndef FLP_CORE_CONTEXT_H
#define FLP_CORE_CONTEXT_H
#include <stdatomic.h>

#include "cpu/thread_pool.h"
#include "cpu/token_program.h"
#include "fusedlogp.h"
#include "jit/kernel.h"

#include "tune/records.h"

typedef struct flp_dispatch flp_dispatch; /* core/dispatch.h */
typedef struct flp_scratch flp_scratch;   /* core/scratch.h */

struct flp_context {
    uint64_t serial; /* from 1, never reused, unlike the address: a thread's recent hits name their context by it */
    unsigned flags;  /* FLP_CONTEXT_... */
    double tune_seconds;
    flp_kernel_store *store;
    flp_thread_pool *pool;
    flp_dispatch *dispatch;
    flp_scratch *scratch;
    flp_records *records;
    atomic_int_fast64_t plans; /* created */
};

/* FLP_BAD_ARGUMENT: the context knows none of that name. */
flp_status flp_token_loss_load(flp_context *context, const char *name, flp_token_program *program);
#endif
