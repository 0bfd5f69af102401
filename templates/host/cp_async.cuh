// Asynchronous copies from global to shared memory: the twin of sm80/cp_async.cuh.
// Config: none
extern "C" void flp_host_cp_async(u32 to, const void *from, int bytes, int valid);
extern "C" void flp_host_cp_async_commit();
extern "C" void flp_host_cp_async_wait(int pending);
__device__ __twin__ u32 shared_address(const void *pointer) { return (u32)__cvta_generic_to_shared(pointer); }

template <int bytes> __device__ __twin__ void cp_async(u32 to, const void *from, int valid) {
    static_assert(bytes == 4 || bytes == 8 || bytes == 16, "cp.async copies 4, 8 or 16 bytes");
    flp_host_cp_async(to, from, bytes, valid);
}
__device__ __twin__ void cp_async_commit() { flp_host_cp_async_commit(); }
template <int pending> __device__ __twin__ void cp_async_wait() { flp_host_cp_async_wait(pending); }
