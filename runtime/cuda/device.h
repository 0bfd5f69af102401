/* The device and context that are current in this thread. */
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
#endif
