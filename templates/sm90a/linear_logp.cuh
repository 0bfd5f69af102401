// linear_logp forward on Hopper: persistent clusters, one producer warpgroup, consumer warpgroups of 64 rows each, and for
// fp32 a splitter warpgroup between them.
// Config: threads, consumer_groups, producer_registers, splitter_registers, consumer_registers, and those of tile_product, schedule and
// row_statistics
template <class Config>
__device__ __forceinline__ void linear_logp_load(Stages<Config> &shared, const TensorMap &hidden_map, const TensorMap &weight_map,
                                                 Schedule<Config> schedule, int rank) {
    TileProduct<Config> product(shared, TileProduct<Config>::box_rows(schedule.params.rows));
    Unit unit;
    while (schedule.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows;
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++)
            product.load(hidden_map, weight_map, row, tile * Config::block_vocab, rank);
    }
}

template <class Config>
__device__ __forceinline__ void linear_logp_reduce(Stages<Config> &shared, const LinearLogpParams &params, Schedule<Config> schedule,
                                                   int rank, int group) {
    TileProduct<Config> product(shared);
    RowStatistics<Config> statistics;
    float d[TileProduct<Config>::accumulators];
    Unit unit;
    while (schedule.next(unit)) {
        int row = (unit.row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
        bool has_rows = Config::consumer_groups > 1 || row < row_count<Config>(params); // else the warp only takes its part in the products
        statistics.begin(params, row);
        for (int tile = unit.first_tile; tile < unit.first_tile + unit.tiles; tile++) {
            product.multiply(d, group);
            if (has_rows) statistics.absorb(params, d, tile * Config::block_vocab, tile == unit.first_tile);
        }
        statistics.finish();
        statistics.store(params, unit.split);
    }
}

// The splitter's role: split_operands.cuh, emitted where Config::splits_operands.
template <class Config> __device__ __forceinline__ void linear_logp_split(Stages<Config> &shared, Schedule<Config> schedule);

template <class Config>
__device__ __forceinline__ void linear_logp(const TensorMap &hidden_map, const TensorMap &weight_map, const LinearLogpParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(Stages<Config> *)dynamic_shared;
    static_assert(sizeof(Stages<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared);
    TileProduct<Config>::clear_hidden(shared, params.rows);
    allow_next_kernel(); // the combine waits for this kernel's end, but not for its own launch
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();

    Schedule<Config> schedule(params);
    int group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0) linear_logp_load<Config>(shared, hidden_map, weight_map, schedule, rank);
    } else if (group > Config::consumer_groups) {
        if constexpr (Config::splits_operands) {
            if constexpr (Config::splitter_registers > 0) registers_release<Config::splitter_registers>();
            linear_logp_split<Config>(shared, schedule);
        }
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        linear_logp_reduce<Config>(shared, params, schedule, rank, group);
    }
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
