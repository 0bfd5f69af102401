// The frame of the Hopper tile kernels: persistent blocks of specialised warpgroups. The kernel itself adds a tile scheduler and an epilogue.
//
// Warp roles: consumer_groups consumer warpgroups multiply with wgmma, group_rows rows each, and run the epilogue. One more warpgroup is the producer, of
// which a single thread loads operand tiles by TMA; its other warps may assist. fp32 kernels have a third kind, the splitter, a warpgroup that splits numbers
// into two tf32 parts (split_operands.cuh). setmaxnreg moves registers from producer and splitter to the consumers. All roles go through the same units of
// tiles in the same order, each with a tile scheduler of its own, called a walk: a static one (schedule.cuh, product_tiles.cuh), or a dynamic one that takes
// tickets from an atomic counter (tickets.cuh).
//
// Pipeline: the producer fills a ring of shared-memory stages, each with one step of both operands along the inner size, and the consumers empty it. A full
// and an empty mbarrier for each stage synchronise them (tile_product.cuh). The producer runs ahead of the consumers, across the ends of tiles and units. The
// blocks of a cluster take neighbouring row blocks and share B's tiles by multicast.
//
// Schedules: with turns == 1 (cooperative) the consumer warpgroups divide a tile's rows among them, and the tensor cores idle during their epilogue. With
// turns == 2 (ping-pong) each of two consumer warpgroups has units of its own and multiplies their tiles whole. The warpgroups alternate: one's epilogue runs
// while the tensor cores work on the other's products (turns.cuh).
//
// Programmatic dependent launch: a kernel that is launched so waits for the previous one of its stream in enter(), before its first load. Where it may begin
// beside the end of the previous one, it waits later, before its first store or in leave() (early_start.cuh). It allows the next kernel to be launched as
// soon as its own blocks run.
//
// A kernel is a struct that extends TileKernel and hides members of it where it has versions of its own.
// Config: shared_bytes, consumer_groups, turns, producer_registers, splitter_registers, consumer_registers, and those of tile_product

// KernelShared: the kernel's shared memory, with a member `stages` for the mainloop. A kernel must also have these members:
//   walk(turn)         returns the tile scheduler of the block or, in the ping-pong schedule, of consumer warpgroup `turn`: next(Unit &) gives the units
//   begin(unit, row)   called by each consumer warp before a unit's tiles; row: the first of the warp's 16 rows
//   consume(d, is_first, tile, steps) the epilogue, called after each tile's products, which took `steps` steps along the inner size
//   finish(unit)       called after a unit's tiles
//   exchange(other)    with emits_parts_once. A consumer warpgroup of 128 rows has two parts of 64 rows, and a kernel struct for each. Swaps the state of the
//                      two structs, and returns whether this one now has the second part's rows
template <class Config, class KernelShared> struct TileKernel {
    using Shared = KernelShared;
    static_assert(sizeof(Shared) == Config::shared_bytes, "gen/budget.lua disagrees");
    const TensorMap &a_map, &b_map;
    Shared &shared;

    __device__ __forceinline__ TileKernel(const TensorMap &a_map, const TensorMap &b_map) : a_map(a_map), b_map(b_map), shared(of_block()) {}

    __device__ __forceinline__ static Shared &of_block() {
        extern __shared__ __align__(1024) u8 dynamic_shared[];
        return *(Shared *)dynamic_shared;
    }

    // Called before the block's first barrier: init() by one thread, for the kernel's own mbarriers, and prepare() by all threads.
    __device__ __forceinline__ void init() const {}
    __device__ __forceinline__ void prepare() const {}
    // Called by all threads, enter() after that barrier and leave() at the kernel's end, for programmatic dependent launch.
    __device__ __forceinline__ void enter() {}
    __device__ __forceinline__ void leave() const {}
    // Called by all warps of the producer's warpgroup, before its first thread begins to load.
    template <class Walk> __device__ __forceinline__ void assist(const Walk &, int) const {}
    // The rows of A's TMA box, the column of B at which a tile begins, and the steps along the inner size that a unit's tiles take.
    __device__ __forceinline__ int a_rows() const { return Config::block_rows; }
    __device__ __forceinline__ int b_column(int tile) const { return tile * Config::block_columns; }
    __device__ __forceinline__ AllSteps<Config> steps(const Unit &) const { return {}; }
    // In the ping-pong schedule, the number of steps of the tile before a unit's in the order of both warpgroups. steps: of the unit's own.
    template <class Steps> __device__ __forceinline__ int steps_before(const Unit &, const Steps &steps) const { return steps.count; }
    // Whether the code for a warpgroup's parts of 64 rows is emitted once, as a loop, which takes a few registers more. The kernel must then have exchange().
    static constexpr bool emits_parts_once = false;
    // Called by each consumer warp after its last unit.
    __device__ __forceinline__ void drain() const {}
};

