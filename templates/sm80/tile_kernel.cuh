// The shell of the portable tile kernels: persistent blocks, the mainloop over the tiles of a block's units. Which these are, what is multiplied and what
// becomes of the accumulators is the kernel's, a struct that extends TileKernel and hides those of its members that it has its own way of.
// Config: shared_bytes, block_rows, block_columns, block_inner, inner_size, and those of tile_product

// Shared: the kernel's own, the mainloop's part of it in `stages`. A kernel has beside what is here
//   operands()                    the matrices A and B
//   walk()                        the block's units, in order: next(Unit &)
//   begin(row)                    a warp whose rows begin there, before a unit's tiles
//   consume(d, row, column, unit, is_first) ... behind the products of each, of which the warp has the part that begins at (row, column)
//   finish(row, unit)             ... behind a unit; row: of the warp in the block's
template <class Config, class KernelShared> struct TileKernel {
    using Shared = KernelShared;
    using element = typename Config::element;
    static_assert(sizeof(Shared) == Config::shared_bytes, "gen/budget.lua disagrees");
    Shared &shared;

    __device__ __forceinline__ TileKernel() : shared(of_block()) {}

    __device__ __forceinline__ static Shared &of_block() {
        extern __shared__ __align__(128) u8 dynamic_shared[];
        return *(Shared *)dynamic_shared;
    }

    // The column of B at which the first tile begins, and the steps of the inner size.
    __device__ __forceinline__ int first_column() const { return 0; }
    __device__ __forceinline__ int steps() const { return ceil_div(Config::inner_size, Config::block_inner); }
};

// The tiles of the block's units, one after the other, for the mainloop's feed.
template <class Config, class Walk> struct UnitTiles {
    Walk walk;
    int first_column;
    int row_block, tile, left; // left: of the unit, this tile included; 0 behind the last unit

    __device__ __forceinline__ UnitTiles(const Walk &from, int first_column) : walk(from), first_column(first_column) { next_unit(); }
    __device__ __forceinline__ bool at_end() const { return left == 0; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return first_column + tile * Config::block_columns; }
    __device__ __forceinline__ void next() {
        tile++;
        if (--left == 0) next_unit();
    }

    __device__ __forceinline__ void next_unit() {
        Unit unit;
        bool more = walk.next(unit);
        row_block = unit.row_block;
        tile = unit.first_tile;
        left = more ? unit.tiles : 0;
    }
};

template <class Config, class Kernel> __device__ __forceinline__ void run_tile_kernel(Kernel kernel) {
    const OperandMatrices<typename Config::element> matrices = kernel.operands();
    const int steps = kernel.steps();
    auto walk = kernel.walk();
    Feed<Config, UnitTiles<Config, decltype(walk)>> feed({walk, kernel.first_column()});
    TileProduct<Config> product(kernel.shared.stages);
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    Unit unit;
    while (walk.next(unit)) {
        int row = unit.row_block * Config::block_rows + product.row;
        kernel.begin(row);
        int tile = unit.first_tile;
        for (int left = unit.tiles; left > 0; left--, tile++) {
            product.multiply(d, feed, matrices, steps);
            kernel.consume(d, row, column_at(tile * Config::block_columns, product.column), unit, left == unit.tiles);
        }
        kernel.finish(product.row, unit);
    }
}
