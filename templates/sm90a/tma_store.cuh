// Stores of fragments to shared memory, and TMA copies from there to tensors: PTX ISA, "stmatrix", "cp.async.bulk.tensor",
// "cp.reduce.async.bulk.tensor".
// Config: none

// Writes the box at (column, row) of the tensor; what lies outside the tensor is not written. async_proxy_fence must have made the bytes visible.
__device__ __forceinline__ void tma_store(const TensorMap *map, u32 from, int column, int row) {
    asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from) : "memory");
}
// Adds the box to what the tensor holds, each element once: deterministic as long as each element has one writer.
__device__ __forceinline__ void tma_add(const TensorMap *map, u32 from, int column, int row) {
    asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(column), "r"(row), "r"(from)
                 : "memory");
}
__device__ __forceinline__ void bulk_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
// Waits until at most `pending` committed groups of this thread still read shared memory.
template <int pending> __device__ __forceinline__ void bulk_wait_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(pending) : "memory"); }
// Waits until at most `pending` committed groups have not completed their writes.
template <int pending> __device__ __forceinline__ void bulk_wait() { asm volatile("cp.async.bulk.wait_group %0;" ::"n"(pending) : "memory"); }
// Stores four 8 x 8 matrices of 16-bit elements: lane l passes the address of row l % 8 of matrix l / 8, and provides of each matrix the 32 bits at row l /
// 4, position l % 4 ("stmatrix").
__device__ __forceinline__ void store_shared_matrices(u32 row_address, const u32 (&d)[4]) {
    asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(row_address), "r"(d[0]), "r"(d[1]), "r"(d[2]), "r"(d[3]) : "memory");
}
__device__ __forceinline__ void store_shared_pair(u32 address, float x, float y) {
    asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(address), "f"(x), "f"(y) : "memory");
}
