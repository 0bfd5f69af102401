/* Launches one kernel as its manifest says: threads, shared memory, and beside the end of the kernel before it where it waits itself. */
#ifndef FLP_OPS_LAUNCH_H
#define FLP_OPS_LAUNCH_H
#include "jit/kernel.h"

/* blocks: along x. FLP_CUDA_FAILED names the kernel. */
flp_status flp_launch_kernel(const flp_driver *driver, const flp_kernel *kernel, unsigned blocks, CUstream stream, void **parameters);
#endif
