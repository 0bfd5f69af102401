/* A variant's cubin without a device: from the cache, else emitted, compiled and stored. */
#ifndef FLP_JIT_KERNEL_OBTAIN_H
#define FLP_JIT_KERNEL_OBTAIN_H
#include <stdatomic.h>
#include "jit/cubin_cache.h"
#include "jit/generator.h"

typedef struct {
    flp_generator *generator;
    flp_cubin_cache *cache;
    unsigned flags; /* FLP_CONTEXT_... */
    atomic_llong compiled, disk_hits, disk_misses;
} flp_kernel_origin;

typedef struct {
    flp_manifest manifest;
    flp_cubin cubin;
    int compiled;      /* 0: it was in a cache directory */
    flp_status stored; /* of what was compiled: whether the cache took it */
    char *log;         /* of the compilation, else NULL */
} flp_kernel_image;

/* NVRTC's, as they stand in a kernel's key. */
extern const char flp_kernel_obtain_options[];

/* anew 1: the driver rejected what the cache holds; that is removed, and it is compiled again.
 * FLP_NO_NVRTC, FLP_COMPILE_FAILED (the message names variant, options, the log's first lines and the kept source), those of
 * flp_generator_emit, FLP_OUT_OF_MEMORY. The caller frees with flp_kernel_image_free also then. */
flp_status flp_kernel_obtain(flp_kernel_origin *origin, const char *variant, int anew, flp_kernel_image *image);

/* *found = 1: the cache's copy; else image holds nothing to load. Errors and freeing as above. */
flp_status flp_kernel_obtain_cached(flp_kernel_origin *origin, const char *variant, flp_kernel_image *image, int *found);

/* Emits and compiles; neither reads nor writes the cache. *emitted and *log (may be NULL) are the caller's. */
flp_status flp_kernel_obtain_compiled(flp_kernel_origin *origin, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log);

void flp_kernel_image_free(flp_kernel_image *image);
#endif
