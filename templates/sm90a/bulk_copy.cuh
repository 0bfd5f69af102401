// Copies of contiguous memory by the copy engine: PTX ISA, "cp.async.bulk".
// Config: none

// To this block's shared memory; the bytes complete on the barrier. bytes, from and to: multiples of 16.
__device__ __forceinline__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
