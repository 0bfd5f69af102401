// fp32 on tf32 tensor cores: one warpgroup replaces each arrived number by its high part and puts the low part beside the stage.
// Config: splits_operands, block_rows, block_vocab, block_hidden, hidden_size, stages
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

    // All stages of one accumulator tile.
    __device__ __forceinline__ void split_tile() {
        for (int step = 0; step < TileProduct<Config>::steps; step++) {
            mbarrier_wait(shared_address(&shared.full[ring.stage]), ring.phase);
            split(shared.hidden[ring.stage], shared.low.hidden[ring.stage]);
            split(shared.weight[ring.stage], shared.low.weight[ring.stage]);
            async_proxy_fence();
            mbarrier_arrive(shared_address(&shared.low.split[ring.stage]));
            ring.advance();
        }
    }
};

template <class Config> __device__ __forceinline__ void linear_logp_split(Stages<Config> &shared, Schedule<Config> schedule) {
    OperandSplitter<Config> splitter(shared);
    Unit unit;
    while (schedule.next(unit))
        for (int tile = 0; tile < unit.tiles; tile++) splitter.split_tile();
}
