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

/* FLP_NO_DRIVER; FLP_WRONG_CONTEXT: no context is current. */
flp_status flp_device_current(flp_device *device);
/* Its context's id alone, which a dispatch asks for each time. Errors as flp_device_current. */
flp_status flp_device_current_id(unsigned long long *context_id);
/* Makes owner's context current, whichever was, for what is to be freed in it; *left gets that one for flp_device_leave.
 * 0 where owner's is gone (what was in it went with it) or the process has forked: nothing is to be done then. */
int flp_device_enter(const flp_device *owner, CUcontext *left);
void flp_device_leave(CUcontext left);
/* Waits for all work in the context that is current. FLP_CAPTURING, FLP_CUDA_FAILED. */
flp_status flp_device_synchronize(void);
/* 1 while stream is being captured, 0 otherwise. */
flp_status flp_device_is_capturing(CUstream stream, int *capturing);

/* In the CUDA context that is current. what: whose memory it is, for the message. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED, FLP_CAPTURING. */
flp_status flp_device_memory_allocate(int64_t bytes, const char *what, CUdeviceptr *pointer);

/* Frees what was allocated in owner's context, whichever is current here; nothing where that context is gone (its memory
 * went with it) or the process has forked. pointer may be 0. */
void flp_device_memory_free(const flp_device *owner, CUdeviceptr pointer);

/* On a stream of its own, so that it meets neither the caller's streams nor their captures; waits until it is done.
 * Exactly one of to_host and from_host is given. */
flp_status flp_device_memory_copy(CUdeviceptr device, void *to_host, const void *from_host, size_t bytes);
#endif
