// The static tile scheduler of the matrix products and logit gradients: which output tiles a persistent block (cluster) computes, and in which order.
//
// Tiles are dealt round robin to the workers (unit.cuh). Within a group of row blocks, rows run fastest: blocks that run at the same time then share column
// tiles in the L2, while the group's rows stay there.
// Config: block_rows, block_columns, cluster

// The number of rows, loaded again at each use instead of held in a register. params: any struct with row_count and rows.
template <class Params> struct CountedRows {
    const Params &params;
    __device__ __forceinline__ operator int() const { return counted(params.row_count, params.rows); }
};

// A head start (early_start.cuh) deals the first tiles() tiles to the first workers() clusters alone, which begin before the others. This is none.
struct NoHeadStart {
    __device__ __forceinline__ static int workers() { return 0; }
    __device__ __forceinline__ static int tiles() { return 0; }
};

template <class Config, int turns = 1, class Rows = int, class HeadStart = NoHeadStart> struct ProductTiles {
    static constexpr bool units_are_tiles = true;
    Rows rows;
    int columns, group, index;
    HeadStart head;

    __device__ __forceinline__ ProductTiles(Rows rows, int columns, int group, int turn = 0, HeadStart head = HeadStart())
        : rows(rows), columns(columns), group(group), index(worker_index<Config>(0)), head(head) {
        if (index >= head.workers()) index += head.tiles();
        if (turn > 0) advance();
    }

    // Moves to the cluster's next tile, which in the ping-pong schedule is the other warpgroup's.
    __device__ __forceinline__ void advance() { index += index < head.tiles() ? head.workers() : worker_count<Config, 1>(); }

    // The tiles of both warpgroups in alternation, as the producer loads them, from the walk of the first warpgroup.
    using OfAllTurns = ProductTiles<Config, 1, int, HeadStart>;
    __device__ __forceinline__ OfAllTurns of_all_turns() const { return OfAllTurns(rows, columns, group, 0, head); }

    __device__ __forceinline__ int row_blocks() const { return ceil_div((int)rows, Config::block_rows * Config::cluster); }
    __device__ __forceinline__ int column_tiles() const { return ceil_div(columns, Config::block_columns); }

    // The index of a unit in the order of all tiles.
    __device__ __forceinline__ int place(const Unit &unit) const {
        int first = divide(unit.row_block, group) * group;
        return first * column_tiles() + unit.first_tile * min(group, row_blocks() - first) + unit.row_block - first;
    }

    __device__ __forceinline__ bool next(Unit &unit) {
        int row_blocks = this->row_blocks(), column_tiles = this->column_tiles();
        if (index >= row_blocks * column_tiles) return false;
        int g = divide(index, group * column_tiles), within = index - g * group * column_tiles;
        int height = min(group, row_blocks - g * group);
        unit.first_tile = divide(within, height);
        unit.tiles = 1;
        unit.row_block = g * group + within - unit.first_tile * height;
#pragma unroll
        for (int turn = 0; turn < turns; turn++) advance();
        return true;
    }
};
