// Stores of fragments to shared memory, and TMA copies from there to tensors: the twin of sm90a/tma_store.cuh.
// Config: none
extern "C" void flp_host_tma_store(const void *map, u32 from, int column, int row, bool adds);
extern "C" void flp_host_bulk_commit();
extern "C" void flp_host_bulk_wait(int pending, bool reads_only);
extern "C" void flp_host_stmatrix(u32 row_address, u32 *d);
extern "C" void flp_host_store_shared(u32 address, const void *from, int bytes);
__device__ __twin__ void tma_store(const TensorMap *map, u32 from, int column, int row) { flp_host_tma_store(map, from, column, row, false); }
__device__ __twin__ void tma_add(const TensorMap *map, u32 from, int column, int row) { flp_host_tma_store(map, from, column, row, true); }
__device__ __twin__ void bulk_commit() { flp_host_bulk_commit(); }
template <int pending> __device__ __twin__ void bulk_wait_read() { flp_host_bulk_wait(pending, true); }
template <int pending> __device__ __twin__ void bulk_wait() { flp_host_bulk_wait(pending, false); }
__device__ __twin__ void store_shared_matrices(u32 row_address, const u32 (&d)[4]) {
    u32 held[4] = {d[0], d[1], d[2], d[3]};
    flp_host_stmatrix(row_address, held);
}
__device__ __twin__ void store_shared_pair(u32 address, float x, float y) {
    float2 pair = {x, y};
    flp_host_store_shared(address, &pair, 8);
}
