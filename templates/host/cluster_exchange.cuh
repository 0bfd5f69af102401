// Numbers that a block leaves in another's shared memory: the twin of sm90a/cluster_exchange.cuh.
// Config: none
extern "C" void flp_host_store_async(u32 address, int block, const void *from, int bytes, u32 barrier);
__device__ __twin__ void exchange_store(float2 *to, float2 value, int block, u32 barrier) {
    flp_host_store_async(shared_address(to), block, &value, 8, barrier);
}
__device__ __twin__ void exchange_store(float *to, float value, int block, u32 barrier) { flp_host_store_async(shared_address(to), block, &value, 4, barrier); }
