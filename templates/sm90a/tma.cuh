// TMA copies to shared memory, of tensors and of contiguous memory: PTX ISA, "cp.async.bulk.tensor", "cp.async.bulk".
// Config: none

// Copies the box at (column, row) of the tensor to shared memory; its bytes complete on the mbarrier. Elements outside the tensor are filled with zeros, and
// count among the bytes.
__device__ __forceinline__ void tma_load(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(map), "r"(column),
                 "r"(row), "r"(barrier)
                 : "memory");
}
// For data that is read once: the L2 evicts it first, so that other data stays there.
__device__ __forceinline__ void tma_load_once(u32 to, const TensorMap *map, int column, int row, u32 barrier) {
    asm volatile("{\n.reg .b64 policy;\n"
                 "createpolicy.fractional.L2::evict_first.b64 policy, 1.0;\n"
                 "cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1, {%2, %3}], [%4], policy;\n}" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier)
                 : "memory");
}
// The same box to the same address, and the same bytes on the same barrier, in every block of the cluster whose bit is set.
__device__ __forceinline__ void tma_load_multicast(u32 to, const TensorMap *map, int column, int row, u32 barrier, u16 blocks) {
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster "
                 "[%0], [%1, {%2, %3}], [%4], %5;" ::"r"(to),
                 "l"(map), "r"(column), "r"(row), "r"(barrier), "h"(blocks)
                 : "memory");
}

// Copies contiguous memory to this block's shared memory; the bytes complete on the mbarrier. bytes, from and to: multiples of 16.
__device__ __forceinline__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(to), "l"(from), "r"(bytes), "r"(barrier)
                 : "memory");
}
