// Programmatic dependent launch of small kernels that may run beside the end of the kernel before, on the multiprocessors that its last blocks leave idle. With
// pdl_wait_last such a kernel must be free of conflicts with all kernels that may still run: back to the last one that waited first, with that one included.
// What it reads was complete before that one let the next begin, and it writes nothing that they use.
// Config: none

// Called first, by all threads. waits_last: whether the kernel may run beside the previous one.
__device__ __forceinline__ void enter_kernel(bool waits_last) {
    if (!waits_last) wait_for_previous_kernel();
    allow_next_kernel();
}

// Called last, by all threads. The next kernel waits only for this one's end, so this one must not end before the previous one has: one block waits, so that
// the others make room. It has done its work by then, because nothing that a block loads arrives while any of its warps waits (measured on Hopper).
__device__ __forceinline__ void leave_kernel(bool waits_last) {
    if (!waits_last || blockIdx.x > 0) return;
    block_barrier();
    wait_for_previous_kernel();
}
