// linear_logp forward on any GPU from sm_80 on: persistent blocks, tiles by cp.async, products by warps of warp_rows x warp_columns.
//
// The stream of stages runs ahead over tiles and units alike, so that the pipeline never drains before the block's last tile.
// Config: threads, stages, warps_across, and those of shared_tile, the stage product, schedule and row_statistics
template <class Config> struct SharedStorage {
    alignas(128) u8 stages[Config::stages][Operands<Config>::stage_bytes];
    float merge[Config::warps_across][Config::block_rows][4]; // offset, sum, best, its index
};

// Position in the stream of stages. It lives in registers through the products, so it holds as little as it can.
template <class Config> struct Feed {
    static constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    Schedule<Config> schedule;
    int row_block, tile, end, step; // end: behind the unit's last tile; 0 at the end of the stream

    __device__ __forceinline__ Feed(const Schedule<Config> &from) : schedule(from) { next_unit(); }

    __device__ __forceinline__ void next_unit() {
        Unit unit;
        bool more = schedule.next(unit);
        row_block = unit.row_block;
        tile = unit.first_tile;
        end = more ? unit.first_tile + unit.tiles : 0;
        step = 0;
    }

    __device__ __forceinline__ void load(SharedStorage<Config> &shared, const LinearLogpParams &params, int stage) {
        if (end > 0) {
            Operands<Config>::load(shared_address(shared.stages[stage]), params, row_block * Config::block_rows, tile * Config::block_vocab,
                                   step * Config::block_hidden);
            if (++step == steps) {
                step = 0;
                if (++tile == end) next_unit();
            }
        }
        cp_async_commit(); // an empty group at the end keeps the count of groups in step
    }
};

template <class Config> struct WarpTile {
    static constexpr int row_blocks = Config::warp_rows / 16;
    RowStatistics<Config> statistics[row_blocks];
    int row, column; // corner in the block's tile

    __device__ __forceinline__ WarpTile()
        : row(warp_index() / Config::warps_across * Config::warp_rows), column(warp_index() % Config::warps_across * Config::warp_columns) {}

    // The warps that share rows leave their statistics in shared memory; the first of them merges in column order.
    __device__ __forceinline__ void finish(SharedStorage<Config> &shared, const LinearLogpParams &params, int split) {
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
    Schedule<Config> schedule(params);
    Feed<Config> feed(schedule);
    WarpTile<Config> warp;
    float d[Config::warp_rows / 16][Config::warp_columns / 2];

    int stage = 0;
    for (int s = 0; s < Config::stages - 1; s++) feed.load(shared, params, s);
    Unit unit;
    while (schedule.next(unit)) {
#pragma unroll
        for (int i = 0; i < Config::warp_rows / 16; i++)
            warp.statistics[i].begin(params, unit.row_block * Config::block_rows + warp.row + 16 * i);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
#pragma unroll
            for (int i = 0; i < Config::warp_rows / 16; i++)
#pragma unroll
                for (int j = 0; j < Config::warp_columns / 2; j++) d[i][j] = 0;
            for (int step = 0; step < Feed<Config>::steps; step++) {
                cp_async_wait<Config::stages - 2>();
                block_barrier(); // the stage has arrived for all, and all have left the one that is filled next
                feed.load(shared, params, stage == 0 ? Config::stages - 1 : stage - 1);
                StageProduct<Config>::multiply(d, shared_address(shared.stages[stage]), warp.row, warp.column);
                stage = stage + 1 == Config::stages ? 0 : stage + 1;
            }
#pragma unroll
            for (int i = 0; i < Config::warp_rows / 16; i++)
                warp.statistics[i].absorb(params, d[i], tile * Config::block_vocab + warp.column, tile == unit.first_tile);
        }
        warp.finish(shared, params, unit.split);
    }
}
