// The derivative of the loss by a chunk of the logits on Hopper: the forward's mainloop, then logit_gradients.
// Config: filters, threads, consumer_groups, producer_registers, consumer_registers, and those of tile_product, product_tiles, logit_gradients and tile_store
template <class Config>
__device__ __forceinline__ void linear_logp_grad_logits(const TensorMap &hidden_map, const TensorMap &weight_map, const TensorMap &out_map,
                                                        const LogitGradientsParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(ProductShared<Config> *)dynamic_shared;
    static_assert(sizeof(ProductShared<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) TileProduct<Config>::init(shared.stages);
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    if (!params.waits_late) wait_for_previous_kernel();
    allow_next_kernel();

    int rows = counted(params.row_count, params.rows);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    TileProduct<Config> product(shared.stages);
    int row_block, column_tile, group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (threadIdx.x % 128 == 0)
            while (tiles.next(row_block, column_tile))
                product.load(hidden_map, weight_map, (row_block * Config::cluster + rank) * Config::block_rows,
                             params.first_column + column_tile * Config::block_vocab, rank);
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        float d[TileProduct<Config>::accumulators];
        LogitGradients<Config> gradients;
        while (tiles.next(row_block, column_tile)) {
            int row = (row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
            gradients.begin(params, row);
            product.multiply(d, group);
            gradients.transform(params, d, params.first_column + column_tile * Config::block_vocab);
            if constexpr (Config::filters)
                note_kept(params.kept, params.kept_words, params.filter * *params.factor, d, row, column_tile * Config::block_vocab);
            if (params.waits_late) wait_for_previous_kernel();
            TileStore<Config>::store(shared.out, out_map, {}, d, row, column_tile * Config::block_vocab);
        }
        TileStore<Config>::finish();
    }
    // What comes next waits for this kernel, and with it for the one before.
    if (params.waits_late) wait_for_previous_kernel();
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
