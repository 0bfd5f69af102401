/* Memory for the CPU path's matrices. */
#ifndef FLP_CPU_LARGE_MEMORY_H
#define FLP_CPU_LARGE_MEMORY_H
#include <stddef.h>
#include <stdint.h>

/* Allocates count x bytes, neither of them negative, aligned to 64 bytes: a cache line, and the widest vector. Memory of 4 MiB or more is in huge pages
 * where the system has them. Returns NULL when out of memory. Free with free(). */
void *flp_large_memory_allocate(int64_t count, size_t bytes);
#endif
