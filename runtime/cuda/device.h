/* The device and context that are current in this thread, and device memory that the library owns. */
#ifndef FLP_CUDA_DEVICE_H
#define FLP_CUDA_DEVICE_H
#include "cuda/driver.h"

typedef struct {
    CUcontext context;
    unsigned long long context_id; /* never reused, unlike the pointer */
    CUdevice device;
    flp_device_facts facts;
} flp_device;

/* The device and context that are current in this thread. FLP_NO_DRIVER; FLP_WRONG_CONTEXT: no context is current; FLP_FORKED. */
flp_status flp_device_current(flp_device *device);
/* The id of the current context alone, which each dispatch needs. Errors as flp_device_current. */
flp_status flp_device_current_id(unsigned long long *context_id);
/* Makes owner's context current, so that what belongs to it can be freed; *left receives the context that was current, which flp_device_leave restores.
 * Returns 1; or 0 where owner's context no longer exists (what belonged to it was freed with it) or the process has forked: the caller then frees nothing. */
int flp_device_enter(const flp_device *owner, CUcontext *left);
void flp_device_leave(CUcontext left);
/* Waits for all work in the current context. FLP_CAPTURING, FLP_CUDA_FAILED. */
flp_status flp_device_synchronize(void);
/* *capturing = 1 while the stream is being captured, else 0. */
flp_status flp_device_is_capturing(CUstream stream, int *capturing);

/* Allocates device memory in the current CUDA context. what: what the memory is for, in the message. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED, FLP_CAPTURING. */
flp_status flp_device_memory_allocate(int64_t bytes, const char *what, CUdeviceptr *pointer);

/* Frees memory that was allocated in owner's context, whichever context is current in this thread. Does nothing where owner's context no longer exists (its
 * memory was freed with it) or the process has forked. pointer may be 0. FLP_CUDA_FAILED, FLP_CAPTURING: it is not freed. */
flp_status flp_device_memory_release(const flp_device *owner, CUdeviceptr pointer);
/* The same for cleaning up: a failure is passed over, and this thread's message stays. */
void flp_device_memory_free(const flp_device *owner, CUdeviceptr pointer);

/* Copies bytes from device memory to to_host, or from from_host to device memory; exactly one of the two is not NULL. Returns when the copy is done. It uses
 * a stream of its own, so that it neither waits for the caller's streams nor disturbs a capture of them. */
flp_status flp_device_memory_copy(CUdeviceptr device, void *to_host, const void *from_host, size_t bytes);
#endif
