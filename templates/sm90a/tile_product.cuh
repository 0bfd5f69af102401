// The Hopper mainloop, d = A B: a producer thread streams tiles of A and B by TMA through a ring of shared-memory stages, and consumer warpgroups multiply
// them with wgmma.
//
// A is stored [rows, inner] or, with a_transposed, [inner, rows]; B is stored [columns, inner] or, with b_transposed, [inner, columns]. A stage holds
// block_inner elements (128 bytes) along the inner size of both operands' tiles: one step.
//
// The mbarriers of a stage s:
// full[s]: the stage's data has arrived. The producer arrives once and announces A's bytes + B's bytes, which TMA then completes.
// empty[s]: all consumers of all blocks of the cluster are done with the stage. As a block's multicast fills its neighbours' stages too, it must wait for
// their consumers as well.
// split[s], only for fp32: the splitter warpgroup has put the low parts of B's numbers beside the stage (split_operands.cuh). (turn[g], not of a stage:
// consumer warpgroup g may issue its next products.)
// Config: element, threads, block_rows, block_columns, block_inner, inner_size, a_transposed, stages, steps_together, cluster, consumer_groups,
// group_rows, turns, b_transposed, b_is_read_once, b_box_rows, b_box_columns, splits_operands
template <class Config, bool splits> struct LowParts {};
template <class Config> struct LowParts<Config, true> {
    float b[Config::stages][Config::block_columns * Config::block_inner];
    u64 split[Config::stages], turn[2];
};

// A warp's state in the ping-pong schedule (turns.cuh). others: the number of the other warpgroup's tiles; turn: the index among these of the tile that
// follows this warp's next tile.
struct WarpTurn {
    int others, turn;
};
// barrier[g]: the other warpgroup has issued all products of its tile, so warpgroup g may issue those of its next one.
template <int turns> struct TurnState {
    u64 barrier[turns];
    WarpTurn of_warp[4 * turns];
};
template <> struct TurnState<1> {};

template <class Config> struct alignas(1024) Stages {
    typename Config::element a[Config::stages][Config::block_rows * Config::block_inner];
    typename Config::element b[Config::stages][Config::block_columns * Config::block_inner];
    LowParts<Config, Config::splits_operands> low;
    u64 full[Config::stages], empty[Config::stages];
    TurnState<Config::turns> turns;
};

// A role's position in the ring of stages. phase: the parity of the stage's current use.
template <class Config> struct Ring {
    int stage = 0, phase = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == Config::stages) {
            stage = 0;
            phase ^= 1;
        }
    }
    // Passes over the stages of steps that the other warpgroup multiplies.
    __device__ __forceinline__ void skip(int steps) {
        stage += steps;
        phase ^= stage / Config::stages & 1;
        stage %= Config::stages;
    }
};

// The steps along the inner size that a tile's product takes: all of them (or those that kept_steps.cuh chooses). a_row, a_step: how much further A's rows and
// steps lie in the matrix of its tensor map than in the product (product_slabs.cuh).
template <class Config> struct AllSteps {
    static constexpr bool passes_some_over = false;
    static constexpr int a_row = 0, a_step = 0;
    int count = ceil_div(Config::inner_size, Config::block_inner), begin = 0;
    __device__ __forceinline__ bool operator()(int) const { return true; }
};

// Mainloops that only some variants have: kept_steps.cuh, split_operands.cuh.
template <class Config> struct TileProduct;
template <class Config, class Steps>
__device__ __forceinline__ int multiply_kept(TileProduct<Config> &product, float (&d)[Config::block_columns / 2], int group, const Steps &steps);
template <class Config>
__device__ __forceinline__ int multiply_split(TileProduct<Config> &product, float (&d)[Config::block_columns / 2], int group, int steps);

