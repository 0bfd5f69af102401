// Copies of contiguous memory by the copy engine: the twin of sm90a/bulk_copy.cuh.
// Config: none
extern "C" void flp_host_bulk_load(u32 to, const void *from, int bytes, u32 barrier);
__device__ __twin__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) { flp_host_bulk_load(to, from, bytes, barrier); }
