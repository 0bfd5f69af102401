// Warpgroup matrix products from shared memory: PTX ISA, "wgmma". The generator emits the instruction itself, and the wait for all of its results, for the
// shape in use (gen/wgmma.lua).
// Config: none

// The descriptor of a tile in the 128-byte swizzle, at a multiple of 1024 bytes. K-major (rows of 128 bytes along K): the stride is the distance from 8 rows
// to the next 8, and the leading offset is not used. MN-major (rows of 64 elements along M or N): the leading offset is the distance from 64 elements to the
// next 64, the stride from 8 steps of K to the next 8. To step along K, advance the start address by 32 bytes (K-major) or 2048 bytes (MN-major).
__device__ __forceinline__ u64 wgmma_descriptor(u32 address, int leading_bytes, int stride_bytes) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading_bytes >> 4) << 16 | (u64)(stride_bytes >> 4) << 32 | 1ull << 62;
}
__device__ __forceinline__ void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
__device__ __forceinline__ void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Waits until at most `pending` committed groups are unfinished.
template <int pending> __device__ __forceinline__ void wgmma_wait() { asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory"); }
