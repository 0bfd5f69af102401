// out (+)= left . right on any GPU from sm_80 on: persistent blocks, the portable mainloop, a store.
//
// left is [rows, inner] or, transposed, [inner, rows]; right is [columns, inner] or [inner, columns]; out [rows, columns].
// Config: block_hidden, and those of tile_product, product_walk, target_terms and tile_store
template <class Config> __device__ __forceinline__ void matrix_product(const MatrixProductParams &params) {
    extern __shared__ __align__(128) u8 dynamic_shared[];
    auto &shared = *(Stages<Config> *)dynamic_shared;
    static_assert(sizeof(Stages<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    using element = typename Config::element;
    using Out = typename Config::out_element;
    int rows = counted(params.row_count, params.rows), inner = counted(params.inner_count, params.inner);
    if (Config::adds && inner == 0) rows = 0; // nothing to add: out is not even read
    const OperandMatrices<element> matrices = {(const element *)params.left, (const element *)params.right, params.left_stride,
                                               params.right_stride, rows, params.columns, inner};
    const OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
    int steps = ceil_div(inner, Config::block_hidden);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    Feed<Config, ProductWalk<Config>> feed({tiles, 0});
    TileProduct<Config> product(shared);
    float d[product.row_blocks][product.accumulators];

    product.start(feed, matrices, steps);
    int row_block, column_tile;
    while (tiles.next(row_block, column_tile)) {
        product.multiply(d, feed, matrices, steps);
        int row = row_block * Config::block_rows + product.row, column = column_at(column_tile * Config::block_vocab, product.column);
#pragma unroll
        for (int i = 0; i < product.row_blocks; i++) {
            scale_product(d[i], params.factor, steps);
            scale_rows(d[i], params.row_factor, row + 16 * i, rows);
            TargetTerms<Config>(params, rows, inner, row + 16 * i, column).add(d[i]);
            TileStore<Config>::store(out, d[i], row + 16 * i, column);
        }
    }
}
