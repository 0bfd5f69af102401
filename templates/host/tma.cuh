// TMA copies to shared memory: the twin of sm90a/tma.cuh.
// Config: none
extern "C" void flp_host_tma_load(u32 to, const void *map, int column, int row, u32 barrier, u32 blocks);
__device__ __twin__ void tma_load(u32 to, const TensorMap *map, int column, int row, u32 barrier) { flp_host_tma_load(to, map, column, row, barrier, 0); }
__device__ __twin__ void tma_load_once(u32 to, const TensorMap *map, int column, int row, u32 barrier) { flp_host_tma_load(to, map, column, row, barrier, 0); }
__device__ __twin__ void tma_load_multicast(u32 to, const TensorMap *map, int column, int row, u32 barrier, u16 blocks) {
    flp_host_tma_load(to, map, column, row, barrier, blocks);
}
extern "C" void flp_host_bulk_load(u32 to, const void *from, int bytes, u32 barrier);
__device__ __twin__ void bulk_load(u32 to, const void *from, int bytes, u32 barrier) { flp_host_bulk_load(to, from, bytes, barrier); }
