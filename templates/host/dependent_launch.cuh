// Kernels of one stream that overlap: the twin of sm90a/dependent_launch.cuh, and on other architectures of any/dependent_launch.cuh.
// Config: none
extern "C" void flp_host_wait_for_previous_kernel();
__device__ __forceinline__ void allow_next_kernel() {}
__device__ __forceinline__ void wait_for_previous_kernel() { flp_host_wait_for_previous_kernel(); }
