/* What lies in a cache directory, and keeping it small. */
#ifndef FLP_JIT_CUBIN_CACHE_LIST_H
#define FLP_JIT_CUBIN_CACHE_LIST_H
#include <stddef.h>
#include <stdint.h>
#include <time.h>
#include "jit/cubin_cache_directory.h"

typedef struct {
    char name[FLP_CUBIN_CACHE_NAME_BYTES];
    int64_t bytes;
    struct timespec used;
} flp_cubin_cache_item;

typedef struct {
    flp_cubin_cache_item *items; /* kernels, in name order; freed by the caller */
    size_t count, capacity;
    int64_t bytes;                        /* of all */
    int64_t refused_files, refused_bytes; /* of these, what this user cannot read or must not trust, */
    int64_t refused;                      /* and how many with subdirectories of that kind */
} flp_cubin_cache_list;

/* What cannot be read or trusted (or remembered, for want of memory) is left out. sweep 1: also removes what killed processes left. */
void flp_cubin_cache_list_read(int directory, int sweep, flp_cubin_cache_list *list);

/* Removes the least recently used kernels (of the same age: by name) until at most limit bytes remain, and old leftovers. */
void flp_cubin_cache_list_trim(int directory, int64_t limit);
#endif
