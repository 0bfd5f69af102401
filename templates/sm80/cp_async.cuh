// Asynchronous copies from global to shared memory: PTX ISA, "cp.async".
// Config: none
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

// Copies the first `valid` of `bytes` bytes (4, 8 or 16; both addresses aligned to them) and fills the others with zeros.
template <int bytes> __device__ __forceinline__ void cp_async(u32 to, const void *from, int valid) {
    if constexpr (bytes == 16) asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from), "r"(valid) : "memory");
    else asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(to), "l"(from), "n"(bytes), "r"(valid) : "memory");
}
__device__ __forceinline__ void cp_async_commit() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until at most `pending` committed groups of this thread are unfinished.
template <int pending> __device__ __forceinline__ void cp_async_wait() { asm volatile("cp.async.wait_group %0;" ::"n"(pending) : "memory"); }
