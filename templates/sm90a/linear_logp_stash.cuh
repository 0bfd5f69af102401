// linear_logp forward on Hopper that keeps the terms of each row's sum, for the gradients: [rows, stash columns] of 2^(z2 - k).
// Config: threads, consumer_groups, producer_registers, consumer_registers, and those of tile_product, stash_units, stashed_statistics and
// tile_store
template <class Config>
__device__ __forceinline__ void linear_logp_stash_reduce(ProductShared<Config> &shared, const TensorMap &stash_map, const LinearLogpParams &params,
                                                         int rank, int group) {
    TileProduct<Config> product(shared.stages);
    StashUnits<Config> units(params);
    StashedStatistics<Config> statistics;
    float d[TileProduct<Config>::accumulators];
    Unit unit;
    while (units.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
        if (params.phase == FLP_STASH_OFFSETS) {
            product.multiply(d, group);
            statistics.find_offsets(params, d, row, unit.row_block);
            continue;
        }
        statistics.begin(params, row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            int column = tile * Config::block_vocab;
            product.multiply(d, group);
            statistics.absorb(params, d, column, [&](auto value) {
                TileStore<Config>::store_values(shared.out, stash_map, row, column, value);
            });
        }
        statistics.finish();
        statistics.store(params, unit.split);
    }
    TileStore<Config>::finish();
}

template <class Config>
__device__ __forceinline__ void linear_logp_stash_load(ProductShared<Config> &shared, const TensorMap &hidden_map, const TensorMap &weight_map,
                                                       const LinearLogpParams &params, int rank) {
    TileProduct<Config> product(shared.stages, TileProduct<Config>::box_rows(params.rows));
    StashUnits<Config> units(params);
    Unit unit;
    while (units.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows;
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++)
            product.load(hidden_map, weight_map, row, tile * Config::block_vocab, rank);
    }
}

template <class Config>
__device__ __forceinline__ void linear_logp_stash(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &stash_map,
                                                  const LinearLogpParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(ProductShared<Config> *)dynamic_shared;
    static_assert(sizeof(ProductShared<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared.stages);
    TileProduct<Config>::clear_hidden(shared.stages, params.rows);
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    wait_for_previous_kernel();
    allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch

    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0) linear_logp_stash_load<Config>(shared, hidden_map, weight_map, params, rank);
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        linear_logp_stash_reduce<Config>(shared, stash_map, params, rank, group);
    }
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
