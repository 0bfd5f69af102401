// Which output tiles a persistent block works through, in which order: within a group of row blocks, rows run fastest, so that blocks at
// work together share column tiles in the L2 while the group's rows stay there.
// Config: block_rows, block_columns, cluster
template <class Config, int turns = 1> struct ProductTiles {
    int row_blocks, column_tiles, group; // row blocks: of block_rows * cluster rows
    int index;

    __device__ __forceinline__ ProductTiles(int rows, int columns, int group, int turn = 0)
        : row_blocks(ceil_div(rows, Config::block_rows * Config::cluster)), column_tiles(ceil_div(columns, Config::block_columns)), group(group),
          index(worker_index<Config>(turn)) {}

    __device__ __forceinline__ bool next(Unit &unit) {
        if (index >= row_blocks * column_tiles) return false;
        int g = index / (group * column_tiles), within = index - g * group * column_tiles;
        int height = min(group, row_blocks - g * group);
        unit.first_tile = within / height;
        unit.tiles = 1;
        unit.row_block = g * group + within - unit.first_tile * height;
        index += worker_count<Config, turns>();
        return true;
    }
};
