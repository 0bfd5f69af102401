/* Memory for the CPU path's matrices. */
#ifndef FLP_CPU_LARGE_MEMORY_H
#define FLP_CPU_LARGE_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* count x bytes, neither of which is negative, aligned to a cache line, which is also the widest vector; in huge pages where the system has them and the
 * memory fills some. NULL: no memory. Freed with free(). */
void *flp_large_memory_allocate(int64_t count, size_t bytes);
#endif
