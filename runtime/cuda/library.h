/* A table of the dlopen functions, which tests replace by a fake, and loading a library once. */
#ifndef FLP_CUDA_LIBRARY_H
#define FLP_CUDA_LIBRARY_H
#include <pthread.h>
#include <stdatomic.h>

#include "fusedlogp.h"

typedef struct {
    void *(*open)(const char *name);                  /* NULL when not found */
    void *(*symbol)(void *library, const char *name); /* NULL when not found */
    const char *(*error)(void);                       /* why this thread's last failed open or symbol failed */
    int (*readable)(const char *path);                /* 1: there is a file at path that may be read */
    const char *(*origin)(void *symbol);              /* the file that a symbol was loaded from, or NULL */
} flp_library_loader;

/* The loader in use: dlopen, unless a test has replaced it. */
const flp_library_loader *flp_library_loader_get(void);

/* For tests: replaces the loader; NULL: dlopen. The driver, NVRTC, NVML and NCCL count as not loaded afterwards, and are loaded again at their next use.
 * No other thread may be inside the library. */
void flp_library_loader_set(const flp_library_loader *loader);

/* The loader's generation: 1, and one more for each flp_library_loader_set. A library that was loaded under another generation counts as not loaded. */
extern atomic_uint flp_library_loaders; /* the generation; only flp_library_generation reads it */
static inline unsigned flp_library_generation(void)
{
    return atomic_load_explicit(&flp_library_loaders, memory_order_acquire);
}

/* Whether one library has been loaded. Initialise the mutex by PTHREAD_MUTEX_INITIALIZER and the rest with zeros. */
typedef struct {
    pthread_mutex_t mutex;
    unsigned generation; /* that it was loaded under; 0: not loaded */
} flp_library_once;

/* Calls load, unless a call of it has succeeded under the current generation. After a failure the next call tries again, because the library may be installed
 * while the process runs. Returns the status of load, or FLP_OK. */
flp_status flp_library_load_once(flp_library_once *once, flp_status (*load)(void));
#endif
