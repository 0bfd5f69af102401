// Thread block clusters and warpgroup register budgets: PTX ISA, "barrier.cluster", "setmaxnreg".
// Config: none
__device__ __forceinline__ int cluster_rank() {
    u32 rank;
    asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
    return rank;
}
__device__ __forceinline__ void cluster_barrier() { asm volatile("barrier.cluster.arrive.aligned;\nbarrier.cluster.wait.aligned;" ::: "memory"); }
// count: a multiple of 8 in 24 .. 256; all warps of the warpgroup execute it.
template <int count> __device__ __forceinline__ void registers_release() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count)); }
template <int count> __device__ __forceinline__ void registers_claim() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count)); }
