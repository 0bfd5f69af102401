/* Device memory that the library owns, and freeing it from wherever its owner is destroyed. */
#ifndef FLP_CORE_DEVICE_MEMORY_H
#define FLP_CORE_DEVICE_MEMORY_H
#include "cuda/device.h"

/* In the CUDA context that is current. what: whose memory it is, for the message. FLP_OUT_OF_MEMORY, FLP_CUDA_FAILED, FLP_CAPTURING. */
flp_status flp_device_memory_allocate(int64_t bytes, const char *what, CUdeviceptr *pointer);

/* Frees what was allocated in owner's context, whichever is current here; nothing where that context is gone (its memory
 * went with it) or the process has forked. pointer may be 0. */
void flp_device_memory_free(const flp_device *owner, CUdeviceptr pointer);

/* On a stream of its own, so that it meets neither the caller's streams nor their captures; waits until it is done.
 * Exactly one of to_host and from_host is given. */
flp_status flp_device_memory_copy(CUdeviceptr device, void *to_host, const void *from_host, size_t bytes);
#endif
