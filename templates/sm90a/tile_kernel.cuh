// The shell of Hopper's tile kernels: a block's roles, registers and barriers, and its place in the stream. Which tiles there are, what is loaded and
// what becomes of the accumulators is the kernel's, a struct that extends TileKernel and hides those of its members that it has its own way of.
//
// The warpgroups of a block: consumer_groups that multiply, group_rows rows each; one of which a single thread loads, the producer; for fp32 one that
// splits numbers in two (split_operands.cuh). Blocks of a cluster take neighbouring row blocks and share B's tiles. All roles walk the same units.
//
// With turns > 1 each consumer warpgroup has units of its own, whose tiles it multiplies whole: first one's, then the other's, so that what becomes of
// one's accumulators is computed under the other's products, and the tensor cores never wait for it.
// Config: threads, shared_bytes, consumer_groups, group_rows, turns, producer_registers, splitter_registers, consumer_registers, and those of tile_product

// Shared: the kernel's own, the mainloop's part of it in `stages`. A kernel has beside what is here
//   walk(turn)                    the units, in order, of the block or of its warpgroup with that turn: next(Unit &)
//   begin(unit, row)              a consumer warp with 16 rows from `row` on, before a unit's tiles
//   consume(d, is_first, tile, steps) ... behind the products of each, of so many steps of the inner size
//   finish(unit)                  ... behind a unit's tiles
//   exchange(kernel)              ... with 128 rows, 16 in each of two parts, and a kernel's struct for each: from the rows of one to those of the other;
//                                 whether they are the second's
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

    // One thread: barriers of the kernel's own. All threads, before the block's first barrier.
    __device__ __forceinline__ void init() const {}
    __device__ __forceinline__ void prepare() const {}
    // All threads, behind that barrier and before the last one: programmatic dependent launch.
    __device__ __forceinline__ void enter() {}
    __device__ __forceinline__ void leave() const {}
    // Warps of the producer's warpgroup, before its first thread loads.
    template <class Walk> __device__ __forceinline__ void assist(const Walk &, int) const {}
    // Rows of A that a copy brings, the column of B at which a tile begins, and which steps of the inner size a unit's tiles take.
    __device__ __forceinline__ int a_rows() const { return Config::block_rows; }
    __device__ __forceinline__ int b_column(int tile) const { return tile * Config::block_columns; }
    __device__ __forceinline__ AllSteps<Config> steps(const Unit &) const { return {}; }
    // Whether the parts' code is emitted once, which takes a few registers more; exchange is then a kernel's, too.
    static constexpr bool emits_parts_once = false;
    // A consumer warp behind its last unit.
    __device__ __forceinline__ void drain() const {}
};

// The splitter's role: split_operands.cuh, emitted where Config::splits_operands.
template <class Config, class Walk> __device__ __forceinline__ void split_tiles(Stages<Config> &shared, Walk walk);

// The block's first row of a unit.
template <class Config> __device__ __forceinline__ int block_row(const Unit &unit, int rank) {
    return (unit.row_block * Config::cluster + rank) * Config::block_rows;
}

// The tiles of a walk's units, one after the other: the first of what is left of the unit.
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

template <class Config, class Kernel> __device__ __forceinline__ void produce_tiles(const Kernel &kernel, int rank) {
    TileProduct<Config> product(kernel.shared.stages, kernel.a_rows());
    auto load = [&](const Unit &unit) {
        product.load(kernel.a_map, kernel.b_map, block_row<Config>(unit, rank), kernel.b_column(unit.first_tile), rank, kernel.steps(unit));
    };
    auto walk = kernel.walk(0);
    using Walk = decltype(walk);
    if constexpr (Walk::units_are_tiles) { // those of both turns, one and the other, are then one walk's
        auto tiles = walk.of_all_turns();
        Unit unit;
        while (tiles.next(unit)) load(unit);
    } else {
        WalkedTiles<Walk> tiles(walk), others(Config::turns > 1 ? kernel.walk(1) : walk);
        // One turn's next tile, then the other's, until neither has one more.
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

// A consumer warpgroup's place among those that take turns: turns.cuh, emitted where Config::turns > 1.
template <class Config> struct Turns;
template <class Config> struct NoTurns {
    template <class Walk> __device__ __forceinline__ NoTurns(Stages<Config> &, int, const Walk &) {}
    __device__ __forceinline__ void wait(Ring<Config> &, int) const {}
    __device__ __forceinline__ void pass() const {}
};
template <bool takes_turns, class Config> struct TurnsOf { using type = NoTurns<Config>; };
template <class Config> struct TurnsOf<true, Config> { using type = Turns<Config>; };

// A warpgroup's parts of 64 rows, one after the other. Where Kernel::emits_parts_once, what is done with each is emitted once, for the first part's
// registers, into which the second's are moved: copies of an epilogue are most of what a kernel takes to compile.
template <class Config, class Kernel> struct PartsOf {
    static constexpr int count = TileProduct<Config>::parts;
    static constexpr bool emits_once = count > 1 && Kernel::emits_parts_once;
    static constexpr int emitted = emits_once ? 1 : count;
    static_assert(count <= 2, "a second one");

    // Whether there is one more to come: the second, which then has the first's place.
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

template <class Config, class Kernel> __device__ __forceinline__ void consume_tiles(const Kernel &kernel, int rank, int group) {
    using Product = TileProduct<Config>;
    using Parts = PartsOf<Config, Kernel>;
    constexpr bool takes_turns = Config::turns > 1;
    Product product(kernel.shared.stages);
    auto walk = kernel.walk(takes_turns ? group : 0);
    typename TurnsOf<takes_turns, Config>::type turns(kernel.shared.stages, group, kernel.walk(takes_turns ? 1 - group : 0));
    Kernel part[2] = {kernel, kernel}; // of a warpgroup's rows; the second is nothing where there is one
    typename Product::Accumulators d;
    int first = takes_turns ? 0 : group * Product::parts; // of the tile's parts
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
        for (bool is_first = true; unit.tiles > 0; is_first = false, unit.first_tile++, unit.tiles--) { // the unit's own numbers: registers are few
            auto steps = kernel.steps(unit);
            turns.wait(product.ring, steps.count);
            int taken = product.multiply(d, first, steps, [&turns] { turns.pass(); });
#pragma unroll 1
            do {
                u32 tile = unit.first_tile;
                if constexpr (Parts::emits_once) make_opaque(tile); // what is computed from it is not held through both parts
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
