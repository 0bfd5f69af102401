// fp32 products on tf32 tensor cores: each number is split as x = high + low + rest, and a stage's products are low x high, high x low and high x high.
//
// A consumer warpgroup splits its rows of A in registers. The splitter warpgroup splits B: it stores B's low parts beside the stage, while the stage itself,
// as loaded, serves as the high parts, since the tensor cores ignore the last 13 bits of each number. Adding half a unit of the bits above them, as an
// integer, therefore rounds to nearest; cvt.rna.tf32 would cost a tenth of the kernel's time. A NaN remains NaN in at least one of its two parts.
// Config: block_columns, block_inner, consumer_groups, stages
constexpr u32 tf32_last_half = 0x1000, tf32_mask = 0xffffe000;

// high: the nearest tf32 number; low: the remainder, which has either sign, so that it may be truncated. |rest| <= 2^-23 |x|.
__device__ __forceinline__ void split_to_nearest(u32 x, u32 &high, u32 &low) {
    high = (x + tf32_last_half) & tf32_mask;
    low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}

// The remainder that truncating x leaves. It always has the sign of x, so it is rounded, not truncated. |rest| <= 2^-22 |x|.
__device__ __forceinline__ u32 low_of_truncated(u32 x) {
    float low = __uint_as_float(x) - __uint_as_float(x & tf32_mask);
    return low == low ? __float_as_uint(low) + tf32_last_half : __float_as_uint(low);
}

template <class Config> struct OperandSplitter {
    Stages<Config> &shared;
    Ring<Config> ring;
    __device__ __forceinline__ OperandSplitter(Stages<Config> &shared) : shared(shared) {}

    // Computes B's low parts element by element, so the swizzle does not matter.
    template <int count> __device__ __forceinline__ static void split(const float (&b)[count], float (&low)[count]) {
        static_assert(count % 4 == 0, "whole vectors");
#pragma unroll
        for (int i = 0; i < ceil_div(count, 512); i++) {
            int at = (i * 128 + threadIdx.x % 128) * 4;
            if (count % 512 != 0 && at >= count) break;
            uint4 x = *(const uint4 *)&b[at];
            *(uint4 *)&low[at] = make_uint4(low_of_truncated(x.x), low_of_truncated(x.y), low_of_truncated(x.z), low_of_truncated(x.w));
        }
    }

    // Splits B in all stages of one tile.
    __device__ __forceinline__ void split_tile() {
        for (int step = 0; step < AllSteps<Config>().count; step++) {
            mbarrier_wait(shared_address(&shared.full[ring.stage]), ring.phase);
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

// A warp's 16 rows of A in a stage, as fragments. One ldmatrix loads 8 of each row's 32 numbers: PTX ISA, "wgmma", the figure of A for .tf32.
struct SplitRows {
    u32 high[16], low[16]; // low: until split(), the numbers themselves

    __device__ __forceinline__ void load(const float *rows) {
        int lane = lane_index_reread(), row = lane % 16; // registers are scarce
#pragma unroll
        for (int k = 0; k < 4; k++) {
            u32 x[4];
            ldmatrix(x, shared_address(rows) + row * 128 + ((2 * k + lane / 16) ^ (row % 8)) * 16);
#pragma unroll
            for (int i = 0; i < 4; i++) low[4 * k + i] = x[i];
        }
    }
    __device__ __forceinline__ void split() {
#pragma unroll
        for (int i = 0; i < 16; i++) split_to_nearest(low[i], high[i], low[i]);
    }
};

// A consumer warpgroup's products, stage by stage. Two warpgroups issue their products alternately, so that one uses the tensor cores while the other adds up
// its sums. A stage's rows of A are loaded while the previous stage's products run, as soon as the products with A's low parts have read their registers.
template <class Config> struct SplitProduct {
    TileProduct<Config> &product;
    int group;
    SplitRows rows;
    __device__ __forceinline__ SplitProduct(TileProduct<Config> &product, int group) : product(product), group(group) {}

    __device__ __forceinline__ void load() {
        mbarrier_wait(product.full(), product.ring.phase);
        rows.load(&product.shared.a[product.ring.stage][(group * 64 + warp_index() % 4 * 16) * Config::block_inner]);
    }

    __device__ __forceinline__ void wait_for_turn() const {
        if constexpr (Config::consumer_groups == 1) return;
        int steps = product.ring.phase * Config::stages + product.ring.stage; // the number of steps before this one, plus a multiple of 2
        mbarrier_wait(shared_address(&product.shared.low.turn[group]), (steps & 1) ^ (group == 0));
    }
    __device__ __forceinline__ void pass_turn() const {
        if constexpr (Config::consumer_groups == 1) return;
        warp_barrier(); // all lanes have had their turn
        if (lane_index() == 0) mbarrier_arrive(shared_address(&product.shared.low.turn[1 - group]));
    }

    // Issues sum = the stage's products, small ones first; low x low is below fp32's last bit.
    __device__ __forceinline__ void start(float (&sum)[Config::block_columns / 2]) {
        u64 b = product.b_descriptor(shared_address(product.shared.b[product.ring.stage])),
            b_low = product.b_descriptor(shared_address(product.shared.low.b[product.ring.stage]));
        rows.split();
        wait_for_turn();
        wgmma_fence();
        wgmma_stage(sum, rows.low, b, 0);
        wgmma_commit();
        mbarrier_wait(product.split(), product.ring.phase);
        wgmma_fence();
        wgmma_stage(sum, rows.high, b_low, 1);
        wgmma_stage(sum, rows.high, b, 1);
        wgmma_commit();
        pass_turn();
    }

    // Waits for the stage's products and releases the stage; meanwhile, if `more`, loads the next stage's rows of A.
    __device__ __forceinline__ void finish(float (&sum)[Config::block_columns / 2], bool more) {
        u32 done = product.empty();
        product.ring.advance();
        if (more) {
            wgmma_wait<1>();
            wgmma_hold(rows.low);
            load();
        }
        wgmma_finish(sum);
        wgmma_hold(rows.high);
        wgmma_hold(rows.low);
        warp_barrier(); // all lanes have read A
        product.release(done);
    }
};

// The mainloop of fp32. The tensor cores truncate what they accumulate, which over a long sum would cost fp32 its accuracy. So they sum only a stage's
// products, and ordinary additions sum the stages.
template <class Config>
__device__ __forceinline__ int multiply_split(TileProduct<Config> &product, float (&d)[Config::block_columns / 2], int group, int steps) {
    SplitProduct<Config> split(product, group);
    float sum[Config::block_columns / 2];
    split.load();
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        split.start(sum);
        split.finish(sum, step + 1 < steps);
#pragma unroll
        for (int i = 0; i < Config::block_columns / 2; i++) d[i] = step == 0 ? sum[i] : d[i] + sum[i];
    }
    return steps;
}
