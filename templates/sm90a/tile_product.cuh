// The Hopper mainloop, d = A B: a producer thread streams tiles of A and B through a ring of shared-memory stages, consumer warpgroups multiply them with
// wgmma.
//
// A is [rows, inner], or lies [inner, rows] (a_transposed); B is [columns, inner], or lies [inner, columns] (b_transposed).
//
// full[s]: the stage's bytes have arrived (one arrival, A's bytes + B's bytes). empty[s]: all consumers of all blocks of the cluster are
// done with it; with multicast a block fills its neighbours' stages too, so it must wait for their consumers as well.
// split[s], for fp32: a splitter warpgroup has put the low parts of B's numbers beside the stage (split_operands.cuh).
// Config: element, block_rows, block_columns, block_inner, inner_size, a_transposed, stages, steps_together, cluster, consumer_groups,
// group_rows, turns, b_transposed, b_is_read_once, b_box_*, splits_operands
template <class Config, bool splits> struct LowParts {};
template <class Config> struct LowParts<Config, true> {
    float b[Config::stages][Config::block_columns * Config::block_inner];
    u64 split[Config::stages], turn[2];
};

// others: tiles of the other warpgroup; turn: of them the one that comes behind this warp's next one.
struct WarpTurn {
    int others, turn;
};
// barrier[g]: the other warpgroup has started its products, so that warpgroup g's come next.
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

template <class Config> struct Ring {
    int stage = 0, phase = 0;
    __device__ __forceinline__ void advance() {
        if (++stage == Config::stages) {
            stage = 0;
            phase ^= 1;
        }
    }
    __device__ __forceinline__ void skip(int steps) {
        stage += steps;
        phase ^= stage / Config::stages & 1;
        stage %= Config::stages;
    }
};

// The steps along the inner size that a tile's product takes: all of them (or those that kept_steps.cuh chooses).
template <class Config> struct AllSteps {
    static constexpr bool passes_some_over = false;
    int count = ceil_div(Config::inner_size, Config::block_inner), begin = 0;
    __device__ __forceinline__ bool operator()(int) const { return true; }
};

