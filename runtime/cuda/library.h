/* dlopen behind one table, which tests replace by a fake. */
#ifndef FLP_CUDA_LIBRARY_H
#define FLP_CUDA_LIBRARY_H

typedef struct {
    void *(*open)(const char *name);                 /* NULL when not found */
    void *(*symbol)(void *library, const char *name); /* NULL when not found */
    const char *(*error)(void);
} flp_library_loader;

/* The loader in use; dlopen's unless a test replaced it. */
const flp_library_loader *flp_library_loader_get(void);
/* For tests, before first use of driver and nvrtc; also makes flp_driver_get and flp_nvrtc_get forget what they loaded. NULL: dlopen. */
void flp_library_loader_set(const flp_library_loader *loader);
#endif