template <class Config> struct TileProduct {
    using Shared = Stages<Config>;
    static constexpr int element_bytes = sizeof(typename Config::element);
    static constexpr int b_bytes = sizeof(Shared::b[0]);
    static constexpr int row_bytes = Config::block_inner * element_bytes;
    static_assert(row_bytes == 128, "a stage's row is one 128-byte swizzle row");
    static constexpr int box_bytes = Config::b_box_columns * Config::b_box_rows * element_bytes;
    static constexpr int boxes_inward = Config::b_transposed ? Config::block_inner / Config::b_box_rows : 1; // TMA boxes of B with the same columns
    static constexpr int boxes = b_bytes / box_bytes, boxes_of_block = boxes / Config::cluster;
    static_assert(boxes_of_block * Config::cluster * box_bytes == b_bytes, "blocks of a cluster load equal shares of B's tile");
    static constexpr int accumulators = Config::block_columns / 2, parts = Config::group_rows / 64; // of a thread and part; parts of 64 rows of a warpgroup
    using Accumulators = float[parts][accumulators];
    // Arrivals of a consumer warpgroup at an empty barrier: one where only the tensor cores read the stage, else one of each warp.
    static constexpr int releases = Config::splits_operands ? 4 : 1;

    Shared &shared;
    Ring<Config> ring;
    int a_rows; // rows of A's TMA box
    __device__ __forceinline__ TileProduct(Shared &shared, int a_rows = Config::block_rows) : shared(shared), a_rows(a_rows) {}

    __device__ __forceinline__ u32 full() const { return shared_address(&shared.full[ring.stage]); }
    __device__ __forceinline__ u32 empty() const { return shared_address(&shared.empty[ring.stage]); }
    __device__ __forceinline__ u32 split() const { return shared_address(&shared.low.split[ring.stage]); }

    // Called by one thread of the block, before the block's (cluster's) first barrier.
    __device__ __forceinline__ static void init(Shared &shared) {
        for (int s = 0; s < Config::stages; s++) {
            mbarrier_init(shared_address(&shared.full[s]), 1);
            mbarrier_init(shared_address(&shared.empty[s]), Config::consumer_groups / Config::turns * Config::cluster * releases);
            if constexpr (Config::splits_operands) mbarrier_init(shared_address(&shared.low.split[s]), 128);
        }
        if constexpr (Config::splits_operands) {
            for (int g = 0; g < 2; g++) mbarrier_init(shared_address(&shared.low.turn[g]), 4); // an arrival a warp
        }
        if constexpr (Config::turns > 1) {
            for (int g = 0; g < Config::turns; g++) mbarrier_init(shared_address(&shared.turns.barrier[g]), 4); // an arrival a warp
        }
        mbarrier_init_fence();
    }

    __device__ __forceinline__ static int box_rows(i64 rows) { return FLP_HIDDEN_BOX_ROWS(rows, Config::block_rows); }

    // Called by all threads, before the block's first barrier: sets the rows of A that a box of fewer rows does not fill to 0. With a full box TMA would fill
    // rows outside the tensor itself, but slowly: 63 of 64 such rows take a tenth of the time of a memory-bound kernel.
    __device__ __forceinline__ static void clear_a(Shared &shared, i64 rows) {
        if (box_rows(rows) == Config::block_rows) return;
        auto words = (uint4 *)shared.a;
        for (int i = threadIdx.x; i < (int)(sizeof(shared.a) / sizeof(uint4)); i += Config::threads) words[i] = make_uint4(0, 0, 0, 0);
        async_proxy_fence();
    }

    // Waits until the stages of this step, and of the steps that are loaded together with it, are empty.
    __device__ __forceinline__ void wait_for_free_stages() const {
        Ring<Config> ahead = ring;
#pragma unroll
        for (int i = 0; i < Config::steps_together; i++) {
            mbarrier_wait(shared_address(&shared.empty[ahead.stage]), ahead.phase ^ 1);
            ahead.advance();
        }
    }

    // Called by the producer thread: loads the operands of the tile with the corner (row, column).
    template <class Steps>
    __device__ __forceinline__ void load(const TensorMap &a_map, const TensorMap &b_map, int row, int column, int rank, const Steps &steps) {
        static_assert(!Steps::passes_some_over || Config::steps_together == 1, "a stage at a time");
#pragma unroll 1
        for (int step = 0; step < steps.count; step++) {
            if (!steps(step)) continue;
            if (step % Config::steps_together == 0) wait_for_free_stages();
            load_step(a_map, b_map, row + steps.a_row, column, rank, steps.begin + step, steps.a_step);
        }
    }

    __device__ __forceinline__ void load_step(const TensorMap &a_map, const TensorMap &b_map, int row, int column, int rank, int step, int a_step) {
        mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes);
        int k = step * Config::block_inner;
        load_a(a_map, k + a_step * Config::block_inner, row);
#pragma unroll
        for (int i = 0; i < boxes_of_block; i++) load_b_box(b_map, k, column, rank * boxes_of_block + i);
        ring.advance();
    }

    __device__ __forceinline__ void load_a(const TensorMap &map, int k, int row) {
        u32 to = shared_address(shared.a[ring.stage]);
        if constexpr (Config::a_transposed) {
#pragma unroll
            for (int group = 0; group < Config::block_rows / 64; group++) tma_load(to + group * 64 * row_bytes, &map, row + group * 64, k, full());
        } else {
            tma_load(to, &map, k, row, full());
        }
    }

    __device__ __forceinline__ void load_b_box(const TensorMap &map, int k, int column, int box) {
        u32 to = shared_address(shared.b[ring.stage]) + box * box_bytes;
        int x = Config::b_transposed ? column + box / boxes_inward * Config::b_box_columns : k;
        int y = Config::b_transposed ? k + box % boxes_inward * Config::b_box_rows : column + box * Config::b_box_rows;
        if constexpr (Config::cluster > 1) tma_load_multicast(to, &map, x, y, full(), (1 << Config::cluster) - 1);
        else if constexpr (Config::b_is_read_once) tma_load_once(to, &map, x, y, full());
        else tma_load(to, &map, x, y, full());
    }

    // Shared-memory descriptors of a stage's operands (wgmma.cuh). With b_transposed, B's leading offset is the distance between boxes of 64 columns. A needs
    // no leading offset in either layout, since the 64 rows of a wgmma are one box.
    static constexpr int b_leading_bytes = Config::b_transposed ? boxes_inward * box_bytes : 16;
    __device__ __forceinline__ static u64 a_descriptor(u32 address) { return wgmma_descriptor(address, 16, 8 * row_bytes); }
    __device__ __forceinline__ static u64 b_descriptor(u32 address) { return wgmma_descriptor(address, b_leading_bytes, 1024); }
    __device__ __forceinline__ static u64 with_low_word(u64 descriptor, u32 low) { return (descriptor & ~0xffffffffull) | low; }

    // Called by a consumer warpgroup: d = the product of its rows, the tile's parts from `first` on, with the tile's columns. Returns the number of steps
    // taken; with none, d is not written. started(): called once all products have been issued, in variants without a filter and other than fp32.
    template <class Steps, class Started> __device__ __forceinline__ int multiply(Accumulators &d, int first, const Steps &steps, Started started) {
        static_assert(parts == 1 || !(Config::splits_operands || Steps::passes_some_over), "64 rows a warpgroup");
        if constexpr (Config::splits_operands) return multiply_split(*this, d[0], first, steps.count);
        else if constexpr (Steps::passes_some_over) return multiply_kept(*this, d[0], first, steps);
        else return multiply_all(d, first, steps.count, started);
    }

    // Loop invariants of a consumer's mainloop: the address of the first stage's full barrier, and the low word of B's descriptor in that stage (A's differs
    // from it by a constant). make_opaque keeps the compiler from computing them again in each step, where every instruction costs energy and thereby clock
    // frequency.
    struct FirstStage {
        u32 full, b;
    };
    __device__ __forceinline__ FirstStage first_stage() const {
        FirstStage from = {shared_address(&shared.full[0]), (u32)b_descriptor(shared_address(shared.b[0]))};
        make_opaque(from.full);
        make_opaque(from.b);
        return from;
    }
    static_assert(8 * row_bytes == 1024, "A and B, if not transposed, lie alike");
    static constexpr int a_behind_b = -(int)sizeof(Shared::a) / 16 + (1 - b_leading_bytes / 16) * 65536;

    // Waits for the current stage and issues its products, which are added to d or, with adds 0, overwrite it.
    template <int count> __device__ __forceinline__ void multiply_step(float (&d)[count][accumulators], int first, const FirstStage &from, int adds) {
        mbarrier_wait(from.full + ring.stage * 8, ring.phase);
        wgmma_fence();
        // uniform(): otherwise the descriptors, which depend on the stage, are moved to uniform registers one by one.
        u32 stage = Config::consumer_groups > 1 ? uniform(ring.stage) : ring.stage;
        constexpr u32 a_units = sizeof(Shared::a[0]) / 16, b_units = b_bytes / 16, part_units = 64 * row_bytes / 16;
        u64 a = with_low_word(a_descriptor(0), from.b + first * part_units + stage * a_units);
        u64 b = with_low_word(b_descriptor(0), from.b + stage * b_units);
        wgmma_stage<a_behind_b>(d[0], a, b, adds);
        if constexpr (count > 1) wgmma_stage<a_behind_b + (int)part_units>(d[1], a, b, adds);
        wgmma_commit();
    }

    // The default mainloop. steps >= 1: with a path around the loop, ptxas would move accumulators between registers and serialize the products.
    // With two consumer warpgroups, a stage is released one step late, once the products that read it have finished while the next step's run. A single
    // warpgroup has few rows and waits for memory anyway: there a stage is released as soon as its products have finished, so that it is loaded again
    // earlier.
    template <class Started> __device__ __forceinline__ int multiply_all(Accumulators &d, int first, int steps, Started started) {
        constexpr bool late = Config::consumer_groups > 1;
        const FirstStage from = first_stage();
        u32 previous = 0;
        int step = 0;
#pragma unroll 1 // unrolled, copies of a statement with so many registers are a third of the compile time
        do {
            u32 barrier = from.full + ring.stage * 8 + sizeof(shared.full);
            multiply_step(d, first, from, step != 0);
            wgmma_wait<late ? 1 : 0>();
            if (late && step > 0) release(previous);
            if (!late) release(barrier);
            previous = barrier;
            ring.advance();
        } while (++step < steps);
        started();
#pragma unroll
        for (int part = 0; part < parts; part++) wgmma_finish(d[part]);
        if (late) release(previous);
        return steps;
    }

    // Arrives at an empty barrier, in every block of the cluster.
    __device__ __forceinline__ void release(u32 barrier) {
        int thread = threadIdx.x % (128 / releases);
        if constexpr (Config::cluster == 1) {
            if (thread == 0) mbarrier_arrive(barrier);
        } else {
            if (thread < Config::cluster) mbarrier_arrive_remote(barrier, thread);
        }
    }
};
