// The shell of Hopper's tile kernels: a block's roles, registers and barriers, and its place in the stream. Which tiles there are, what is loaded and
// what becomes of the accumulators is the kernel's, a struct that extends TileKernel and hides those of its members that it has its own way of.
//
// The warpgroups of a block: consumer_groups that multiply, 64 rows each; one of which a single thread loads, the producer; for fp32 one that splits
// numbers in two (split_operands.cuh). Blocks of a cluster take neighbouring row blocks and share B's tiles. All roles walk the same units.
// Config: threads, shared_bytes, consumer_groups, producer_registers, splitter_registers, consumer_registers, and those of tile_product

// Shared: the kernel's own, the mainloop's part of it in `stages`. A kernel has beside what is here
//   walk()                        the block's units, in order: next(Unit &)
//   begin(unit, row)              a consumer warp with 16 rows from `row` on, before a unit's tiles
//   consume(d, unit, tile, steps) ... behind the products of each, of so many steps of the inner size
//   finish(unit)                  ... behind a unit's tiles
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
    // A consumer warp behind its last unit.
    __device__ __forceinline__ void drain() const {}
};

// The splitter's role: split_operands.cuh, emitted where Config::splits_operands.
template <class Config, class Walk> __device__ __forceinline__ void split_tiles(Stages<Config> &shared, Walk walk);

// The block's first row of a unit.
template <class Config> __device__ __forceinline__ int block_row(const Unit &unit, int rank) {
    return (unit.row_block * Config::cluster + rank) * Config::block_rows;
}

template <class Config, class Kernel, class Walk> __device__ __forceinline__ void produce_tiles(const Kernel &kernel, Walk walk, int rank) {
    TileProduct<Config> product(kernel.shared.stages, kernel.a_rows());
    Unit unit;
    while (walk.next(unit))
        for (int i = 0; i < unit.tiles; i++)
            product.load(kernel.a_map, kernel.b_map, block_row<Config>(unit, rank), kernel.b_column(unit.first_tile + i), rank, kernel.steps(unit));
}

template <class Config, class Kernel, class Walk> __device__ __forceinline__ void consume_tiles(Kernel kernel, Walk walk, int rank, int group) {
    TileProduct<Config> product(kernel.shared.stages);
    float d[TileProduct<Config>::accumulators];
    Unit unit;
    while (walk.next(unit)) {
        kernel.begin(unit, block_row<Config>(unit, rank) + group * 64 + (warp_index() % 4) * 16);
        for (int i = 0; i < unit.tiles; i++) {
            int steps = product.multiply(d, group, kernel.steps(unit));
            kernel.consume(d, unit, unit.first_tile + i, steps);
        }
        kernel.finish(unit);
    }
    kernel.drain();
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

    auto walk = kernel.walk();
    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        kernel.assist(walk, rank);
        if (threadIdx.x % 128 == 0) produce_tiles<Config>(kernel, walk, rank);
    } else if (group > Config::consumer_groups) {
        if constexpr (Config::splits_operands) {
            if constexpr (Config::splitter_registers > 0) registers_release<Config::splitter_registers>();
            split_tiles<Config>(kernel.shared.stages, walk);
        }
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        consume_tiles<Config>(kernel, walk, rank, group);
    }
    kernel.leave();
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
