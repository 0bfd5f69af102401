// A product in parts: each part sums over a range of the inner size of its own, and has a place of its own in out. Few rows have too few tiles for all
// multiprocessors, each with a long sum; the tiles of all parts are enough. Another kernel then adds the parts in their order, so that bits depend on the
// ranges alone.
//
// A scheduler sees the parts side by side, as further columns of tiles.
// Config: block_columns
template <class Config> struct ProductParts {
    const MatrixProductParams &params;

    __device__ __forceinline__ int column_tiles() const { return ceil_div(params.columns, Config::block_columns); }
    __device__ __forceinline__ int columns() const { return params.parts * column_tiles() * Config::block_columns; } // of all parts
    // Of the tile in the scheduler's order: its part, its first column in the part, the part's first element along the inner size, and its first row in out.
    __device__ __forceinline__ int part(int tile) const { return divide(tile, column_tiles()); }
    __device__ __forceinline__ int column(int tile) const { return (tile - part(tile) * column_tiles()) * Config::block_columns; }
    __device__ __forceinline__ int first_inner(int tile) const { return part(tile) * params.part_inner; }
    __device__ __forceinline__ i64 first_row(int tile) const { return part(tile) * params.part_rows; }
};
