// The derivative of the loss by a chunk of the logits on any GPU from sm_80 on: the forward's mainloop, then logit_gradients, then a store.
// Config: hidden_size, block_hidden, and those of tile_product, product_walk, logit_gradients and tile_store
template <class Config> __device__ __forceinline__ void linear_logp_grad_logits(const LogitGradientsParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(Stages<Config> *)dynamic_shared;
    static_assert(sizeof(Stages<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    using Out = typename Config::out_element;
    int rows = counted(params.row_count, params.rows);
    const OperandMatrices<element> matrices = {(const element *)params.hidden, (const element *)params.weight, params.hidden_stride,
                                               params.weight_stride, rows, params.vocab, Config::hidden_size};
    const OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
    constexpr int steps = ceil_div(Config::hidden_size, Config::block_hidden);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    Feed<Config, ProductWalk<Config>> feed({tiles, params.first_column});
    TileProduct<Config> product(shared);
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    int row_block, column_tile;
    while (tiles.next(row_block, column_tile)) {
        product.multiply(d, feed, matrices, steps);
        int row = row_block * Config::block_rows + product.row, column = column_at(column_tile * Config::block_vocab, product.column);
#pragma unroll
        for (int i = 0; i < product.row_blocks; i++) {
            LogitGradients<Config> gradients; // read here rather than held through the products
            gradients.begin(params, row + 16 * i);
            gradients.transform(params, d[i], column_at(params.first_column, column));
            TileStore<Config>::store(out, d[i], row + 16 * i, column);
        }
    }
}
