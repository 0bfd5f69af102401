// What the portable forwards share around row_statistics: the tiles of a block's units, and the rows that several warps have between them.
// Config: block_rows, block_vocab, warp_rows, warps_across, and those of tile_product and row_statistics
template <class Config> struct SharedStorage {
    Stages<Config> stages;
    float merge[Config::warps_across][Config::block_rows][RowStatistics<Config>::merge_floats]; // offset, sum, best, its index, moment
};

// The tiles of the block's units, one after the other. Units: a Schedule, or what passes some of its units over.
template <class Config, class Units> struct UnitTiles {
    Units units;
    int row_block, tile, end; // end: behind the unit's last tile; 0 behind the last unit

    __device__ __forceinline__ UnitTiles(const Units &from) : units(from) { next_unit(); }
    __device__ __forceinline__ bool at_end() const { return end == 0; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return tile * Config::block_vocab; }
    __device__ __forceinline__ void next() {
        if (++tile == end) next_unit();
    }

    __device__ __forceinline__ void next_unit() {
        Unit unit;
        bool more = units.next(unit);
        row_block = unit.row_block;
        tile = unit.first_tile;
        end = more ? unit.first_tile + unit.tiles : 0;
    }
};

// The statistics of a warp's rows. Statistics: RowStatistics, or what extends it.
template <class Config, class Statistics> struct WarpStatistics {
    static constexpr int row_blocks = Config::warp_rows / 16;
    Statistics statistics[row_blocks];

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int row) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].begin(params, row + 16 * i);
    }

    // The warps that share rows leave their statistics in shared memory; the first of them merges in column order. row: in the tile.
    __device__ __forceinline__ void finish(SharedStorage<Config> &shared, const LinearLogpParams &params, int row, int split) {
        int across = warp_index() % Config::warps_across;
#pragma unroll
        for (int i = 0; i < row_blocks; i++) {
            statistics[i].finish();
            if (across > 0) statistics[i].leave(shared.merge[across] + row + 16 * i);
        }
        block_barrier();
        if (across == 0) {
#pragma unroll
            for (int i = 0; i < row_blocks; i++) {
                for (int other = 1; other < Config::warps_across; other++) statistics[i].merge(shared.merge[other] + row + 16 * i);
                statistics[i].store(params, split);
            }
        }
        block_barrier();
    }
};
