/* A context without a GPU and without a cache, for a test or a group of them. */
#ifndef FLP_TESTS_CPU_CONTEXT_H
#define FLP_TESTS_CPU_CONTEXT_H
#include "fusedlogp.h"

extern flp_context *cpu_context; /* of two threads */

/* Setup and teardown. */
int cpu_context_start(void **state);
int cpu_context_stop(void **state);
#endif
