// The derivatives of the loss by a chunk of the logits on any GPU from sm_80 on: hidden (A) times weight (B), then from logits to derivatives, then a store.
// Config: inner_size, and those of tile_kernel, product_tiles, tile_grad_logits and tile_store
template <class Config> struct GradLogitsShared { Stages<Config> stages; };

template <class Config> struct LinearLogpGradLogits : TileKernel<Config, GradLogitsShared<Config>> {
    using typename TileKernel<Config, GradLogitsShared<Config>>::element;
    using Out = typename Config::out_element;
    const GradLogitsParams &params;
    const int rows;

    __device__ __forceinline__ LinearLogpGradLogits(const GradLogitsParams &params) : params(params), rows(counted(params.row_count, params.rows)) {}

    __device__ __forceinline__ OperandMatrices<element> operands() const {
        return {
            (const element *)params.hidden, (const element *)params.weight, params.hidden_stride, params.weight_stride, rows, params.vocab, Config::inner_size};
    }
    __device__ __forceinline__ ProductTiles<Config> walk() const { return ProductTiles<Config>(rows, params.columns, params.group); }
    __device__ __forceinline__ int first_column() const { return params.first_column; }

    __device__ __forceinline__ void begin(int) {}

    template <int blocks, int count> __device__ __forceinline__ void consume(float (&d)[blocks][count], int row, int column, const Unit &, bool) {
        const OutMatrix<Out> out = {(Out *)params.out, params.out_stride, rows, params.columns};
#pragma unroll
        for (int i = 0; i < blocks; i++) {
            TileGradLogits<Config> gradients; // loaded here rather than held in registers during the products
            gradients.begin(params, row + 16 * i);
            gradients.transform(params, d[i], column_at(params.first_column, column));
            TileStore<Config>::store(out, d[i], row + 16 * i, column);
        }
    }

    __device__ __forceinline__ void finish(int, const Unit &) {}
};

template <class Config> __device__ __forceinline__ void linear_logp_grad_logits(const GradLogitsParams &params) {
    run_tile_kernel<Config>(LinearLogpGradLogits<Config>(params));
}
