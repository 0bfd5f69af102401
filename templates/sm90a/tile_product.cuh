// The Hopper mainloop: a producer warp streams hidden and weight tiles through a ring of shared-memory stages, consumer warpgroups
// multiply them with wgmma.
//
// full[s]: the stage's bytes have arrived (one arrival, block_bytes + weight bytes). empty[s]: all consumers of all blocks of the cluster are
// done with it; with multicast a block fills its neighbours' stages too, so it must wait for their consumers as well.
// split[s], for fp32: a splitter warpgroup has replaced the stage's numbers by their tf32 parts (split_operands.cuh).
// Config: element, block_rows, block_vocab, block_hidden, hidden_size, hidden_is_transposed, stages, steps_together, cluster, consumer_groups,
// weight_is_hidden_vocab, weight_is_read_once, weight_box_*, splits_operands
template <class Config, bool splits> struct LowParts {};
template <class Config> struct LowParts<Config, true> {
    float hidden[Config::stages][Config::block_rows * Config::block_hidden];
    float weight[Config::stages][Config::block_vocab * Config::block_hidden];
    u64 split[Config::stages];
};

template <class Config> struct alignas(1024) Stages {
    typename Config::element hidden[Config::stages][Config::block_rows * Config::block_hidden];
    typename Config::element weight[Config::stages][Config::block_vocab * Config::block_hidden];
    LowParts<Config, Config::splits_operands> low;
    u64 full[Config::stages], empty[Config::stages];
};

template <class Config> struct Ring {
    int stage = 0, phase = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == Config::stages) {
            stage = 0;
            phase ^= 1;
        }
    }
};

