/* Allocates memory for the CPU path's matrices, in huge pages: with small ones, page faults took 30 ms of a call of 0.6 s. */
#define _DEFAULT_SOURCE /* madvise */
#include "cpu/large_memory.h"
#include <stdlib.h>
#include <sys/mman.h>

enum { ALIGNMENT = 64, HUGE_PAGE = 2 << 20 };

void *flp_large_memory_allocate(int64_t count, size_t bytes)
{
    const size_t size = (size_t)(count > 0 ? count : 1) * bytes, alignment = size >= 2 * HUGE_PAGE ? HUGE_PAGE : ALIGNMENT;
    void *memory = aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
#ifdef MADV_HUGEPAGE
    if (memory != NULL && alignment == HUGE_PAGE)
        madvise(memory, size, MADV_HUGEPAGE); /* fails where the kernel has no huge pages, which does no harm */
#endif
    return memory;
}
