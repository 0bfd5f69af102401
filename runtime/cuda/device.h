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
/* 1 while stream is being captured, 0 otherwise. */
flp_status flp_device_is_capturing(CUstream stream, int *capturing);
#endif
