// linear_logp forward on any GPU from sm_80 on: persistent blocks, the portable mainloop, statistics of each row.
// Config: hidden_size, warps_across, and those of tile_product, schedule and row_statistics
template <class Config> struct SharedStorage {
    Stages<Config> stages;
    float merge[Config::warps_across][Config::block_rows][RowStatistics<Config>::merge_floats]; // offset, sum, best, its index, moment
};

// The tiles of the block's units, one after the other.
template <class Config> struct UnitTiles {
    Schedule<Config> schedule;
    int row_block, tile, end; // end: behind the unit's last tile; 0 behind the last unit

    __device__ __forceinline__ UnitTiles(const Schedule<Config> &from) : schedule(from) { next_unit(); }
    __device__ __forceinline__ bool at_end() const { return end == 0; }
    __device__ __forceinline__ int row() const { return row_block * Config::block_rows; }
    __device__ __forceinline__ int column() const { return tile * Config::block_vocab; }
    __device__ __forceinline__ void next() {
        if (++tile == end) next_unit();
    }

    __device__ __forceinline__ void next_unit() {
        Unit unit;
        bool more = schedule.next(unit);
        row_block = unit.row_block;
        tile = unit.first_tile;
        end = more ? unit.first_tile + unit.tiles : 0;
    }
};

// The statistics of a warp's rows.
template <class Config> struct WarpStatistics {
    static constexpr int row_blocks = Config::warp_rows / 16;
    RowStatistics<Config> statistics[row_blocks];

    __device__ __forceinline__ void begin(const LinearLogpParams &params, int row) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].begin(params, row + 16 * i);
    }

    template <int count>
    __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&d)[row_blocks][count], int column, bool first) {
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].absorb(params, d[i], column, first);
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

template <class Config> __device__ __forceinline__ void linear_logp(const LinearLogpParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, row_count<Config>(params), params.vocab, Config::hidden_size};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    Schedule<Config> schedule(params);
    Feed<Config, UnitTiles<Config>> feed(schedule);
    TileProduct<Config> product(shared.stages);
    WarpStatistics<Config> warp;
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    Unit unit;
    while (schedule.next(unit)) {
        warp.begin(params, unit.row_block * Config::block_rows + product.row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, feed, matrices, steps);
            warp.absorb(params, d, tile * Config::block_vocab + product.column, tile == unit.first_tile);
        }
        warp.finish(shared, params, product.row, unit.split);
    }
}
