// The tiles of a persistent block, for the mainloop's feed.
// Config: block_rows, block_vocab, and those of product_tiles
template <class Config> struct ProductWalk {
    ProductTiles<Config> tiles;
    int first_column; // of the right matrix
    int row_block, column_tile;
    bool more;

    __device__ __forceinline__ ProductWalk(const ProductTiles<Config> &tiles, int first_column) : tiles(tiles), first_column(first_column) { next(); }
    __device__ __forceinline__ bool at_end() const { return !more; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return first_column + column_tile * Config::block_vocab; }
    __device__ __forceinline__ void next() { more = tiles.next(row_block, column_tile); }
};