// The splitter's role: split_operands.cuh, emitted where Config::splits_operands.
template <class Config, class Walk> __device__ __forceinline__ void split_tiles(Stages<Config> &shared, Walk walk);

// The first row that a block has of a unit; rank: the block's in its cluster.
template <class Config> __device__ __forceinline__ int block_row(const Unit &unit, int rank) {
    return (unit.row_block * Config::cluster + rank) * Config::block_rows;
}

// Goes through the tiles of a walk's units one by one: next() makes unit.first_tile the current tile.
template <class Walk> struct WalkedTiles {
    Walk walk;
    Unit unit;
    __device__ __forceinline__ WalkedTiles(const Walk &walk) : walk(walk) {}

    __device__ __forceinline__ bool next() {
        if (unit.tiles <= 1) return walk.next(unit);
        unit.first_tile++;
        unit.tiles--;
        return true;
    }
    __device__ __forceinline__ void exchange(WalkedTiles &other) {
        walk.exchange(other.walk);
        exchange_values(unit, other.unit);
    }
};

// The producer's role, for one thread: loads the operands of all tiles in the order in which the consumers multiply them.
template <class Config, class Kernel> __device__ __forceinline__ void produce_tiles(const Kernel &kernel, int rank) {
    TileProduct<Config> product(kernel.shared.stages, kernel.a_rows());
    auto load = [&](const Unit &unit) {
        product.load(kernel.a_map, kernel.b_map, block_row<Config>(unit, rank), kernel.b_column(unit.first_tile), rank, kernel.steps(unit));
    };
    auto walk = kernel.walk(0);
    using Walk = decltype(walk);
    if constexpr (Walk::units_are_tiles) { // a single walk then gives the alternating tiles of both warpgroups
        auto tiles = walk.of_all_turns();
        Unit unit;
        while (tiles.next(unit)) load(unit);
    } else {
        WalkedTiles<Walk> tiles(walk), others(Config::turns > 1 ? kernel.walk(1) : walk);
        // The next tile of one warpgroup, then of the other, until neither has another.
        for (int without = 0; without < Config::turns;) {
            if (tiles.next()) {
                load(tiles.unit);
                without = 0;
            } else {
                without++;
            }
            if constexpr (Config::turns > 1) tiles.exchange(others);
        }
    }
}

// The hand-over between the consumer warpgroups of the ping-pong schedule: turns.cuh, emitted where Config::turns > 1. Otherwise nothing is handed over.
template <class Config> struct Turns;
template <class Config> struct NoTurns {
    template <class Walk> __device__ __forceinline__ NoTurns(Stages<Config> &, int, const Walk &) {}
    __device__ __forceinline__ void wait(Ring<Config> &, int) const {}
    __device__ __forceinline__ void pass() const {}
};
template <bool takes_turns, class Config> struct TurnsOf { using type = NoTurns<Config>; };
template <class Config> struct TurnsOf<true, Config> { using type = Turns<Config>; };

