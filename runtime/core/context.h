/* What an flp_context holds: kernels, threads, plans, scratch memory and tuning records. */
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
    uint64_t serial; /* from 1, never reused, unlike the address: core/dispatch.c identifies a context by it */
    unsigned flags;  /* FLP_CONTEXT_... */
    double tune_seconds;
    flp_kernel_store *store;
    flp_thread_pool *pool;
    flp_dispatch *dispatch;
    flp_scratch *scratch;
    flp_records *records;
    atomic_int_fast64_t plans; /* how many were created */
};

/* Fills in the program of a token loss, as plans use it. FLP_BAD_ARGUMENT: the context knows no token loss of that name. */
flp_status flp_token_loss_load(flp_context *context, const char *name, flp_token_program *program);
#endif
