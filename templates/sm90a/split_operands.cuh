// fp32 on tf32 tensor cores, x = high + low + rest: a consumer warpgroup splits its rows of A in registers; one warpgroup splits B, whose high parts the
// tensor cores read of the stage as it came. They pass over the last 13 bits of each number, so adding half of them rounds to the nearest: in integers, since
// cvt.rna.tf32 costs a tenth of the kernel's time. What is no number stays so in one of its two parts.
// Config: block_rows, block_columns, block_inner, inner_size, stages
constexpr u32 tf32_last_half = 0x1000, tf32_mask = 0xffffe000;

// To the nearest tf32 number, and what is left: of either sign, so that it may be truncated. |rest| <= 2^-23 |x|.
__device__ __forceinline__ void split_to_nearest(u32 x, u32 &high, u32 &low) {
    high = (x + tf32_last_half) & tf32_mask;
    low = __float_as_uint(__uint_as_float(x) - __uint_as_float(high));
}

// What truncating x leaves, which has its sign and so is rounded. |rest| <= 2^-22 |x|.
__device__ __forceinline__ u32 low_of_truncated(u32 x) {
    float low = __uint_as_float(x) - __uint_as_float(x & tf32_mask);
    return low == low ? __float_as_uint(low) + tf32_last_half : __float_as_uint(low);
}

template <class Config> struct OperandSplitter {
    Stages<Config> &shared;
    Ring<Config> ring;
    __device__ __forceinline__ OperandSplitter(Stages<Config> &shared) : shared(shared) {}

    // Element by element, so the swizzle does not matter.
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

    // All stages of one tile.
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

// A warp's 16 rows of a stage as fragments, an ldmatrix for each 8 of their 32 numbers: PTX ISA, "wgmma", the figure of A for .tf32.
struct SplitRows {
    u32 high[16], low[16]; // low: until split(), the numbers themselves

    __device__ __forceinline__ void load(const float *rows) {
        int lane = lane_index_reread(), row = lane % 16; // registers are few
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

// A consumer warpgroup's stages. Two warpgroups start their products in turn, so that each has the tensor cores while the other adds up; a stage's rows
// are read under the products of the one before, as soon as their low parts have been.
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
        int steps = product.ring.phase * Config::stages + product.ring.stage; // that came before, up to a multiple of 2
        mbarrier_wait(shared_address(&product.shared.low.turn[group]), (steps & 1) ^ (group == 0));
    }
    __device__ __forceinline__ void pass_turn() const {
        if constexpr (Config::consumer_groups == 1) return;
        warp_barrier(); // all lanes have had theirs
        if (lane_index() == 0) mbarrier_arrive(shared_address(&product.shared.low.turn[1 - group]));
    }

    // sum = the stage's products, small ones first; low x low is below fp32's last bit.
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
        warp_barrier(); // behind all lanes' reads of A
        product.release(done);
    }
};

// The tensor cores truncate what they accumulate. That would cost fp32 its accuracy over a long sum, so only a stage's products are summed
// there, and the stages by ordinary additions.
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
