// out (+)= factor A B on any GPU from sm_80 on: the mainloop, then an epilogue that applies the factors, adds the targets' contribution and stores.
// Config: adds, takes_factors, and those of tile_kernel, product_tiles, target_contribution and tile_store
template <class Config> struct MatrixProductShared { Stages<Config> stages; };

template <class Config> struct MatrixProduct : TileKernel<Config, MatrixProductShared<Config>> {
    using typename TileKernel<Config, MatrixProductShared<Config>>::element;
    using Out = typename Config::out_element;
    const MatrixProductParams &params;
    int rows, inner;

    __device__ __forceinline__ MatrixProduct(const MatrixProductParams &params)
        : params(params), rows(counted(params.row_count, params.rows)), inner(counted(params.inner_count, params.inner)) {
        if (Config::adds && inner == 0) rows = 0; // nothing to add: no tile is computed, and out is not read
    }

    __device__ __forceinline__ OperandMatrices<element> operands() const {
        return {(const element *)params.a, (const element *)params.b, params.a_stride, params.b_stride, rows, params.columns, inner};
    }
    __device__ __forceinline__ ProductTiles<Config> walk() const { return ProductTiles<Config>(rows, params.columns, params.group); }
    __device__ __forceinline__ int steps() const { return ceil_div(inner, Config::block_inner); }

    __device__ __forceinline__ void begin(int) {}

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int row, int column, const Unit &, bool) {
        const OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
#pragma unroll
        for (int i = 0; i < blocks; i++) {
            if constexpr (Config::takes_factors) scale_product(d[i], params, row + 16 * i, rows);
            if constexpr (Config::targets_of_rows || Config::targets_in_rows || Config::targets_in_columns)
                TargetContribution<Config>(params, rows, inner, row + 16 * i, column).add(d[i]);
            TileStore<Config>::store(out, d[i], row + 16 * i, column);
        }
    }

    __device__ __forceinline__ void finish(int, const Unit &) {}
};

template <class Config> __device__ __forceinline__ void matrix_product(const MatrixProductParams &params) {
    run_tile_kernel<Config>(MatrixProduct<Config>(params));
}