template <class Config> struct TileProduct {
    using Shared = Stages<Config>;
    static constexpr int element_bytes = sizeof(typename Config::element);
    static constexpr int weight_bytes = sizeof(Shared::weight[0]);
    static constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    static constexpr int row_bytes = Config::block_hidden * element_bytes;
    static_assert(row_bytes == 128, "a stage's row is one 128-byte swizzle row");
    static constexpr int box_bytes = Config::weight_box_columns * Config::weight_box_rows * element_bytes;
    static constexpr int boxes = weight_bytes / box_bytes, boxes_of_block = boxes / Config::cluster;
    static_assert(boxes_of_block * Config::cluster * box_bytes == weight_bytes, "blocks of a cluster load equal shares of the weight tile");
    static constexpr int accumulators = Config::block_vocab / 2;

    Shared &shared;
    Ring<Config> ring;
    int hidden_rows; // that a copy brings
    __device__ __forceinline__ TileProduct(Shared &shared, int hidden_rows = Config::block_rows) : shared(shared), hidden_rows(hidden_rows) {}

    __device__ __forceinline__ u32 full() const { return shared_address(&shared.full[ring.stage]); }
    __device__ __forceinline__ u32 empty() const { return shared_address(&shared.empty[ring.stage]); }
    __device__ __forceinline__ u32 split() const { return shared_address(&shared.low.split[ring.stage]); }

    // One thread of the block, before the block's (cluster's) first barrier.
    __device__ __forceinline__ static void init(Shared &shared) {
        for (int s = 0; s < Config::stages; s++) {
            mbarrier_init(shared_address(&shared.full[s]), 1);
            mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups * Config::cluster);
            if constexpr (Config::splits_operands) mbarrier_init(shared_address(&shared.low.split[s]), 128);
        }
        mbarrier_init_fence();
    }

    // Rows of hidden's box where it has no more than there are. KEEP IN STEP: hidden's box (runtime/ops/linear_logp_launch.c).
    __device__ __forceinline__ static int box_rows(i64 rows) { return rows < Config::block_rows ? (int)rows : Config::block_rows; }

    // All threads, before the block's first barrier: makes the rows 0 that such a box leaves alone. The copy engine would do so with rows outside
    // the tensor, but takes its time: 63 of 64 are a tenth of a kernel that lives off memory.
    __device__ __forceinline__ static void clear_hidden(Shared &shared, i64 rows) {
        if (box_rows(rows) == Config::block_rows) return;
        auto words = (uint4 *)shared.hidden;
        for (int i = threadIdx.x; i < (int)(sizeof(shared.hidden) / sizeof(uint4)); i += Config::threads) words[i] = make_uint4(0, 0, 0, 0);
        async_proxy_fence();
    }

    // Of this step and of those that are filled together with it.
    __device__ __forceinline__ void wait_for_free_stages() const {
        Ring<Config> ahead = ring;
#pragma unroll
        for (int i = 0; i < Config::steps_together; i++) {
            mbarrier_wait(shared_address(&shared.empty[ahead.stage]), ahead.phase ^ 1);
            ahead.advance();
        }
    }

    // Producer, one thread: loads the tiles of one accumulator tile, row and column being its corner.
    __device__ __forceinline__ void load(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank,
                                         int steps = TileProduct::steps) {
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (step % Config::steps_together == 0) wait_for_free_stages();
            load_step(hidden_map, weight_map, row, column, rank, step);
        }
    }

    // The same of those steps alone for which kept(step) says so.
    template <class Kept>
    __device__ __forceinline__ void load_kept(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank, int steps,
                                              const Kept &kept) {
        static_assert(Config::steps_together == 1, "a stage at a time");
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (!kept(step)) continue;
            wait_for_free_stages();
            load_step(hidden_map, weight_map, row, column, rank, step);
        }
    }

    __device__ __forceinline__ void load_step(const TensorMap &hidden_map, const TensorMap &weight_map, int row, int column, int rank, int step) {
        mbarrier_arrive_expect(full(), hidden_rows * row_bytes + weight_bytes);
        int k = step * Config::block_hidden;
        load_hidden(hidden_map, k, row);
#pragma unroll
        for (int i = 0; i < boxes_of_block; i++) load_weight_box(weight_map, k, column, rank * boxes_of_block + i);
        ring.advance();
    }

    __device__ __forceinline__ void load_hidden(const TensorMap &map, int k, int row) {
        u32 to = shared_address(shared.hidden[ring.stage]);
        if constexpr (Config::hidden_is_transposed) {
#pragma unroll
            for (int group = 0; group < Config::block_rows / 64; group++)
                tma_load(to + group * 64 * row_bytes, &map, row + group * 64, k, full());
        } else {
            tma_load(to, &map, k, row, full());
        }
    }

    __device__ __forceinline__ void load_weight_box(const TensorMap &map, int k, int column, int box) {
        u32 to = shared_address(shared.weight[ring.stage]) + box * box_bytes;
        int x = Config::weight_is_hidden_vocab ? column + box * Config::weight_box_columns : k;
        int y = Config::weight_is_hidden_vocab ? k : column + box * Config::weight_box_rows;
        if constexpr (Config::cluster > 1) tma_load_multicast(to, &map, x, y, full(), (1 << Config::cluster) - 1);
        else if constexpr (Config::weight_is_read_once) tma_load_once(to, &map, x, y, full());
        else tma_load(to, &map, x, y, full());
    }

    __device__ __forceinline__ static u64 hidden_descriptor(const void *tile, int group) {
        return wgmma_descriptor(shared_address(tile) + group * 64 * row_bytes, 16, 8 * row_bytes); // of one box: no leading offset either way
    }
    __device__ __forceinline__ static u64 weight_descriptor(const void *tile) {
        return Config::weight_is_hidden_vocab ? wgmma_descriptor(shared_address(tile), box_bytes, 1024)
                                              : wgmma_descriptor(shared_address(tile), 16, 8 * row_bytes);
    }

    // Consumer warpgroup `group`: the product of its 64 rows with the tile.
    __device__ __forceinline__ void multiply(float (&d)[accumulators], int group, int steps = TileProduct::steps) {
        if constexpr (Config::splits_operands) multiply_split(d, group);
        else multiply_plain(d, group, steps);
    }

    // Starts a stage's products, which are added to d or, the first, become it.
    __device__ __forceinline__ void multiply_step(float (&d)[accumulators], int group, int adds) {
        mbarrier_wait(full(), ring.phase);
        wgmma_fence();
        u64 a = hidden_descriptor(shared.hidden[ring.stage], group), b = weight_descriptor(shared.weight[ring.stage]);
        wgmma_stage(d, a, b, adds);
        wgmma_commit();
    }

    // With two consumer warpgroups a stage is released one step late, when the products that read it have finished while the next ones run.
    // One warpgroup has few rows and waits for memory anyway: there the stage is released, and loaded again, as soon as may be.
    __device__ __forceinline__ void multiply_plain(float (&d)[accumulators], int group, int steps) {
        constexpr bool late = Config::consumer_groups > 1;
        u32 previous = 0;
#pragma unroll 1 // copies of a statement with so many registers are a third of the compile
        for (int step = 0; step < steps; step++) {
            if constexpr (late) ring.stage = uniform(ring.stage); // and so the descriptors, which else move there one by one
            multiply_step(d, group, step != 0);
            wgmma_wait<late ? 1 : 0>();
            if (late && step > 0) release(previous);
            if (!late) release(empty());
            previous = empty();
            ring.advance();
        }
        wgmma_finish(d);
        if (late && steps > 0) release(previous);
    }

    // Of the steps that load_kept loads; how many these are. d is not written where there are none.
    template <class Kept> __device__ __forceinline__ int multiply_kept(float (&d)[accumulators], int group, int steps, const Kept &kept) {
        int done = 0;
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            if (!kept(step)) continue;
            multiply_step(d, group, done != 0);
            wgmma_wait<0>();
            release(empty());
            ring.advance();
            done++;
        }
        wgmma_finish(d);
        return done;
    }

    // The tensor cores truncate what they accumulate. That would cost fp32 its accuracy over a long D, so only a stage's products are summed
    // there, small ones first (low x low is below fp32's last bit), and the stages by ordinary additions.
    __device__ __forceinline__ void multiply_split(float (&d)[accumulators], int group) {
        float stage_sum[accumulators];
#pragma unroll 1
        for (int step = 0; step < steps; step++) {
            mbarrier_wait(split(), ring.phase);
            wgmma_fence();
            u64 a = hidden_descriptor(shared.hidden[ring.stage], group), b = weight_descriptor(shared.weight[ring.stage]);
            u64 a_low = hidden_descriptor(shared.low.hidden[ring.stage], group), b_low = weight_descriptor(shared.low.weight[ring.stage]);
            wgmma_stage(stage_sum, a_low, b, 0);
            wgmma_stage(stage_sum, a, b_low, 1);
            wgmma_stage(stage_sum, a, b, 1);
            wgmma_commit();
            wgmma_finish(stage_sum);
            release(empty());
#pragma unroll
            for (int i = 0; i < accumulators; i++) d[i] = step == 0 ? stage_sum[i] : d[i] + stage_sum[i];
            ring.advance();
        }
    }

    __device__ __forceinline__ void release(u32 barrier) {
        int thread = threadIdx.x % 128;
        if constexpr (Config::cluster == 1) {
            if (thread == 0) mbarrier_arrive(barrier);
        } else {
            if (thread < Config::cluster) mbarrier_arrive_remote(barrier, thread);
        }
    }
};
