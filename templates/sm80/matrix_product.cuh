// out (+)= factor A B on any GPU from sm_80 on: the mainloop, then an epilogue that applies the factors, adds the targets' contribution and stores.
// Config: in_parts, adds, takes_factors, and those of tile_kernel, product_tiles, target_contribution and tile_store

// Parts of the inner size: product_parts.cuh, emitted where Config::in_parts.
template <class Config> struct ProductParts;
template <class Config, class Walk> struct PartTiles : UnitTiles<Config, Walk> {
    using Base = UnitTiles<Config, Walk>;
    ProductParts<Config> parts;
    __device__ __forceinline__ PartTiles(const Walk &walk, const MatrixProductParams &params) : Base(walk, 0), parts{params} {}
    __device__ __forceinline__ int column() const { return parts.column(Base::tile); }
    __device__ __forceinline__ int inner() const { return parts.first_inner(Base::tile); }
};

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
    __device__ __forceinline__ ProductTiles<Config> walk() const {
        if constexpr (Config::in_parts) return ProductTiles<Config>(rows, ProductParts<Config>{params}.columns(), params.group);
        else return ProductTiles<Config>(rows, params.columns, params.group);
    }
    // Of the last part, which may be shorter, steps past the end are copied as zeros.
    __device__ __forceinline__ int steps() const { return ceil_div(Config::in_parts ? params.part_inner : inner, Config::block_inner); }
    template <class Walk> __device__ __forceinline__ auto tiles(const Walk &walk, int first_column) const {
        if constexpr (Config::in_parts) return PartTiles<Config, Walk>(walk, params);
        else return TileKernel<Config, MatrixProductShared<Config>>::tiles(walk, first_column);
    }

    __device__ __forceinline__ void begin(int) {}

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int row, int column, const Unit &, bool) {
        OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
        if constexpr (Config::in_parts) {
            ProductParts<Config> parts = {params};
            int tile = divide(column, Config::block_columns);
            out.data += parts.first_row(tile) * params.out_stride;
            column += parts.column(tile) - tile * Config::block_columns;
        }
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
