/* The loader of shared libraries (libcuda, NVRTC, NVML, NCCL): dlopen, or a test's fake. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dladdr */
#endif
#include "cuda/library.h"

#include <dlfcn.h>
#include <stddef.h>
#include <unistd.h>

#include "base/mutex.h"

/* Libraries are never closed, because the driver and NVRTC leave threads and exit handlers behind. */
static void *open_shared(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

static const char *last_error(void)
{
    const char *text = dlerror();
    return text ? text : "not found";
}

static int file_readable(const char *path)
{
    return access(path, R_OK) == 0;
}

static const char *symbol_origin(void *symbol)
{
    Dl_info facts;
    return dladdr(symbol, &facts) ? facts.dli_fname : NULL;
}

static const flp_library_loader system_loader = { open_shared, dlsym, last_error, file_readable, symbol_origin };

static _Atomic(const flp_library_loader *) current = &system_loader;
atomic_uint flp_library_loaders = 1;

const flp_library_loader *flp_library_loader_get(void)
{
    return atomic_load_explicit(&current, memory_order_acquire);
}

void flp_library_loader_set(const flp_library_loader *loader)
{
    atomic_store(&current, loader ? loader : &system_loader);
    atomic_fetch_add(&flp_library_loaders, 1);
}

flp_status flp_library_load_once(flp_library_once *once, flp_status (*load)(void))
{
    flp_status status = FLP_OK;

    flp_mutex_lock(&once->mutex);
    if (once->generation != flp_library_generation()) {
        status = load();
        if (status == FLP_OK)
            once->generation = flp_library_generation();
    }
    flp_mutex_unlock(&once->mutex);
    return status;
}
