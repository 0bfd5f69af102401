// Warpgroup matrix products from shared memory: the twin of sm90a/wgmma.cuh. The product itself is emitted for the shape in use.
// Config: none
extern "C" void flp_host_wgmma(float *d, int n, int k, int type, u64 a, u64 b, bool accumulates, bool transposed_a, bool transposed_b);
extern "C" void flp_host_wgmma_of_registers(float *d, int n, int k, int type, const u32 *a, u64 b, bool accumulates);
extern "C" void flp_host_wgmma_hold(const u32 *a, int count);
extern "C" void flp_host_wgmma_fence();
extern "C" void flp_host_wgmma_commit();
extern "C" void flp_host_wgmma_wait(int pending);
__device__ __twin__ u64 wgmma_descriptor(u32 address, int leading_bytes, int stride_bytes) {
    return (u64)((address & 0x3FFFF) >> 4) | (u64)(leading_bytes >> 4) << 16 | (u64)(stride_bytes >> 4) << 32 | 1ull << 62;
}
__device__ __twin__ void wgmma_fence() { flp_host_wgmma_fence(); }
__device__ __twin__ void wgmma_commit() { flp_host_wgmma_commit(); }
template <int pending> __device__ __twin__ void wgmma_wait() { flp_host_wgmma_wait(pending); }