// What only some variants have: kept_steps.cuh, split_operands.cuh.
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
    static constexpr int boxes_inward = Config::b_transposed ? Config::block_inner / Config::b_box_rows : 1; // with the same columns
    static constexpr int boxes = b_bytes / box_bytes, boxes_of_block = boxes / Config::cluster;
    static_assert(boxes_of_block * Config::cluster * box_bytes == b_bytes, "blocks of a cluster load equal shares of B's tile");
    static constexpr int accumulators = Config::block_columns / 2, parts = Config::group_rows / 64; // of a warpgroup: of 64 rows each
    using Accumulators = float[parts][accumulators];
    // That a consumer warpgroup makes on a stage it is done with: one where only the tensor cores read it, else one of each warp.
    static constexpr int releases = Config::splits_operands ? 4 : 1;

    Shared &shared;
    Ring<Config> ring;
    int a_rows; // that a copy brings
    __device__ __forceinline__ TileProduct(Shared &shared, int a_rows = Config::block_rows) : shared(shared), a_rows(a_rows) {}

    __device__ __forceinline__ u32 full() const { return shared_address(&shared.full[ring.stage]); }
    __device__ __forceinline__ u32 empty() const { return shared_address(&shared.empty[ring.stage]); }
    __device__ __forceinline__ u32 split() const { return shared_address(&shared.low.split[ring.stage]); }

    // One thread of the block, before the block's (cluster's) first barrier.
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

    // All threads, before the block's first barrier: makes the rows 0 that such a box leaves alone. The copy engine would do so with rows outside
    // the tensor, but takes its time: 63 of 64 are a tenth of a kernel that lives off memory.
    __device__ __forceinline__ static void clear_a(Shared &shared, i64 rows) {
        if (box_rows(rows) == Config::block_rows) return;
        auto words = (uint4 *)shared.a;
        for (int i = threadIdx.x; i < (int)(sizeof(shared.a) / sizeof(uint4)); i += Config::threads) words[i] = make_uint4(0, 0, 0, 0);
        async_proxy_fence();
    }

    // Waits for the stages of this step and of those that are filled together with it.
    __device__ __forceinline__ void wait_for_free_stages() const {
        Ring<Config> ahead = ring;
#pragma unroll
        for (int i = 0; i < Config::steps_together; i++) {
            mbarrier_wait(shared_address(&shared.empty[ahead.stage]), ahead.phase ^ 1);
            ahead.advance();
        }
    }

    // Producer, one thread: loads the operands of one tile, row and column being its corner.
    template <class Steps>
    __device__ __forceinline__ void load(const TensorMap &a_map, const TensorMap &b_map, int row, int column, int rank, const Steps &steps) {
        static_assert(!Steps::passes_some_over || Config::steps_together == 1, "a stage at a time");
#pragma unroll 1
        for (int step = 0; step < steps.count; step++) {
            if (!steps(step)) continue;
            if (step % Config::steps_together == 0) wait_for_free_stages();
            load_step(a_map, b_map, row, column, rank, steps.begin + step);
        }
    }

    __device__ __forceinline__ void load_step(const TensorMap &a_map, const TensorMap &b_map, int row, int column, int rank, int step) {
        mbarrier_arrive_expect(full(), a_rows * row_bytes + b_bytes);
        int k = step * Config::block_inner;
        load_a(a_map, k, row);
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

    // Operands of one stage: where they begin and, in B's, from one box to the next; A has one box, and no such offset either way.
    static constexpr int b_leading_bytes = Config::b_transposed ? boxes_inward * box_bytes : 16;
    __device__ __forceinline__ static u64 a_descriptor(u32 address) { return wgmma_descriptor(address, 16, 8 * row_bytes); }
    __device__ __forceinline__ static u64 b_descriptor(u32 address) { return wgmma_descriptor(address, b_leading_bytes, 1024); }
    __device__ __forceinline__ static u64 with_low_word(u64 descriptor, u32 low) { return (descriptor & ~0xffffffffull) | low; }

    // A consumer warpgroup: the product of its rows, from part `first` of the tile's on, with the tile; how many steps it took. d is not written where
    // there are none. started(): called when all products are under way.
    template <class Steps, class Started> __device__ __forceinline__ int multiply(Accumulators &d, int first, const Steps &steps, Started started) {
        static_assert(parts == 1 || !(Config::splits_operands || Steps::passes_some_over), "64 rows a warpgroup");
        if constexpr (Config::splits_operands) return multiply_split(*this, d[0], first, steps.count);
        else if constexpr (Steps::passes_some_over) return multiply_kept(*this, d[0], first, steps);
        else return multiply_all(d, first, steps.count, started);
    }

    // What a consumer's loop over the steps holds: the first stage's barrier and the low word of its descriptor of B; A's differs by a constant. Hidden, since
    // the compiler would compute them anew in each step, where an instruction costs energy and with it clock.
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

    // Starts a stage's products, which are added to d or, the first, become it.
    template <int count> __device__ __forceinline__ void multiply_step(float (&d)[count][accumulators], int first, const FirstStage &from, int adds) {
        mbarrier_wait(from.full + ring.stage * 8, ring.phase);
        wgmma_fence();
        u32 stage = Config::consumer_groups > 1 ? uniform(ring.stage) : ring.stage; // and so the descriptors, which else move there one by one
        constexpr u32 a_units = sizeof(Shared::a[0]) / 16, b_units = b_bytes / 16, part_units = 64 * row_bytes / 16;
        u64 a = with_low_word(a_descriptor(0), from.b + first * part_units + stage * a_units);
        u64 b = with_low_word(b_descriptor(0), from.b + stage * b_units);
        wgmma_stage<a_behind_b>(d[0], a, b, adds);
        if constexpr (count > 1) wgmma_stage<a_behind_b + (int)part_units>(d[1], a, b, adds);
        wgmma_commit();
    }

    // At least one step: with a way around the loop ptxas moves accumulators, and serializes the products.
    // With two consumer warpgroups a stage is released one step late, when the products that read it have finished while the next ones run.
    // One warpgroup has few rows and waits for memory anyway: there the stage is released, and loaded again, as soon as may be.
    template <class Started> __device__ __forceinline__ int multiply_all(Accumulators &d, int first, int steps, Started started) {
        constexpr bool late = Config::consumer_groups > 1;
        const FirstStage from = first_stage();
        u32 previous = 0;
        int step = 0;
#pragma unroll 1 // copies of a statement with so many registers are a third of the compile
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

    __device__ __forceinline__ void release(u32 barrier) {
        int thread = threadIdx.x % (128 / releases);
        if constexpr (Config::cluster == 1) {
            if (thread == 0) mbarrier_arrive(barrier);
        } else {
            if (thread < Config::cluster) mbarrier_arrive_remote(barrier, thread);
        }
    }
};
