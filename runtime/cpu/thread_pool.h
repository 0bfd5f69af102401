/* A pool of threads for the CPU path. */
#ifndef FLP_CPU_THREAD_POOL_H
#define FLP_CPU_THREAD_POOL_H
#include "fusedlogp.h"

typedef struct flp_thread_pool flp_thread_pool;
enum { FLP_THREAD_POOL_MOST = 1024 /* threads */ };
/* The number of cores that this process may run on. */
int flp_thread_pool_cores(void);
/* threads: 0 .. FLP_THREAD_POOL_MOST, the caller of a run included; 0: one for each core that this process may run on. The threads start with the first run.
 * FLP_BAD_ARGUMENT, FLP_OUT_OF_MEMORY. */
flp_status flp_thread_pool_create(int threads, flp_thread_pool **pool);
void flp_thread_pool_destroy(flp_thread_pool *pool);
int flp_thread_pool_threads(const flp_thread_pool *pool);
/* Calls task(data, index, thread) once for each index 0 .. count - 1, and returns when all are done. thread, 0 .. threads - 1, is the number of the thread
 * that runs the task; the caller's thread, 0, runs tasks too. Runs of several callers follow each other. */
void flp_thread_pool_run(flp_thread_pool *pool, int64_t count, void (*task)(void *data, int64_t index, int thread), void *data);
#endif
