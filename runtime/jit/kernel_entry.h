/* One variant in a kernel store: its image, and a loaded module for each CUDA context. */
#ifndef FLP_JIT_KERNEL_ENTRY_H
#define FLP_JIT_KERNEL_ENTRY_H
#include <pthread.h>
#include "jit/kernel.h"
#include "jit/kernel_obtain.h"

struct flp_kernel_loaded;

/* The mutex is held while the variant is compiled or loaded, so that other requests for this variant wait, and requests for other variants do not. */
typedef struct flp_kernel_entry {
    char variant[FLP_VARIANT_BYTES];
    flp_kernel_origin *origin;
    pthread_mutex_t mutex;
    int has_image;
    flp_kernel_image image;
    char *rejection; /* message of a failed compilation, which compiling again would only repeat; else NULL */
    struct flp_kernel_loaded *kernels;
    struct flp_kernel_entry *next; /* in the store's list */
} flp_kernel_entry;

/* NULL: no memory. variant has fewer than FLP_VARIANT_BYTES characters. */
flp_kernel_entry *flp_kernel_entry_create(flp_kernel_origin *origin, const char *variant);
void flp_kernel_entry_destroy(flp_kernel_entry *entry);

/* 1: the image is in memory. */
int flp_kernel_entry_has_image(flp_kernel_entry *entry);

/* Gets the image unless it is in memory. Errors as flp_kernel_obtain. */
flp_status flp_kernel_entry_fill(flp_kernel_entry *entry);

/* The kernel that is loaded in the device's context, or NULL. It lives as long as the entry. */
const flp_kernel *flp_kernel_entry_find(flp_kernel_entry *entry, const flp_device *device);

/* The kernel in the device's context, which must be current; it is loaded unless it is there already. *loaded = 1 where this call loaded it. */
flp_status flp_kernel_entry_load(flp_kernel_entry *entry, const flp_device *device, const flp_kernel **kernel, int *loaded);
#endif
