/* Asks for memory that is needed soon. Rows of a matrix lie pages apart, so that the processor does not foresee the next one's part of a block. */
#ifndef FLP_CPU_PREFETCH_H
#define FLP_CPU_PREFETCH_H
#include <stdint.h>

enum { FLP_CACHE_LINE = 64, FLP_PREFETCH_ROWS = 8 /* how far ahead: 4 KiB of a block of 256 numbers of 16 bits */ };

static inline void flp_prefetch_to_read(const void *from, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += FLP_CACHE_LINE)
        __builtin_prefetch((const char *)from + at, 0);
}

static inline void flp_prefetch_to_write(const void *to, int64_t bytes)
{
    for (int64_t at = 0; at < bytes; at += FLP_CACHE_LINE)
        __builtin_prefetch((const char *)to + at, 1);
}
#endif
