// Shared-memory barriers at which threads arrive without waiting: PTX ISA, "mbarrier".
// Config: none
__device__ __forceinline__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

__device__ __forceinline__ void mbarrier_init(u32 barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(barrier), "r"(arrivals) : "memory");
}
__device__ __forceinline__ void mbarrier_arrive(u32 barrier) {
    asm volatile("{\n.reg .b64 state;\n"
                 "mbarrier.arrive.shared.b64 state, [%0];\n}" ::"r"(barrier)
                 : "memory");
}
// Waits until the phase of this parity has completed.
__device__ __forceinline__ void mbarrier_wait(u32 barrier, int parity) {
    asm volatile("{\n.reg .pred done;\n"
                 "again:\n"
                 "mbarrier.test_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again;\n}" ::"r"(barrier),
                 "r"(parity)
                 : "memory");
}
