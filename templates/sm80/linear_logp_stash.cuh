// linear_logp forward on any GPU from sm_80 on that keeps the terms of each row's sum, for the gradients: [rows, stash columns] of 2^(z2 - k).
//
// The warps that share a row begin with one offset. One of them may go on with another; where they merge, the larger one stays, and that the
// row has left its offset is noted there, once.
// Config: hidden_size, block_hidden, and those of tile_product, stash_units, warp_statistics, stashed_statistics and tile_store
template <class Config> struct StashedRows : WarpStatistics<Config, StashedStatistics<Config>> {
    using WarpStatistics<Config, StashedStatistics<Config>>::row_blocks;
    using WarpStatistics<Config, StashedStatistics<Config>>::statistics;

    // By the first of the warps that share rows, which has the vocabulary's first columns.
    template <int count>
    __device__ __forceinline__ void find_offsets(const LinearLogpParams &params, float (&d)[row_blocks][count], int row, int row_block) {
        if (warp_index() % Config::warps_across > 0) return;
#pragma unroll
        for (int i = 0; i < row_blocks; i++) statistics[i].find_offsets(params, d[i], row + 16 * i, row_block);
    }

    template <int count>
    __device__ __forceinline__ void absorb(const LinearLogpParams &params, float (&d)[row_blocks][count], int row, int column) {
        using Out = typename Config::out_element;
        const OutMatrix<Out> out = {(Out *)params.stash, params.stash_columns, (int)row_count<Config>(params), params.stash_columns};
#pragma unroll
        for (int i = 0; i < row_blocks; i++)
            statistics[i].absorb(params, d[i], column, [&](auto value) {
                TileStore<Config>::template store_values<count>(out, row + 16 * i, column, value);
            });
    }
};

template <class Config> __device__ __forceinline__ void linear_logp_stash(const LinearLogpParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(SharedStorage<Config> *)dynamic_shared;
    static_assert(sizeof(SharedStorage<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, row_count<Config>(params), params.vocab, Config::hidden_size};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    StashUnits<Config> units(params);
    Feed<Config, UnitTiles<Config, StashUnits<Config>>> feed(units);
    TileProduct<Config> product(shared.stages);
    StashedRows<Config> warp;
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    Unit unit;
    while (units.next(unit)) {
        int row = unit.row_block * Config::block_rows + product.row;
        bool keeps = params.phase != FLP_STASH_OFFSETS;
        if (keeps) warp.begin(params, row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, feed, matrices, steps);
            if (keeps) warp.absorb(params, d, row, column_at(tile * Config::block_vocab, product.column));
            else warp.find_offsets(params, d, row, unit.row_block);
        }
        if (keeps) warp.finish(shared, params, product.row, unit.split);
    }
}
