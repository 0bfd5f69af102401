/* A pool of threads for the CPU path. */
#ifndef FLP_CPU_THREAD_POOL_H
#define FLP_CPU_THREAD_POOL_H
#include "fusedlogp.h"

typedef struct flp_thread_pool flp_thread_pool;
/* Cores that this process may run on. */
int flp_thread_pool_cores(void);
/* threads: 0: one for each core that this process may run on. The threads start with the first run. */
flp_status flp_thread_pool_create(int threads, flp_thread_pool **pool);
void flp_thread_pool_destroy(flp_thread_pool *pool);
int flp_thread_pool_threads(const flp_thread_pool *pool);
/* Calls task(data, index, thread) for index 0 .. count - 1, each once, thread in 0 .. threads - 1 naming the one that runs it; returns when all
 * are done. The caller's thread takes part. Several callers at once take turns. */
void flp_thread_pool_run(flp_thread_pool *pool, int64_t count, void (*task)(void *data, int64_t index, int thread), void *data);
#endif
