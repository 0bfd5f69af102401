/* Gets the loaded kernel of a variant: from memory, else from the disk cache, else emitted, compiled by NVRTC and stored; then loaded by cuModuleLoadData. */
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
    int clusters; /* that the device holds at once; a cluster may be one block. 0: it is not known to hold any, of more than 8 blocks each */
} flp_kernel;

/* Gets count kernels for the current CUDA context. Those that have to be compiled are compiled in parallel, as many at once as there are cores. Kernels live
 * as long as the store (or their CUDA context). Where several threads request the same kernel, it is compiled once.
 * A cached cubin that the driver rejects is removed and compiled once more. */
flp_status flp_kernel_store_get(flp_kernel_store *store, const flp_device *device, int count, const char (*variants)[FLP_VARIANT_BYTES],
                                const flp_kernel **kernels);

/* Gets these kernels' images as flp_kernel_store_get does, but loads nothing. With it the kernels of several plans are compiled in parallel. */
flp_status flp_kernel_store_fill(flp_kernel_store *store, int count, const char (*variants)[FLP_VARIANT_BYTES]);

/* Emits and compiles a kernel into the cache, without a device (prebuild). *compiled = 0: the cache had it. log: NULL, or receives the malloc'ed report of
 * ptxas. */
flp_status flp_kernel_store_prebuild(flp_kernel_store *store, const char *variant, int *compiled, char **log);

/* *there = 1: a cache directory has the kernel, compiled by this machine's NVRTC or, where there is no NVRTC, by any. Compiles nothing. */
flp_status flp_kernel_store_find(flp_kernel_store *store, const char *variant, int *there);

/* Emits and compiles a kernel as flp_kernel_store_prebuild does, but returns everything and does not use the cache (tests, fusedlogp-gen --emit). */
flp_status flp_kernel_store_compile(flp_kernel_store *store, const char *variant, flp_emitted *emitted, flp_cubin *cubin, char **log);
#endif
