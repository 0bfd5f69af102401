// Thread block clusters and warpgroup register budgets: the twin of sm90a/cluster.cuh.
// Config: none
extern "C" int flp_host_cluster_rank();
extern "C" void flp_host_cluster_barrier();
extern "C" void flp_host_set_registers(int count, bool claims);
__device__ __twin__ int cluster_rank() { return flp_host_cluster_rank(); }
__device__ __twin__ void cluster_barrier() { flp_host_cluster_barrier(); }
template <int count> __device__ __twin__ void registers_release() { flp_host_set_registers(count, false); }
template <int count> __device__ __twin__ void registers_claim() { flp_host_set_registers(count, true); }
