/* The NVRTC builds that published into a cache directory: a machine without NVRTC cannot know its key, and tries each. */
#ifndef FLP_JIT_CUBIN_CACHE_BUILDS_H
#define FLP_JIT_CUBIN_CACHE_BUILDS_H
#include <stddef.h>
#include "fusedlogp.h"

typedef struct {
    char *text;   /* owns the names */
    char **names; /* in the order of their first store; malformed lines are left out */
    size_t count;
} flp_cubin_cache_builds;

/* No file, or no memory: count 0. */
void flp_cubin_cache_builds_read(int directory, flp_cubin_cache_builds *builds);
void flp_cubin_cache_builds_free(flp_cubin_cache_builds *builds);

/* Appends build with one write where it is not in the file yet. FLP_IO_FAILED. */
flp_status flp_cubin_cache_builds_add(int directory, const char *build);
#endif
