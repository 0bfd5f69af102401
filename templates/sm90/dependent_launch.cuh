// Kernels of one stream that overlap: PTX ISA, "griddepcontrol".
// Config: none

// The next kernel's blocks may start, where there is room, before this kernel has ended.
__device__ __forceinline__ void allow_next_kernel() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }
// Waits until the kernel before has ended and its writes are visible.
__device__ __forceinline__ void wait_for_previous_kernel() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
