// linear_logp forward on any GPU from sm_80 on: persistent blocks, the portable mainloop, statistics of each row.
// Config: hidden_size, block_hidden, and those of tile_product, schedule and warp_statistics
template <class Config> __device__ __forceinline__ void linear_logp(const LinearLogpParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, row_count<Config>(params), params.vocab, Config::hidden_size};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    Schedule<Config> schedule(params);
    Feed<Config, UnitTiles<Config, Schedule<Config>>> feed(schedule);
    TileProduct<Config> product(shared.stages);
    WarpStatistics<Config, RowStatistics<Config>> warp;
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    Unit unit;
    while (schedule.next(unit)) {
        warp.begin(params, unit.row_block * Config::block_rows + product.row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, feed, matrices, steps);
            int column = column_at(tile * Config::block_vocab, product.column);
#pragma unroll
            for (int i = 0; i < product.row_blocks; i++) warp.statistics[i].absorb(params, d[i], column, tile == unit.first_tile);
        }
        warp.finish(shared, params, product.row, unit.split);
    }
}
