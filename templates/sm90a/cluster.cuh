// Thread block clusters, asynchronous stores to another block's shared memory, and register budgets of warpgroups: PTX ISA, "barrier.cluster", "mapa",
// "st.async", "setmaxnreg".
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

// Stores to the same shared-memory address in block `block` of the cluster. The bytes complete on the mbarrier at the same address there. A thread that has
// waited for it sees them: no fence is needed.
__device__ __forceinline__ void exchange_store(float2 *to, float2 value, int block, u32 barrier) {
    asm volatile("{\n.reg .b32 remote, remote_barrier;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mapa.shared::cluster.u32 remote_barrier, %2, %1;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.f32 [remote], {%3, %4}, [remote_barrier];\n}" ::"r"(shared_address(to)),
                 "r"(block), "r"(barrier), "f"(value.x), "f"(value.y)
                 : "memory");
}
__device__ __forceinline__ void exchange_store(float *to, float value, int block, u32 barrier) {
    asm volatile("{\n.reg .b32 remote, remote_barrier;\n"
                 "mapa.shared::cluster.u32 remote, %0, %1;\n"
                 "mapa.shared::cluster.u32 remote_barrier, %2, %1;\n"
                 "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.f32 [remote], %3, [remote_barrier];\n}" ::"r"(shared_address(to)),
                 "r"(block), "r"(barrier), "f"(value)
                 : "memory");
}
