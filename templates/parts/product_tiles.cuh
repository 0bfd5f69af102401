// Which output tiles a persistent block works through, in which order: within a group of row blocks, rows run fastest, so that blocks at
// work together share column tiles in the L2 while the group's rows stay there.
// Config: block_rows, block_columns, cluster

// The rows that are worked through, counted anew each time: where registers are few. params: any with row_count and rows.
template <class Params> struct CountedRows {
    const Params &params;
    __device__ __forceinline__ operator int() const { return counted(params.row_count, params.rows); }
};

template <class Config, int turns = 1, class Rows = int> struct ProductTiles {
    static constexpr bool units_are_tiles = true;
    Rows rows;
    int columns, group, index;

    __device__ __forceinline__ ProductTiles(Rows rows, int columns, int group, int turn = 0)
        : rows(rows), columns(columns), group(group), index(worker_index<Config>(turn)) {}

    // Both turns' tiles, one and the other, from the first one's walk.
    __device__ __forceinline__ ProductTiles<Config> of_all_turns() const { return ProductTiles<Config>(rows, columns, group); }

    __device__ __forceinline__ bool next(Unit &unit) {
        int row_blocks = ceil_div((int)rows, Config::block_rows * Config::cluster), column_tiles = ceil_div(columns, Config::block_columns);
        if (index >= row_blocks * column_tiles) return false;
        int g = divide(index, group * column_tiles), within = index - g * group * column_tiles;
        int height = min(group, row_blocks - g * group);
        unit.first_tile = divide(within, height);
        unit.tiles = 1;
        unit.row_block = g * group + within - unit.first_tile * height;
        index += worker_count<Config, turns>();
        return true;
    }
};