// The one or two parts of 64 rows (the rows of a wgmma) that a consumer warpgroup has, on which the epilogue runs one after the other. With
// Kernel::emits_parts_once its code is emitted once, for the first part's registers, into which those of the second part are then moved: copies of an
// epilogue are most of a kernel's compile time.
template <class Config, class Kernel> struct PartsOf {
    static constexpr int count = TileProduct<Config>::parts;
    static constexpr bool emits_once = count > 1 && Kernel::emits_parts_once;
    static constexpr int emitted = emits_once ? 1 : count;
    static_assert(count <= 2, "a second one");

    // Whether another part follows. If so it is the second, which has now taken the first one's place.
    __device__ __forceinline__ static bool next(Kernel (&part)[2]) {
        if constexpr (emits_once) return part[0].exchange(part[1]);
        else return false;
    }

    template <int parts, int accumulators> __device__ __forceinline__ static bool next(Kernel (&part)[2], float (&d)[parts][accumulators]) {
        if constexpr (emits_once) {
#pragma unroll
            for (int i = 0; i < accumulators; i++) d[0][i] = d[1][i];
        }
        return next(part);
    }
};

// A consumer warpgroup's role: multiplies tiles, and calls the kernel's epilogue for each.
template <class Config, class Kernel> __device__ __forceinline__ void consume_tiles(const Kernel &kernel, int rank, int group) {
    using Product = TileProduct<Config>;
    using Parts = PartsOf<Config, Kernel>;
    constexpr bool takes_turns = Config::turns > 1;
    Product product(kernel.shared.stages);
    auto walk = kernel.walk(takes_turns ? group : 0);
    typename TurnsOf<takes_turns, Config>::type turns(kernel.shared.stages, group, kernel.walk(takes_turns ? 1 - group : 0));
    Kernel part[2] = {kernel, kernel}; // one for each part of the warpgroup's rows; with a single part the second is unused
    typename Product::Accumulators d;
    int first = takes_turns ? 0 : group * Product::parts; // which of the tile's parts is the warpgroup's first
    Unit unit;
    bool more;
    while (walk.next(unit)) {
        int row = block_row<Config>(unit, rank) + first * 64 + (warp_index() % 4) * 16;
#pragma unroll 1
        do {
#pragma unroll
            for (int p = 0; p < Parts::emitted; p++) part[p].begin(unit, row + p * 64);
            if constexpr (Parts::emits_once) row += 64;
            more = Parts::next(part);
        } while (more);
        for (bool is_first = true; unit.tiles > 0; is_first = false, unit.first_tile++, unit.tiles--) { // counts in `unit` itself, to save registers
            auto steps = kernel.steps(unit);
            turns.wait(product.ring, kernel.steps_before(unit, steps));
            int taken = product.multiply(d, first, steps, [&turns] { turns.pass(); });
#pragma unroll 1
            do {
                u32 tile = unit.first_tile;
                if constexpr (Parts::emits_once) make_opaque(tile); // so that what depends on it is not held in registers through both parts
#pragma unroll
                for (int p = 0; p < Parts::emitted; p++) part[p].consume(d[p], is_first, tile, taken);
                more = Parts::next(part, d);
            } while (more);
        }
#pragma unroll 1
        do {
#pragma unroll
            for (int p = 0; p < Parts::emitted; p++) part[p].finish(unit);
            more = Parts::next(part);
        } while (more);
    }
    part[0].drain();
}

// A tile kernel's body: initialises the barriers, then each warpgroup takes its role.
template <class Config, class Kernel> __device__ __forceinline__ void run_tile_kernel(Kernel kernel) {
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) {
        TileProduct<Config>::init(kernel.shared.stages);
        kernel.init();
    }
    kernel.prepare();
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    kernel.enter();

    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        kernel.assist(kernel.walk(0), rank);
        if (threadIdx.x % 128 == 0) produce_tiles<Config>(kernel, rank);
    } else if (group > Config::consumer_groups) {
        if constexpr (Config::splits_operands) {
            if constexpr (Config::splitter_registers > 0) registers_release<Config::splitter_registers>();
            split_tiles<Config>(kernel.shared.stages, kernel.walk(0));
        }
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        consume_tiles<Config>(kernel, rank, group);
    }
    kernel.leave();
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
