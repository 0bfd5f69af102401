// fp32 on tf32 tensor cores: one warpgroup replaces each arrived number by its high part and puts the low part beside the stage.
// Config: block_rows, block_columns, block_inner, inner_size, stages
template <class Config> struct OperandSplitter {
    Stages<Config> &shared;
    Ring<Config> ring;
    __device__ __forceinline__ OperandSplitter(Stages<Config> &shared) : shared(shared) {}

    // Element by element, so the swizzle does not matter.
    template <int count> __device__ __forceinline__ static void split(float (&high)[count], float (&low)[count]) {
        static_assert(count % 512 == 0, "each of 128 threads splits whole vectors");
#pragma unroll
        for (int i = 0; i < count / 512; i++) {
            int at = (i * 128 + threadIdx.x % 128) * 4;
            uint4 x = *(const uint4 *)&high[at], rest;
            split_tf32(x.x, x.x, rest.x);
            split_tf32(x.y, x.y, rest.y);
            split_tf32(x.z, x.z, rest.z);
            split_tf32(x.w, x.w, rest.w);
            *(uint4 *)&high[at] = x;
            *(uint4 *)&low[at] = rest;
        }
    }

    // All stages of one tile.
    __device__ __forceinline__ void split_tile() {
        for (int step = 0; step < AllSteps<Config>().count; step++) {
            mbarrier_wait(shared_address(&shared.full[ring.stage]), ring.phase);
            split(shared.a[ring.stage], shared.low.a[ring.stage]);
            split(shared.b[ring.stage], shared.low.b[ring.stage]);
            async_proxy_fence();
            mbarrier_arrive(shared_address(&shared.low.split[ring.stage]));
            ring.advance();
        }
    }
};

// The splitter warpgroup's role.
template <class Config, class Walk> __device__ __forceinline__ void split_tiles(Stages<Config> &shared, Walk walk) {
    OperandSplitter<Config> splitter(shared);
    Unit unit;
    while (walk.next(unit))
        for (int tile = 0; tile < unit.tiles; tile++) splitter.split_tile();
}

// The tensor cores truncate what they accumulate. That would cost fp32 its accuracy over a long sum, so only a stage's products are summed
// there, small ones first (low x low is below fp32's last bit), and the stages by ordinary additions.
template <class Config>
__device__ __forceinline__ int multiply_split(TileProduct<Config> &product, float (&d)[Config::block_columns / 2], int group, int steps) {
    auto &shared = product.shared;
    auto &ring = product.ring;
    float stage_sum[Config::block_columns / 2];
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        mbarrier_wait(product.split(), ring.phase);
        wgmma_fence();
        u64 a = product.a_descriptor(shared.a[ring.stage], group), b = product.b_descriptor(shared.b[ring.stage]);
        u64 a_low = product.a_descriptor(shared.low.a[ring.stage], group), b_low = product.b_descriptor(shared.low.b[ring.stage]);
        wgmma_stage(stage_sum, a_low, b, 0);
        wgmma_stage(stage_sum, a, b_low, 1);
        wgmma_stage(stage_sum, a, b, 1);
        wgmma_commit();
        wgmma_finish(stage_sum);
        product.release(product.empty());
#pragma unroll
        for (int i = 0; i < Config::block_columns / 2; i++) d[i] = step == 0 ? stage_sum[i] : d[i] + stage_sum[i];
        ring.advance();
    }
    return steps;
}
