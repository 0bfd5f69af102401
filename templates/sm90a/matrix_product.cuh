// out (+)= left . right on Hopper: the forward's mainloop with a store behind it.
//
// left is [rows, inner] or, transposed, [inner, rows]; right is [columns, inner] or [inner, columns]; out [rows, columns].
// Config: filters, threads, consumer_groups, producer_registers, consumer_registers, and those of tile_product, product_tiles, product_terms and
// tile_store

// The gradient filter: kept_steps.cuh, emitted where Config::filters.
template <class Config> struct KeptSteps;

template <class Config> struct alignas(1024) MatrixProductShared {
    ProductShared<Config> product;
    typename ProductTerms<Config>::Shared terms;
};

template <class Config>
__device__ __forceinline__ void matrix_product(const TensorMap &left_map, const TensorMap &right_map, const TensorMap &out_map,
                                               const MatrixProductParams &params) {
    extern __shared__ __align__(1024) u8 dynamic_shared[];
    auto &shared = *(MatrixProductShared<Config> *)dynamic_shared;
    static_assert(sizeof(MatrixProductShared<Config>) == Config::shared_bytes, "gen/budget.lua disagrees");
    int rank = Config::cluster > 1 ? cluster_rank() : 0;
    if (threadIdx.x == 0) {
        TileProduct<Config>::init(shared.product.stages);
        ProductTerms<Config>::init(shared.terms);
    }
    if constexpr (Config::cluster > 1) cluster_barrier();
    else block_barrier();
    if (!params.waits_late) wait_for_previous_kernel();
    allow_next_kernel();

    int rows = counted(params.row_count, params.rows), inner = counted(params.inner_count, params.inner);
    if (Config::adds && inner == 0) rows = 0; // nothing to add: out is not even read
    int steps = ceil_div(inner, Config::block_hidden);
    ProductTiles<Config> tiles(rows, params.columns, params.group);
    TileProduct<Config> product(shared.product.stages);
    int row_block, column_tile, group = warp_index() / 4;
    if (group == Config::consumer_groups) {
        if constexpr (Config::producer_registers > 0) registers_release<Config::producer_registers>();
        if (warp_index() % 4 == 1) ProductTerms<Config>::look_up(shared.terms, params, tiles, rank, inner);
        if (threadIdx.x % 128 == 0)
            while (tiles.next(row_block, column_tile)) {
                int row = (row_block * Config::cluster + rank) * Config::block_rows, column = column_tile * Config::block_vocab;
                if constexpr (Config::filters) {
                    product.load_kept(left_map, right_map, row, column, rank, steps, KeptSteps<Config>(params, row_block, column_tile));
                } else {
                    product.load(left_map, right_map, row, column, rank, steps);
                }
            }
    } else {
        if constexpr (Config::consumer_registers > 0) registers_claim<Config::consumer_registers>();
        using Out = typename Config::out_element;
        OutMatrix<Out> old = {(const Out *)params.out, params.out_stride, rows, params.columns};
        float d[TileProduct<Config>::accumulators];
        ProductTerms<Config> terms(shared.terms, params);
        while (tiles.next(row_block, column_tile)) {
            int done = steps;
            terms.start(column_tile * Config::block_vocab);
            if constexpr (Config::filters) done = product.multiply_kept(d, group, steps, KeptSteps<Config>(params, row_block, column_tile));
            else product.multiply(d, group, steps);
            scale_product(d, params.factor, done);
            int row = (row_block * Config::cluster + rank) * Config::block_rows + group * 64 + (warp_index() % 4) * 16;
            scale_rows(d, params.row_factor, row, rows);
            TargetTerms<Config> tile(params, rows, inner, row, column_tile * Config::block_vocab);
            terms.add(tile, d, shared.product.out.box[warp_index()]);
            if (params.waits_late == FLP_WRITES_WHAT_WAS_READ) wait_for_previous_kernel();
            TileStore<Config>::store(shared.product.out, out_map, old, d, row, column_tile * Config::block_vocab);
        }
        TileStore<Config>::finish();
    }
    // What comes next waits for this kernel, and with it for the one before.
    if (params.waits_late) wait_for_previous_kernel();
    // A block must not end while its neighbours still copy into it or arrive at its barriers.
    if constexpr (Config::cluster > 1) cluster_barrier();
}
