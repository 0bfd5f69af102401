// Kernels of one stream, one after the other: nothing to say to the hardware.
// Config: none
__device__ __forceinline__ void allow_next_kernel() {}
__device__ __forceinline__ void wait_for_previous_kernel() {}
