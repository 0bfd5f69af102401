/* A variant's loaded kernel: memory, then disk, then emit -> NVRTC -> store; then cuModuleLoadData. */
#ifndef FLP_JIT_KERNEL_H
#define FLP_JIT_KERNEL_H
#include "cuda/device.h"
#include "jit/cubin_cache.h"
#include "jit/generator.h"

typedef struct flp_kernel_store flp_kernel_store; /* of one flp_context; thread-safe */

flp_status flp_kernel_store_create(const flp_context_options *options, flp_kernel_store **store);
void flp_kernel_store_destroy(flp_kernel_store *store);
flp_generator *flp_kernel_store_generator(flp_kernel_store *store);
flp_cubin_cache *flp_kernel_store_cache(flp_kernel_store *store);
void flp_kernel_store_counters(flp_kernel_store *store, flp_counters *counters);

typedef struct {
    CUfunction function;
    flp_manifest manifest;
    int clusters; /* that the device holds at once; blocks where a cluster is one. 0: clusters of more than 8 blocks are too large for it */
} flp_kernel;

/* count kernels for the current CUDA context; what has to be compiled is compiled side by side, as many at once as there are cores. Kernels live as
 * long as the store (or their CUDA context). Equal requests from several threads compile once.
 * A cubin that the driver rejects is evicted and compiled once more. */
flp_status flp_kernel_store_get(flp_kernel_store *store, const flp_device *device, int count, const char (*variants)[FLP_VARIANT_BYTES],
                                const flp_kernel **kernels);

/* Gets what these kernels are loaded from, as the call above, and loads nothing: for kernels of several plans, which compile side by side then. */
flp_status flp_kernel_store_fill(flp_kernel_store *store, int count, const char (*variants)[FLP_VARIANT_BYTES]);

/* Emits and compiles without a device, into the cache (prebuild). *compiled = 0: it was there. log: NULL or receives the malloc'ed ptxas report. */
flp_status flp_kernel_store_prebuild(flp_kernel_store *store, const char *variant, int *compiled, char **log);

/* *there = 1: a cache directory holds it, of this machine's NVRTC or, where there is none, of any. Nothing is compiled. */
flp_status flp_kernel_store_find(flp_kernel_store *store, const char *variant, int *there);

/* As prebuild, but returns everything and leaves the cache alone (tests, fusedlogp-gen --emit). */
flp_status flp_kernel_store_compile(flp_kernel_store *store, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log);
#endif
