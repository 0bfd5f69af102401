// Warp matrix products: the twin of sm80/mma.cuh.
// Config: none
extern "C" void flp_host_mma(int type, float *d, const u32 *a, u32 b0, u32 b1);
__device__ __twin__ void mma(bf16, float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(host_bf16, d, a, b0, b1); }
__device__ __twin__ void mma(f16, float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(host_f16, d, a, b0, b1); }
__device__ __twin__ void mma_tf32(float *d, const u32 (&a)[4], u32 b0, u32 b1) { flp_host_mma(host_tf32, d, a, b0, b1); }
