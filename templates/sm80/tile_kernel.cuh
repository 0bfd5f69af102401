// The frame of the portable tile kernels: persistent blocks that run the mainloop over the tiles of their units, and call the kernel's epilogue after each.
//
// All warps of a block both copy operand tiles to shared memory (cp.async, a ring of stages; tile_product.cuh) and multiply them (mma.sync). A kernel is a
// struct that extends TileKernel: it says which tiles the block computes, what is multiplied, and what is done with the accumulators. It hides members of
// TileKernel where it has versions of its own.
// Config: shared_bytes, block_rows, block_columns, block_inner, inner_size, and those of tile_product

// Goes through the tiles of the block's units one by one, for the mainloop's feed, which runs ahead of the products.
template <class Config, class Walk> struct UnitTiles {
    Walk walk;
    int first_column;
    int row_block, tile, left; // left: tiles left in the unit, this one included; 0 after the last unit

    __device__ __forceinline__ UnitTiles(const Walk &from, int first_column) : walk(from), first_column(first_column) { next_unit(); }
    __device__ __forceinline__ bool at_end() const { return left == 0; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return first_column + tile * Config::block_columns; }
    __device__ __forceinline__ int inner() const { return 0; } // the element along the inner size at which the tile's sum begins
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

// KernelShared: the kernel's shared memory, with a member `stages` for the mainloop. A kernel must also have these members:
//   operands()         returns the matrices A and B
//   walk()             returns the block's tile scheduler: next(Unit &) gives the units in order
//   begin(row)         called before a unit's tiles; row: the first of the warp's rows in the matrix
//   consume(d, row, column, unit, is_first) called after each tile's products; d: the warp's part of the tile, which begins at (row, column)
//   finish(row, unit)  called after a unit's tiles; row: the first of the warp's rows in the block's
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

    // The column of B at which tile 0 begins; the number of steps along the inner size.
    __device__ __forceinline__ int first_column() const { return 0; }
    __device__ __forceinline__ int steps() const { return ceil_div(Config::inner_size, Config::block_inner); }
    // The tiles of a walk as the feed takes them: UnitTiles, or what extends it.
    template <class Walk> __device__ __forceinline__ UnitTiles<Config, Walk> tiles(const Walk &walk, int first_column) const { return {walk, first_column}; }
};

template <class Config, class Kernel> __device__ __forceinline__ void run_tile_kernel(Kernel kernel) {
    const OperandMatrices<typename Config::element> matrices = kernel.operands();
    const int steps = kernel.steps();
    auto walk = kernel.walk();
    auto tiles = kernel.tiles(walk, kernel.first_column());
    Feed<Config, decltype(tiles)> feed(tiles);
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
