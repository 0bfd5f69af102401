/* dlopen behind one table, which tests replace by a fake. */
#ifndef FLP_CUDA_LIBRARY_H
#define FLP_CUDA_LIBRARY_H
#include <pthread.h>
#include <stdatomic.h>

#include "fusedlogp.h"

typedef struct {
    void *(*open)(const char *name);                  /* NULL when not found */
    void *(*symbol)(void *library, const char *name); /* NULL when not found */
    const char *(*error)(void);                       /* why the last open or symbol of this thread failed */
    int (*readable)(const char *path);                /* 1: a file that may be read lies there */
    const char *(*origin)(void *symbol);              /* the file that a symbol was loaded from, or NULL */
} flp_library_loader;

/* The loader in use; dlopen's unless a test replaced it. */
const flp_library_loader *flp_library_loader_get(void);

/* For tests, before first use of driver and nvrtc; also makes flp_driver_get and flp_nvrtc_find forget what they loaded. NULL: dlopen.
 * No other thread may be inside the library. */
void flp_library_loader_set(const flp_library_loader *loader);

/* How often the loader was set: what was loaded under another number is forgotten. */
extern atomic_uint flp_library_loaders; /* this number; read by the function alone */
static inline unsigned flp_library_generation(void)
{
    return atomic_load_explicit(&flp_library_loaders, memory_order_acquire);
}

/* What one library's functions are kept in: zeroed, but for its mutex. */
typedef struct {
    pthread_mutex_t mutex;
    unsigned generation;
} flp_library_once;

/* Calls load once for each loader, but for one that failed: what is missing is looked for at each call, as it may be installed while the process runs. */
flp_status flp_library_load_once(flp_library_once *once, flp_status (*load)(void));
#endif
