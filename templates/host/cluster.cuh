// Thread block clusters, asynchronous stores to another block's shared memory, and register budgets of warpgroups: the twin of sm90a/cluster.cuh.
// Config: none
extern "C" int flp_host_cluster_rank();
extern "C" void flp_host_cluster_barrier();
extern "C" void flp_host_set_registers(int count, bool claims);
__device__ __twin__ int cluster_rank() { return flp_host_cluster_rank(); }
__device__ __twin__ void cluster_barrier() { flp_host_cluster_barrier(); }
template <int count> __device__ __twin__ void registers_release() { flp_host_set_registers(count, false); }
template <int count> __device__ __twin__ void registers_claim() { flp_host_set_registers(count, true); }
extern "C" void flp_host_store_async(u32 address, int block, const void *from, int bytes, u32 barrier);
__device__ __twin__ void exchange_store(float2 *to, float2 value, int block, u32 barrier) {
    flp_host_store_async(shared_address(to), block, &value, 8, barrier);
}
__device__ __twin__ void exchange_store(float *to, float value, int block, u32 barrier) { flp_host_store_async(shared_address(to), block, &value, 4, barrier); }
