/* Obtains a variant's cubin, without a device: from the cache, else compiled and stored. */
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
    flp_status stored; /* of a compiled kernel: the status of storing it in the cache */
    char *log;         /* of the compilation; NULL: there was none */
} flp_kernel_image;

/* NVRTC's options as a kernel's cache key has them. */
extern const char flp_kernel_obtain_options[];

/* Obtains the image of a variant. anew 1: the driver rejected the cubin in the cache, which is removed and compiled again.
 * FLP_NO_NVRTC, FLP_COMPILE_FAILED (the message has the variant, the options, the log's first lines and the path of the kept source), the errors of
 * flp_generator_emit, FLP_OUT_OF_MEMORY. The caller frees image by flp_kernel_image_free, after a failure too. */
flp_status flp_kernel_obtain(flp_kernel_origin *origin, const char *variant, int anew, flp_kernel_image *image);

/* Obtains the image from the cache alone. *found = 0: the cache does not have it, and image has no cubin. Errors and freeing as flp_kernel_obtain. */
flp_status flp_kernel_obtain_cached(flp_kernel_origin *origin, const char *variant, flp_kernel_image *image, int *found);

/* Emits and compiles a variant; neither reads nor writes the cache. The caller frees *emitted, *cubin and *log; log may be NULL. */
flp_status flp_kernel_obtain_compiled(flp_kernel_origin *origin, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log);

void flp_kernel_image_free(flp_kernel_image *image);
#endif
