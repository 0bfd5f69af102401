// Shared-memory barriers that also count bytes: the twin of sm90a/mbarrier.cuh and sm80/mbarrier.cuh.
// Config: none
extern "C" void flp_host_mbarrier_init(u32 barrier, int arrivals);
extern "C" void flp_host_mbarrier_init_fence();
extern "C" void flp_host_mbarrier_arrive(u32 barrier, int announced_bytes);
extern "C" void flp_host_mbarrier_arrive_remote(u32 barrier, int block);
extern "C" void flp_host_mbarrier_wait(u32 barrier, int parity);
extern "C" void flp_host_proxy_fence();
__device__ __twin__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

__device__ __twin__ void mbarrier_init(u32 barrier, int arrivals) { flp_host_mbarrier_init(barrier, arrivals); }
__device__ __twin__ void mbarrier_init_fence() { flp_host_mbarrier_init_fence(); }
__device__ __twin__ void mbarrier_arrive_expect(u32 barrier, int bytes) { flp_host_mbarrier_arrive(barrier, bytes); }
__device__ __twin__ void mbarrier_arrive_remote(u32 barrier, int block) { flp_host_mbarrier_arrive_remote(barrier, block); }
__device__ __twin__ void mbarrier_arrive(u32 barrier) { flp_host_mbarrier_arrive(barrier, 0); }
__device__ __twin__ void mbarrier_wait(u32 barrier, int parity) { flp_host_mbarrier_wait(barrier, parity); }
__device__ __twin__ void async_proxy_fence() { flp_host_proxy_fence(); }
