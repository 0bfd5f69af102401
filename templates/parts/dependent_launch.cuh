// Programmatic dependent launch where the architecture has none: kernels of a stream run one after the other, and these do nothing.
// Config: none
__device__ __forceinline__ void allow_next_kernel() {}
__device__ __forceinline__ void wait_for_previous_kernel() {}
